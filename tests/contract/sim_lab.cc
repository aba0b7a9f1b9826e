#include "tests/contract/sim_lab.h"

#include <fmt/format.h>

#include "transports/sim/card_transport.h"
#include "transports/sim/sim_net.h"

namespace ccixfer::contract {
namespace {

constexpr const char* network = "n";

class Driver final : public sim::Actor {
 public:
  explicit Driver(Node& node) : node_(node) {}
  void turn(Instant now) override {
    if (node_.frozen || node_.endpoint == nullptr) return;
    node_.endpoint->turn(now);
    if (node_.collects) node_.collect();
    static_cast<void>(node_.endpoint->arm_os_handle());
  }
  // Who leaves its events waiting cannot wait for the handle, and a handle of the host knows nothing of the world's time.
  [[nodiscard]] Instant next_deadline() const override {
    if (node_.frozen || node_.endpoint == nullptr) return never;
    return node_.collects && node_.endpoint->os_handle() < 0 ? never : node_.endpoint->next_deadline();
  }

 private:
  Node& node_;
};

class SimLab final : public WorldLab {
 public:
  SimLab(uint64_t seed, bool cards, bool secured) : WorldLab(seed), fabric_(world(), links(cards)), secured_(secured) {}
  ~SimLab() override { end_all(); }
  std::string dead_uri() override { return "sim://m1:999"; }

 private:
  static sim::LinkOptions links(bool cards) {
    sim::LinkOptions link;
    if (cards) link.card.emplace();
    return link;
  }
  [[nodiscard]] std::unique_ptr<ports::Transport> make_transport(sim::NodeId id, const std::string& name,
                                                                 const ports::TransportOptions& options, Node& node) override {
    sim::SimNetOptions net;
    net.networks = {{network, name}};
    net.port = 1;
    return sim::make_transport(fabric_, id, net, options, *node.counters, lab_trust(secured_));
  }

  sim::Fabric fabric_;
  const bool secured_;
};

}  // namespace

void arm(sim::World& world, sim::NodeId id, const Node& node) {
  if (node.frozen || node.endpoint == nullptr) return;
  static_cast<void>(node.endpoint->arm_os_handle());
  world.look(id);
}

std::unique_ptr<sim::Actor> make_driver(Node& node) { return std::make_unique<Driver>(node); }

Node& WorldLab::add(const NodeOptions& options) {
  Machine& machine = machines_.emplace_back();
  machine.node = std::make_unique<Node>();
  Node& node = *machine.node;
  const std::string name = fmt::format("m{}", machines_.size());
  machine.id = world_.add_node(name);
  node.entropy = std::make_unique<SeededEntropy>(machines_.size());
  node.memory = std::make_shared<cci::MemoryTable>(*node.entropy, *node.counters);
  node.endpoint = std::make_unique<Endpoint>(options.endpoint, make_transport(machine.id, name, options.transport, node),
                                             node.memory, *node.counters);
  machine.driver = make_driver(node);
  world_.add_actor(machine.id, machine.driver.get());
  return node;
}

bool WorldLab::run(const std::function<bool()>& done, Duration limit) {
  for (const Machine& machine : machines_) world_.wake(machine.id);
  const auto step = [&] {
    if (done()) return true;
    for (const Machine& machine : machines_) arm(world_, machine.id, *machine.node);
    return false;
  };
  return world_.run_until(step, after(world_.now(), limit)) == sim::RunEnd::reached;
}

void WorldLab::pass(Duration duration) {
  for (const Machine& machine : machines_) world_.wake(machine.id);
  static_cast<void>(world_.run_for(duration));
}

void WorldLab::end_all() {
  for (auto& machine : machines_) machine.node->endpoint.reset();
}

std::unique_ptr<Lab> make_sim_lab(uint64_t seed, bool cards, bool secured) {
  return std::make_unique<SimLab>(seed, cards, secured);
}

}  // namespace ccixfer::contract
