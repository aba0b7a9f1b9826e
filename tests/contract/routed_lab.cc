#include "tests/contract/routed_lab.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "core/host/clock.h"
#include "routing/router/router.h"
#include "routing/transport/routed_transport.h"
#include "tests/contract/datagram_lab.h"
#include "tests/contract/loopback_fence.h"
#include "tests/contract/rdma_lab.h"
#include "tests/contract/sim_lab.h"
#include "tests/unit/eth/own_lan.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/eth/eth_net.h"
#include "transports/rdma/rdma_transport.h"
#include "transports/shm/shm_net.h"
#include "transports/sim/card_transport.h"
#include "transports/sim/sim_net.h"
#include "transports/stream/stream_transport.h"
#include "transports/tcp/tcp_net.h"
#include "transports/udp/udp_net.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

constexpr uint16_t port = 7000;

std::string network_of(size_t subnet) { return fmt::format("lan{}", subnet); }

// What the subnets are made of.
struct Networks {
  Networks(uint64_t seed, std::vector<Subnet> s, bool with_trust)
      : subnets(std::move(s)), world(seed), streams(world), secured(with_trust) {
    for (size_t subnet = 1; subnet <= subnets.size(); ++subnet) {
      cards.push_back(std::make_unique<sim::RdmaFabric>(world, prompt_cards()));
      datagrams.push_back(std::make_unique<sim::DatagramFabric>(world, mild_link()));
      sim::LinkOptions link = streams.link(network_of(subnet));
      if (kind(subnet) == Subnet::rdma) link.card.emplace();
      streams.set_link(network_of(subnet), link);
    }
  }
  [[nodiscard]] Subnet kind(size_t subnet) const { return subnets[subnet - 1]; }
  // Of the operating system: they have its time.
  [[nodiscard]] bool any_sockets() const {
    return any(Subnet::tcp) || any(Subnet::udp) || any(Subnet::shm) || any(Subnet::eth) || any(Subnet::verbs);
  }
  [[nodiscard]] bool any(Subnet kind) const { return std::find(subnets.begin(), subnets.end(), kind) != subnets.end(); }

  std::vector<Subnet> subnets;
  sim::World world;
  sim::Fabric streams;
  bool secured;
  std::vector<std::unique_ptr<sim::DatagramFabric>> datagrams;  // of each subnet
  std::vector<std::unique_ptr<sim::RdmaFabric>> cards;          // the same
  int ports_used = 0;                                           // of the test's Ethernet: each device has one of its own
};

