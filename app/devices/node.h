// One endpoint of this host: the transport of a device, and the routing transport over it when the device has as, subnet and
// router. Addresses: cci:// first (when it routes), then the native ones; a listener on any address is named by every interface's
// address.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/config/uri.h"
#include "app/devices/devices.h"
#include "core/base/counters.h"
#include "core/cci/endpoint.h"
#include "core/host/waker.h"
#include "core/ports/entropy.h"
#include "transports/connection/hop_trust.h"

namespace ccixfer::program {

struct NodeOptions {
  bool listening = false;
  std::optional<std::string> listen;            // --listen HOST:PORT, before the device's
  bool bare = false;                            // for a router's device: no routing transport above it
  std::shared_ptr<cci::MemoryTable> memory;     // shared; made when there is none
  std::shared_ptr<connection::HopTrust> trust;  // connections are secured, and it decides on peers; none: --insecure
  std::shared_ptr<host::Waker> waker;           // in which the loop waits; none: the endpoint has an OS handle to wait for
};

struct Node {
  std::unique_ptr<cci::Endpoint> endpoint;
  std::shared_ptr<cci::MemoryTable> memory;
  std::vector<std::string> uris;
  size_t routers = 0;  // of the device
};

// usage: a transport that this version does not have, a bad --listen, an interface without an address. network: the address cannot
// be listened on.
[[nodiscard]] Result<Node> make_node(const DeviceConfig& device, const NodeOptions& options, ports::Entropy& entropy,
                                     Counters& counters);
// The device of that name, or the default one of configuration and host. Without configuration and name: any address.
[[nodiscard]] Result<DeviceConfig> chosen_device(const Config& config, const std::optional<std::string>& name);

// usage: a cci:// address over a device that does not route.
[[nodiscard]] Result<void> check_target(const DeviceConfig& device, const Target& target);

}  // namespace ccixfer::program
