#include "app/devices/node.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "app/config/uri.h"
#include "core/base/units.h"
#include "routing/transport/routed_transport.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/eth/eth_net.h"
#include "transports/rdma/rdma_transport.h"
#include "transports/shm/shm_net.h"
#include "transports/stream/stream_transport.h"
#include "transports/tcp/tcp_net.h"
#include "transports/udp/udp_net.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::program {
namespace {

// Where to listen: --listen, else the device's address and port.
Result<HostPort> listen_place(const DeviceConfig& device, const NodeOptions& options) {
  if (options.listen) {
    auto place = split_listen(*options.listen);
    if (!place) return tl::unexpected(place.error());
    if (!place->scheme.empty() && place->scheme != device.transport) {
      return fail(ErrorKind::usage, fmt::format("--listen {}: device {} is of {}: name one of {} (--device)",
                                                printable(*options.listen), device.name, device.transport, place->scheme));
    }
    return place->at;
  }
  if (device.transport == "shm") return HostPort{device.shm_name, 0};
  if (device.transport == "eth") return HostPort{{}, device.port};  // its interface says the rest
  auto host = address_of_device(device, interfaces_of_host());
  if (!host) return tl::unexpected(host.error());
  return HostPort{host->empty() ? "0.0.0.0" : *host, device.port};
}

Result<void> check_passed(const DeviceConfig& device, const NodeOptions& options) {
  if (options.listen)
    return fail(ErrorKind::usage,
                fmt::format("--listen {}: the service manager passed a socket: leave one of them out", printable(*options.listen)));
  if (device.transport == "tcp") return {};
  return fail(ErrorKind::usage, fmt::format("the service manager passed a socket: device {} is of {}: name one of tcp (--device)",
                                            device.name, device.transport));
}

tl::unexpected<Error> cannot_listen(const Error& why) {
  return fail(why.kind, why.message + ": listen on a free port of an address of this host (--listen, or the device's ip and port)");
}

// A transport over sockets, and the addresses under which it can be dialled.
struct Made {
  std::unique_ptr<ports::Transport> transport;
  std::vector<std::string> uris;
  stream::StreamTransport* mover = nullptr;
};

template <typename NetOptions>
NetOptions net_options(const HostPort& place, const NodeOptions& options) {
  NetOptions net;
  net.listen = options.listening;
  net.waker = options.waker;
  net.listen_host = place.host;
  net.port = place.port;
  return net;
}

Result<Made> make_tcp(const HostPort& place, const NodeOptions& options, Counters& counters) {
  auto wanted = net_options<tcp::TcpNetOptions>(place, options);
  wanted.listener = options.passed_listener;
  auto net = tcp::TcpNet::create(wanted);
  if (!net && options.passed_listener >= 0) return tl::unexpected(net.error());
  if (!net) return cannot_listen(net.error());
  Made made;
  made.uris = (*net)->uris();
  auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{}, std::move(*net), counters, options.trust);
  made.mover = transport.get();
  made.transport = std::move(transport);
  return made;
}

std::unique_ptr<ports::Transport> over_datagrams(std::unique_ptr<datagram::DatagramNet> net, const NodeOptions& options,
                                                 ports::Entropy& entropy, Counters& counters) {
  datagram::DatagramOptions transport;
  transport.congestion = reliability::Congestion::bbr;
  transport.paths = options.paths;
  return std::make_unique<datagram::DatagramTransport>(transport, std::move(net), entropy, counters, options.trust);
}

Result<Made> make_udp(const HostPort& place, const NodeOptions& options, ports::Entropy& entropy, Counters& counters) {
  auto net = udp::UdpNet::create(net_options<udp::UdpNetOptions>(place, options));
  if (!net) return cannot_listen(net.error());
  Made made;
  made.uris = (*net)->uris();
  made.transport = over_datagrams(std::move(*net), options, entropy, counters);
  return made;
}

// Of this process, as what it may do is confined as a whole.
std::atomic<bool> memory_is_shared{false};
std::atomic<bool> cards_are_used{false};

// Without proof only processes of one user meet, as everybody of the host could take a name.
Result<Made> make_shm(const HostPort& place, const NodeOptions& options, Counters& counters) {
  shm::ShmNetOptions wanted;
  wanted.listen = options.listening;
  wanted.name = options.listening ? place.host : std::string();
  wanted.meets = options.trust ? shm::Meets::anybody : shm::Meets::own_user;
  wanted.counters = &counters;
  wanted.waker = options.waker;
  auto net = shm::ShmNet::create(wanted);
  if (!net) return fail(net.error().kind, net.error().message + ": listen at another name (--listen, or the device's name)");
  memory_is_shared = true;
  Made made;
  if (options.listening) made.uris.push_back((*net)->uri());
  made.transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{}, std::move(*net), counters, options.trust);
  return made;
}

