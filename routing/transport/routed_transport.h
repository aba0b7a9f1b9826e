// The routing transport: a Transport made of endpoints over other transports. Applications and transports do not change.
// A peer of the same AS and subnet, or a native URI, is dialled directly; every other cci:// address through one of the device's
// routers. RMA is cut here into fragments of the path's negotiated size, once; routers never cut. A write's fragments are pulled by
// the first router out of one-use sub-ranges; the operation completes when the last router has acknowledged every fragment. Source:
// routing §V.A, §VII.A.2, §VII.C; routing/transport/README.md.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/cci/endpoint.h"
#include "core/ports/entropy.h"
#include "core/ports/transport.h"
#include "routing/map/address.h"

namespace ccixfer::routing {

struct RoutedOptions {
  SubnetId subnet;                   // of the lower device
  std::vector<std::string> routers;  // native URIs on that subnet; may be empty: only direct connections, else no_route
  uint32_t fragment_bytes_max = (4u << 20) + (4u << 10);  // what this end accepts; the path's size is the minimum over the chain
  Duration keepalive = std::chrono::seconds(15);          // end to end
  uint32_t fragments_in_flight_max = 64;                  // per connection
  uint32_t pending_requests_max = 1024;                   // through routers, not decided; more wait at the lower endpoint
  std::string scheme;  // of the subnet's transport; empty: that of the lower endpoint's URI, else of a router's
};

// `lower` is an endpoint over the device's own transport that shares `memory` with the endpoint that will own the result.
[[nodiscard]] std::unique_ptr<ports::Transport> make_routed_transport(const RoutedOptions& options,
                                                                      std::unique_ptr<cci::Endpoint> lower,
                                                                      std::shared_ptr<cci::MemoryTable> memory,
                                                                      ports::Entropy& entropy, Counters& counters);

}  // namespace ccixfer::routing