std::unique_ptr<ports::Transport> make_transport(Networks& networks, size_t subnet, sim::NodeId node, const std::string& address,
                                                 const ports::TransportOptions& options, ports::Entropy& entropy,
                                                 Counters& counters) {
  if (networks.kind(subnet) == Subnet::datagram) {
    auto net = std::make_unique<sim::SimDatagramNet>(*networks.datagrams[subnet - 1], node, address, port);
    return std::make_unique<datagram::DatagramTransport>(datagram::DatagramOptions{options}, std::move(net), entropy, counters,
                                                         lab_trust(networks.secured));
  }
  if (networks.kind(subnet) == Subnet::sim_rdma) {
    auto net = std::make_unique<sim::SimRdmaNet>(*networks.cards[subnet - 1], node, address, port);
    return std::make_unique<rdma::RdmaTransport>(options, std::move(net), counters, lab_trust(networks.secured));
  }
  if (networks.kind(subnet) == Subnet::sim || networks.kind(subnet) == Subnet::rdma) {
    sim::SimNetOptions net;
    net.networks = {{network_of(subnet), address}};
    net.port = port;
    return sim::make_transport(networks.streams, node, net, options, counters, lab_trust(networks.secured));
  }
  if (networks.kind(subnet) == Subnet::udp) {
    auto net = udp::UdpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}});
    REQUIRE(net);
    return std::make_unique<datagram::DatagramTransport>(datagram::DatagramOptions{options}, std::move(*net), entropy, counters,
                                                         lab_trust(networks.secured));
  }
  if (networks.kind(subnet) == Subnet::shm) {
    shm::ShmNetOptions of_net;
    of_net.counters = &counters;
    auto net = shm::ShmNet::create(of_net);
    REQUIRE(net);
    return std::make_unique<stream::StreamTransport>(options, std::move(*net), counters, lab_trust(networks.secured));
  }
  if (networks.kind(subnet) == Subnet::eth) {
    eth::EthNetOptions net_options;
    net_options.interface_name = testing::lan_port(networks.ports_used++ % testing::lan_ports);
    auto net = eth::EthNet::create(net_options, counters);
    REQUIRE(net);
    return std::make_unique<datagram::DatagramTransport>(datagram::DatagramOptions{options}, std::move(*net), entropy, counters,
                                                         lab_trust(networks.secured));
  }
  if (networks.kind(subnet) == Subnet::verbs) {
    auto opened = verbs::open_net({});
    if (!opened) FAIL(opened.error().message);
    return std::make_unique<rdma::RdmaTransport>(options, std::move(opened->net), counters, lab_trust(networks.secured));
  }
  auto net = tcp::TcpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}, .backlog = 1024, .listen = true});
  REQUIRE(net);
  return std::make_unique<stream::StreamTransport>(options, std::move(*net), counters, lab_trust(networks.secured));
}

const char* scheme_of(Subnet kind) {
  switch (kind) {
    case Subnet::sim:
    case Subnet::rdma:
      return "sim";
    case Subnet::tcp:
      return "tcp";
    case Subnet::udp:
      return "udp";
    case Subnet::shm:
      return "shm";
    case Subnet::eth:
      return "eth";
    case Subnet::verbs:
      return "verbs";
    case Subnet::datagram:
      return "sim-datagram";
    case Subnet::sim_rdma:
      return "sim-rdma";
  }
  return "";
}

// Between subnets `before` and `before + 1`, counted from 1.
class RouterActor final : public sim::Actor {
 public:
  RouterActor(Networks& networks, size_t before, std::string peer, Pool pool)
      : world_(networks.world), node_(world_.add_node(fmt::format("router{}", before))), entropy_(99 + before) {
    memory_ = std::make_shared<cci::MemoryTable>(entropy_, counters_);
    std::vector<routing::RouterDevice> devices;
    for (size_t subnet = before; subnet <= before + 1; ++subnet) {
      routing::RouterDevice device;
      device.name = network_of(subnet);
      device.subnet = {1, static_cast<uint32_t>(subnet)};
      device.scheme = scheme_of(networks.kind(subnet));
      const std::string address = fmt::format("10.0.0.{}", 200 + before);
      device.endpoint = std::make_unique<Endpoint>(
          cci::EndpointOptions{}, make_transport(networks, subnet, node_, address, {}, entropy_, counters_), memory_, counters_);
      if (subnet == before && !peer.empty()) device.peers = {peer};
      device.rate_bits_per_s = 10'000'000'000;
      uris_.push_back(device.endpoint->uri());
      devices.push_back(std::move(device));
    }
    routing::RouterOptions options;
    options.fragment_bytes = pool.fragment_bytes;
    options.memory_bytes = uint64_t{pool.fragments} * pool.fragment_bytes;
    auto made = routing::Router::create(options, std::move(devices), memory_, entropy_, counters_);
    REQUIRE(made);
    router_ = std::move(*made);
    world_.add_actor(node_, this);
    world_.wake(node_);
  }
  ~RouterActor() override { world_.remove_actor(node_, this); }
  void turn(Instant now) override { router_->turn(now); }
  [[nodiscard]] Instant next_deadline() const override { return router_->next_deadline(); }
  [[nodiscard]] bool ready(size_t links) const { return router_->ready() && router_->links_open() == links; }
  [[nodiscard]] const std::string& uri(size_t side) const { return uris_[side]; }
  [[nodiscard]] sim::NodeId node() const { return node_; }
  [[nodiscard]] std::vector<int> os_handles() const { return router_->os_handles(); }