Result<Made> make_eth(const DeviceConfig& device, const HostPort& place, const NodeOptions& options, ports::Entropy& entropy,
                      Counters& counters) {
  eth::EthNetOptions wanted;
  wanted.interface_name = device.interface;
  wanted.listen = options.listening;
  wanted.waker = options.waker;
  if (options.listening) wanted.id = place.port;
  if (options.listening && options.listen) {
    wanted.mac = eth::parse_mac(place.host);
    if (!wanted.mac)
      return fail(ErrorKind::usage,
                  fmt::format("--listen {}: device {} is of eth: write eth://MAC:ID", printable(*options.listen), device.name));
  }
  auto net = eth::EthNet::create(wanted, counters);
  if (!net) return tl::unexpected(net.error());
  Made made;
  if (options.listening) made.uris = {(*net)->uri()};
  made.transport = over_datagrams(std::move(*net), options, entropy, counters);
  return made;
}

// Cards reach memory that is locked. As much as this account may lock, and all of it as root, who can say so before it is confined.
void raise_locked_memory() {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_MEMLOCK, &limit));
}

// An end that only dials has a card too, which reads and writes the memory that is registered with it.
Result<Made> make_verbs(const DeviceConfig& device, HostPort place, const NodeOptions& options, Counters& counters) {
  if (!options.listening) {
    auto host = address_of_device(device, interfaces_of_host());
    if (!host) return tl::unexpected(host.error());
    if (!host->empty()) place.host = *host;
  }
  raise_locked_memory();
  auto opened = verbs::open_net(net_options<verbs::VerbsNetOptions>(place, options));
  if (!opened) return fail(opened.error().kind, fmt::format("device {}: {}", device.name, opened.error().message));
  cards_are_used = true;
  Made made;
  made.uris = std::move(opened->uris);
  made.transport =
      std::make_unique<rdma::RdmaTransport>(ports::TransportOptions{}, std::move(opened->net), counters, options.trust);
  return made;
}

Result<Made> make_transport(const DeviceConfig& device, const HostPort& place, const NodeOptions& options, ports::Entropy& entropy,
                            Counters& counters) {
  if (device.transport == "udp") return make_udp(place, options, entropy, counters);
  if (device.transport == "shm") return make_shm(place, options, counters);
  if (device.transport == "eth") return make_eth(device, place, options, entropy, counters);
  if (device.transport == "verbs") return make_verbs(device, place, options, counters);
  return make_tcp(place, options, counters);
}

}  // namespace

bool shares_memory() { return memory_is_shared; }

bool uses_cards() { return cards_are_used; }

Result<Node> make_node(const DeviceConfig& device, const NodeOptions& options, ports::Entropy& entropy, Counters& counters) {
  HostPort place{"0.0.0.0", 0};
  if (options.passed_listener >= 0) {
    if (auto fine = check_passed(device, options); !fine) return tl::unexpected(fine.error());
  } else if (options.listening) {
    auto told = listen_place(device, options);
    if (!told) return tl::unexpected(told.error());
    place = std::move(*told);
  }
  auto made = make_transport(device, place, options, entropy, counters);
  if (!made) return tl::unexpected(made.error());
  Node node;
  node.uris = std::move(made->uris);
  node.mover = made->mover;
  node.memory = options.memory ? options.memory : std::make_shared<cci::MemoryTable>(entropy, counters);
  node.endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(made->transport), node.memory, counters);
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

Result<DeviceConfig> chosen_device(const Config& config, const std::optional<std::string>& name, std::string_view transport) {
  const auto is_other = [&](const DeviceConfig& device) { return !transport.empty() && device.transport != transport; };
  if (!name && std::all_of(config.devices.begin(), config.devices.end(), is_other)) {
    DeviceConfig any;
    any.name = "any";
    if (!transport.empty()) any.transport = transport;
    return any;
  }
  const std::vector<Interface> interfaces = interfaces_of_host();
  std::vector<DeviceConfig> devices = devices_of(config, interfaces, transport);  // interfaces carry any transport
  if (!name) std::erase_if(devices, is_other);
  const auto chosen = choose_device(devices, name, interfaces);
  if (!chosen) return tl::unexpected(chosen.error());
  return **chosen;
}

std::string transport_of(const std::optional<std::string>& listen) {
  const auto place = listen ? split_listen(*listen) : ListenPlace{};
  return place ? place->scheme : std::string();
}

std::string transport_of(const Target& target) { return target.routed ? std::string() : target.scheme; }

Result<void> check_target(const DeviceConfig& device, const Target& target) {
  if (!target.routed && target.scheme != device.transport) {
    return fail(ErrorKind::usage, fmt::format("address of another transport: {}: device {} is of {}: name one of {} (--device)",
                                              printable(target.address), device.name, device.transport, target.scheme));
  }
  if (!target.routed || device.subnet) return {};
  return fail(ErrorKind::usage,
              fmt::format("routed address without routing: {}: give device {} its as, subnet and router in the configuration (-c)",
                          printable(target.address), device.name));
}

}  // namespace ccixfer::program
