#include "tests/contract/datagram_lab.h"

#include <fmt/format.h>

#include "tests/contract/sim_lab.h"
#include "transports/datagram/datagram_transport.h"

namespace ccixfer::contract {
namespace {

class DatagramLab final : public Lab {
 public:
  // The even seeds have the other congestion control.
  DatagramLab(uint64_t seed, bool secured)
      : world_(seed),
        fabric_(world_, mild_link()),
        congestion_(seed % 2 == 0 ? reliability::Congestion::bbr : reliability::Congestion::new_reno),
        secured_(secured) {}
  ~DatagramLab() override {
    for (auto& machine : machines_) machine.node->endpoint.reset();
  }

  Node& add(const NodeOptions& options) override {
    Machine& machine = machines_.emplace_back();
    machine.node = std::make_unique<Node>();
    Node& node = *machine.node;
    const std::string name = fmt::format("m{}", machines_.size());
    machine.id = world_.add_node(name);
    auto net = std::make_unique<sim::SimDatagramNet>(fabric_, machine.id, name, uint16_t{1});
    node.entropy = std::make_unique<SeededEntropy>(machines_.size());
    node.memory = std::make_shared<cci::MemoryTable>(*node.entropy, *node.counters);
    node.endpoint = std::make_unique<Endpoint>(
        options.endpoint,
        std::make_unique<datagram::DatagramTransport>(datagram::DatagramOptions{options.transport, congestion_}, std::move(net),
                                                      *node.entropy, *node.counters, lab_trust(secured_)),
        node.memory, *node.counters);
    machine.driver = make_driver(node);
    world_.add_actor(machine.id, machine.driver.get());
    return node;
  }

  bool run(const std::function<bool()>& done, Duration limit) override {
    for (const Machine& machine : machines_) world_.wake(machine.id);
    const auto step = [&] {
      if (done()) return true;
      for (const Machine& machine : machines_) arm(world_, machine.id, *machine.node);
      return false;
    };
    return world_.run_until(step, after(world_.now(), limit)) == sim::RunEnd::reached;
  }
  void pass(Duration duration) override {
    for (const Machine& machine : machines_) world_.wake(machine.id);
    static_cast<void>(world_.run_for(duration));
  }
  std::string dead_uri() override { return "sim-datagram://m1:999"; }
  bool lossy() const override { return true; }

 private:
  struct Machine {
    sim::NodeId id = 0;
    std::unique_ptr<Node> node;
    std::unique_ptr<sim::Actor> driver;
  };
  sim::World world_;
  sim::DatagramFabric fabric_;
  const reliability::Congestion congestion_;
  const bool secured_;
  std::deque<Machine> machines_;
};

}  // namespace

sim::DatagramLinkOptions mild_link() {
  sim::DatagramLinkOptions link;
  link.loss_chance = 0.01;
  link.duplicate_chance = 0.01;
  link.corrupt_chance = 0.005;
  link.reorder_chance = 0.02;
  link.partial_chance = 0.1;
  link.fail_chance = 0.005;
  return link;
}

std::unique_ptr<Lab> make_datagram_lab(uint64_t seed, bool secured) { return std::make_unique<DatagramLab>(seed, secured); }

}  // namespace ccixfer::contract