 private:
  sim::World& world_;
  sim::NodeId node_;
  Counters counters_;
  SeededEntropy entropy_;
  std::shared_ptr<cci::MemoryTable> memory_;
  std::unique_ptr<routing::Router> router_;
  std::vector<std::string> uris_;
};

class RoutedLab final : public Lab {
 public:
  RoutedLab(uint64_t seed, std::vector<Subnet> subnets, Pool pool, bool secured) : networks_(seed, std::move(subnets), secured) {
    real_ = networks_.any_sockets();
    for (size_t before = 1; before < subnets_.size(); ++before) {
      const std::string peer = routers_.empty() ? std::string{} : routers_.back()->uri(1);
      routers_.push_back(std::make_unique<RouterActor>(networks_, before, peer, pool));
    }
    REQUIRE(run(
        [&] {
          for (size_t i = 0; i < routers_.size(); ++i) {
            const size_t links = (i > 0 ? 1u : 0u) + (i + 1 < routers_.size() ? 1u : 0u);
            if (!routers_[i]->ready(links)) return false;
          }
          return true;
        },
        60s));
    pass(50ms);  // the records have reached all
  }
  ~RoutedLab() override {
    for (auto& machine : machines_) {
      machine.node->events.clear();
      machine.node->endpoint.reset();
    }
  }

  Node& add(const NodeOptions& options) override {
    Machine& machine = machines_.emplace_back();
    machine.node = std::make_unique<Node>();
    Node& node = *machine.node;
    const size_t subnet = machines_.size() % 2 == 1 ? 1 : subnets_.size();
    const std::string address = fmt::format("10.0.0.{}", 1 + machines_.size());
    machine.id = world_.add_node(address);
    node.entropy = std::make_unique<SeededEntropy>(machines_.size());
    node.memory = std::make_shared<cci::MemoryTable>(*node.entropy, *node.counters);
    routing::RoutedOptions routed;
    routed.subnet = {1, static_cast<uint32_t>(subnet)};
    if (!routers_.empty()) routed.routers = {subnet == 1 ? routers_.front()->uri(0) : routers_.back()->uri(1)};
    routed.keepalive = options.transport.keepalive;
    routed.pending_requests_max = options.transport.pending_requests_max;
    auto lower = std::make_unique<Endpoint>(
        cci::EndpointOptions{},
        make_transport(networks_, subnet, machine.id, address, options.transport, *node.entropy, *node.counters), node.memory,
        *node.counters);
    node.endpoint = std::make_unique<Endpoint>(
        options.endpoint, routing::make_routed_transport(routed, std::move(lower), node.memory, *node.entropy, *node.counters),
        node.memory, *node.counters);
    machine.driver = make_driver(node);
    world_.add_actor(machine.id, machine.driver.get());
    return node;
  }

