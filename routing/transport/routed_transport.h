// The routing transport: a Transport made of an endpoint over another transport, so that neither
// applications nor transports notice routing. A peer of the same AS and subnet, or a native URI, is
// dialled directly; every other cci:// address through one of the device's routers. RMA is cut here
// into fragments of the length that the path agreed on; routers never cut.
// Source: routing §V.A, §VII.A.2, §VII.C; routing/transport/README.md.
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
  SubnetId subnet;  // of the lower device
  // Native URIs on that subnet. Without any, there are direct connections only; else no_route.
  std::vector<std::string> routers;
  // Of this end; the least of all on the path holds.
  uint32_t fragment_bytes_max = (4u << 20) + (4u << 10);
  Duration keepalive = std::chrono::seconds(15);  // end to end
  uint32_t fragments_in_flight_max = 64;          // per connection
  uint32_t pending_requests_max = 1024;           // through routers, not decided; more wait at the lower endpoint
  std::string scheme;  // of the subnet's transport; empty: that of the lower endpoint's URI, else of a router's
};

// `lower` is an endpoint over the device's own transport. It shares `memory` with the endpoint that
// will own the result, so that the last hop reaches the application's memory.
[[nodiscard]] std::unique_ptr<ports::Transport> make_routed_transport(const RoutedOptions& options,
                                                                      std::unique_ptr<cci::Endpoint> lower,
                                                                      std::shared_ptr<cci::MemoryTable> memory,
                                                                      ports::Entropy& entropy, Counters& counters);

}  // namespace ccixfer::routing
