#include "tests/contract/routed_lab.h"

#include <fmt/format.h>

#include "routing/router/router.h"
#include "routing/session/routed_transport.h"
#include "tests/contract/sim_lab.h"
#include "transports/sim/sim_net.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::contract {
namespace {

constexpr uint16_t port = 7000;
constexpr const char* router_address = "10.0.0.1";
const std::string router_uri = fmt::format("sim://{}:{}", router_address, port);

std::unique_ptr<Endpoint> native_endpoint(sim::Fabric& fabric, sim::NodeId node, const std::string& network,
                                          const std::string& address, const NodeOptions& options,
                                          const std::shared_ptr<cci::MemoryTable>& memory, Counters& counters) {
  sim::SimNetOptions net;
  net.networks = {{network, address}};
  net.port = port;
  return std::make_unique<Endpoint>(
      cci::EndpointOptions{},
      std::make_unique<stream::StreamTransport>(options.transport, std::make_unique<sim::SimNet>(fabric, node, net), counters),
      memory, counters);
}

class RouterActor final : public sim::Actor {
 public:
  RouterActor(sim::World& world, sim::Fabric& fabric) : world_(world), node_(world.add_node("router")), entropy_(99) {
    memory_ = std::make_shared<cci::MemoryTable>(entropy_, counters_);
    std::vector<routing::RouterDevice> devices;
    for (uint32_t subnet = 1; subnet <= 2; ++subnet) {
      routing::RouterDevice device;
      device.name = fmt::format("lan{}", subnet);
      device.subnet = {1, subnet};
      device.scheme = "sim";
      device.endpoint = native_endpoint(fabric, node_, device.name, router_address, {}, memory_, counters_);
      device.rate_bits_per_s = 10'000'000'000;
      devices.push_back(std::move(device));
    }
    routing::RouterOptions options;
    options.fragment_bytes = 64u << 10;
    options.memory_bytes = 16u * (64u << 10);
    auto made = routing::Router::create(options, std::move(devices), memory_, entropy_, counters_);
    REQUIRE(made);
    router_ = std::move(*made);
    world_.add_actor(node_, this);
    world_.wake(node_);
  }
  ~RouterActor() override { world_.remove_actor(node_, this); }
  void turn(Instant now) override { router_->turn(now); }
  [[nodiscard]] Instant next_deadline() const override { return router_->next_deadline(); }
  [[nodiscard]] bool ready() const { return router_->ready(); }

 private:
  sim::World& world_;
  sim::NodeId node_;
  Counters counters_;
  SeededEntropy entropy_;
  std::shared_ptr<cci::MemoryTable> memory_;
  std::unique_ptr<routing::Router> router_;
};

class RoutedLab final : public Lab {
 public:
  explicit RoutedLab(uint64_t seed) : world_(seed), fabric_(world_), router_(world_, fabric_) {
    REQUIRE(world_.run_until([&] { return router_.ready(); }, after(world_.now(), std::chrono::seconds(60))) ==
            sim::RunEnd::reached);
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
    const uint32_t subnet = machines_.size() % 2 == 1 ? 1 : 2;
    const std::string address = fmt::format("10.0.0.{}", 1 + machines_.size());
    machine.id = world_.add_node(address);
    node.entropy = std::make_unique<SeededEntropy>(machines_.size());
    node.memory = std::make_shared<cci::MemoryTable>(*node.entropy, *node.counters);
    routing::RoutedOptions routed;
    routed.subnet = {1, subnet};
    routed.routers = {router_uri};
    routed.keepalive = options.transport.keepalive;
    auto lower = native_endpoint(fabric_, machine.id, fmt::format("lan{}", subnet), address, options, node.memory, *node.counters);
    node.endpoint = std::make_unique<Endpoint>(
        options.endpoint, routing::make_routed_transport(routed, std::move(lower), node.memory, *node.entropy, *node.counters),
        node.memory, *node.counters);
    machine.driver = make_driver(node);
    world_.add_actor(machine.id, machine.driver.get());
    return node;
  }

  bool run(const std::function<bool()>& done, Duration limit) override {
    for (const Machine& machine : machines_) world_.wake(machine.id);
    return world_.run_until(done, after(world_.now(), limit)) == sim::RunEnd::reached;
  }
  void pass(Duration duration) override {
    for (const Machine& machine : machines_) world_.wake(machine.id);
    static_cast<void>(world_.run_for(duration));
  }
  std::string dead_uri() override { return "cci://1:2:10.0.0.99:7000"; }
  bool routed() const override { return true; }

 private:
  struct Machine {
    sim::NodeId id = 0;
    std::unique_ptr<Node> node;
    std::unique_ptr<sim::Actor> driver;
  };
  sim::World world_;
  sim::Fabric fabric_;
  RouterActor router_;
  std::deque<Machine> machines_;
};

}  // namespace

std::unique_ptr<Lab> make_routed_lab(uint64_t seed) { return std::make_unique<RoutedLab>(seed); }

}  // namespace ccixfer::contract