  bool run(const std::function<bool()>& done, Duration limit) override {
    if (!real_) {
      wake();
      const auto step = [&] {
        if (done()) return true;
        for (const Machine& machine : machines_) arm(world_, machine.id, *machine.node);
        return false;
      };
      return world_.run_until(step, after(world_.now(), limit)) == sim::RunEnd::reached;
    }
    // The lab's time goes with the real one here, which the limit is of.
    Instant before = clock_.now();
    const Instant end = after(before, limit);
    for (;;) {
      const Instant real = clock_.now();
      step(std::max<Duration>(real - before, 20us));
      before = real;
      if (done()) return true;
      if (clock_.now() >= end) return false;
      static_cast<void>(wait(200us));
    }
  }
  void pass(Duration duration) override {
    if (!real_) {
      wake();
      static_cast<void>(world_.run_for(duration));
      return;
    }
    // In steps, so that every timer of the way fires in its turn, and the network delivers in between.
    // What came over tcp has to cross the simulated networks too, there and back, before a long step makes it late.
    const Duration settling = networks_.any(Subnet::sim) ? 2ms : 1us;
    const Duration most = std::min<Duration>(1s, std::max<Duration>(duration / 100, 10us));
    for (Duration left = duration; left > Duration::zero(); left -= most) {
      step(std::min(left, most));
      for (int settle = 0; settle < 64; ++settle) {
        fence_.pass();
        if (networks_.any(Subnet::eth)) fence_.pass();  // a bridge hands frames on in a second step of the kernel's
        if (!wait(50us)) break;
        step(settling);
      }
    }
  }
  std::string dead_uri() override {
    if (subnets_.back() == Subnet::shm) return fmt::format("cci://1:{}:nobody:0", subnets_.size());
    if (subnets_.back() == Subnet::eth) return fmt::format("cci://1:{}:[02:00:00:00:00:99]:1", subnets_.size());
    if (subnets_.back() == Subnet::verbs) return fmt::format("cci://1:{}:10.9.0.1:1", subnets_.size());
    const bool of_sockets = subnets_.back() == Subnet::tcp || subnets_.back() == Subnet::udp;
    if (of_sockets) return fmt::format("cci://1:{}:127.0.0.1:1", subnets_.size());
    if (routers_.empty()) return "cci://1:1:10.0.0.2:999";  // a machine that is there, and does not listen at this port
    return fmt::format("cci://1:{}:10.0.0.99:7000", subnets_.size());
  }
  [[nodiscard]] bool routed() const override { return !routers_.empty(); }
  [[nodiscard]] size_t hops() const override { return routers_.size() + 1; }
  [[nodiscard]] std::vector<std::string> violations() const override {
    std::vector<std::string> all = world_.violations();
    for (const auto& cards : networks_.cards) {
      for (std::string& refusal : refusals(*cards)) all.push_back(std::move(refusal));
    }
    return all;
  }
  // Hops are reliable: what is lost on a route is lost at its ends.
  [[nodiscard]] bool lossy() const override {
    return routers_.empty() && (networks_.any(Subnet::datagram) || networks_.any(Subnet::udp) || networks_.any(Subnet::eth));
  }

 private:
  struct Machine {
    sim::NodeId id = 0;
    std::unique_ptr<Node> node;
    std::unique_ptr<sim::Actor> driver;
  };
  void wake() {
    for (const Machine& machine : machines_) world_.wake(machine.id);
    if (!real_) return;
    for (const auto& router : routers_) world_.wake(router->node());
  }
  void step(Duration duration) {
    wake();
    static_cast<void>(world_.run_for(duration));
  }
  bool wait(Duration most) {
    std::vector<pollfd> handles;
    const auto add = [&](int handle) {
      if (handle >= 0) handles.push_back({handle, POLLIN, 0});
    };
    for (const Machine& machine : machines_) {
      if (machine.node->endpoint != nullptr && !machine.node->frozen) add(machine.node->endpoint->os_handle());
    }
    for (const auto& router : routers_) {
      for (const int handle : router->os_handles()) add(handle);
    }
    const timespec timeout{0, static_cast<long>(most.count())};
    return ppoll(handles.data(), handles.size(), &timeout, nullptr) > 0;
  }

  Networks networks_;
  const std::vector<Subnet>& subnets_ = networks_.subnets;
  sim::World& world_ = networks_.world;
  bool real_ = false;
  host::SystemClock clock_;
  LoopbackFence fence_;
  std::vector<std::unique_ptr<RouterActor>> routers_;
  std::deque<Machine> machines_;
};

}  // namespace

std::unique_ptr<Lab> make_routed_lab(uint64_t seed, std::vector<Subnet> subnets, Pool pool, bool secured) {
  return std::make_unique<RoutedLab>(seed, std::move(subnets), pool, secured);
}

}  // namespace ccixfer::contract
