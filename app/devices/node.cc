#include "app/devices/node.h"

#include <fmt/format.h>

#include <utility>

#include "app/config/uri.h"
#include "core/base/units.h"
#include "routing/transport/routed_transport.h"
#include "transports/stream/stream_transport.h"
#include "transports/tcp/tcp_net.h"

namespace ccixfer::program {
namespace {

// Where to listen: --listen, else the device's address and port.
Result<HostPort> listen_place(const DeviceConfig& device, const NodeOptions& options) {
  if (options.listen) return split_host_port(*options.listen);
  auto host = address_of_device(device, interfaces_of_host());
  if (!host) return tl::unexpected(host.error());
  return HostPort{host->empty() ? "0.0.0.0" : *host, device.port};
}

}  // namespace

Result<Node> make_node(const DeviceConfig& device, const NodeOptions& options, ports::Entropy& entropy, Counters& counters) {
  if (device.transport != "tcp") {
    return fail(ErrorKind::usage,
                fmt::format("not in this version: transport {} of device {}: use tcp", device.transport, device.name));
  }
  tcp::TcpNetOptions net_options;
  net_options.listen = options.listening;
  net_options.waker = options.waker;
  if (options.listening) {
    auto place = listen_place(device, options);
    if (!place) return tl::unexpected(place.error());
    net_options.listen_host = place->host;
    net_options.port = place->port;
  }
  auto net = tcp::TcpNet::create(net_options);
  if (!net) {
    return fail(net.error().kind,
                net.error().message + ": listen on a free port of an address of this host (--listen, or the device's ip and port)");
  }
  Node node;
  node.uris = (*net)->uris();
  node.memory = options.memory ? options.memory : std::make_shared<cci::MemoryTable>(entropy, counters);
  auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{}, std::move(*net), counters, options.trust);
  node.endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), node.memory, counters);
  if (!device.subnet || options.bare) return node;
  node.routers = device.routers.size();

  routing::RoutedOptions routed;
  routed.subnet = *device.subnet;
  routed.routers = device.routers;
  routed.scheme = device.transport;
  auto above = routing::make_routed_transport(routed, std::move(node.endpoint), node.memory, entropy, counters);
  node.endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(above), node.memory, counters);
  if (const std::string uri = node.endpoint->uri(); !uri.empty()) node.uris.insert(node.uris.begin(), uri);
  return node;
}

Result<DeviceConfig> chosen_device(const Config& config, const std::optional<std::string>& name) {
  if (config.devices.empty() && !name) {
    DeviceConfig any;
    any.name = "any";
    return any;
  }
  const std::vector<Interface> interfaces = interfaces_of_host();
  const std::vector<DeviceConfig> devices = devices_of(config, interfaces);
  const auto chosen = choose_device(devices, name, interfaces);
  if (!chosen) return tl::unexpected(chosen.error());
  return **chosen;
}

Result<void> check_target(const DeviceConfig& device, const Target& target) {
  if (!target.routed || device.subnet) return {};
  return fail(ErrorKind::usage,
              fmt::format("routed address without routing: {}: give device {} its as, subnet and router in the configuration (-c)",
                          printable(target.address), device.name));
}

}  // namespace ccixfer::program
