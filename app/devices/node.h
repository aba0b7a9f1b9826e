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
#include "core/reliability/known_path.h"
#include "transports/connection/hop_trust.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::program {

struct NodeOptions {
  bool listening = false;
  std::optional<std::string> listen;               // --listen, before the device's
  int passed_listener = -1;                        // of tcp: listens already, takes the place of the device's address; -1: none
  std::string dials;                               // for who chooses the device: transport_of what is to be dialled
  bool bare = false;                               // for a router's device: no routing transport above it
  std::shared_ptr<cci::MemoryTable> memory;        // shared; made when there is none
  std::shared_ptr<connection::HopTrust> trust;     // connections are secured, and it decides on peers; none: --insecure
  std::shared_ptr<reliability::PathMemory> paths;  // what earlier connections found of networks; none: nothing is kept
  std::shared_ptr<host::Waker> waker;              // in which the loop waits; none: the endpoint has an OS handle to wait for
};

struct Node {
  std::unique_ptr<cci::Endpoint> endpoint;
  stream::StreamTransport* mover = nullptr;  // of `endpoint`, where its connections may move to another thread: of tcp
  std::shared_ptr<cci::MemoryTable> memory;
  std::vector<std::string> uris;
  size_t routers = 0;  // of the device
};

// usage: a passed listener of another transport, or beside --listen; a transport that the program was built without, or that proves
// no peers where `trust` is given; a bad --listen, or one of another transport; an interface without an address. network: the
// address cannot be listened on.
[[nodiscard]] Result<Node> make_node(const DeviceConfig& device, const NodeOptions& options, ports::Entropy& entropy,
                                     Counters& counters);
// Whether this process has made an endpoint of shm: it then needs more of the system (core/sandbox, Plan::shares_memory).
[[nodiscard]] bool shares_memory();
// Likewise of verbs (Plan::uses_cards).
[[nodiscard]] bool uses_cards();
// The device of that name, or the default one of configuration and host. Without configuration and name: any address.
// `transport`: that of the place to be dialled or listened on ("": not known). Without a name it decides among the devices, and
// whoever has none of it has any address.
[[nodiscard]] Result<DeviceConfig> chosen_device(const Config& config, const std::optional<std::string>& name,
                                                 std::string_view transport = {});
[[nodiscard]] std::string transport_of(const std::optional<std::string>& listen);  // of --listen; "": it says none
[[nodiscard]] std::string transport_of(const Target& target);                      // "": it is routed

// usage: a cci:// address over a device that does not route, or a native one of another transport.
[[nodiscard]] Result<void> check_target(const DeviceConfig& device, const Target& target);

}  // namespace ccixfer::program
