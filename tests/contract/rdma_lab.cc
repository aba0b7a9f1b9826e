#include "tests/contract/rdma_lab.h"

#include <fmt/format.h>

#include "tests/contract/sim_lab.h"
#include "transports/rdma/rdma_transport.h"

namespace ccixfer::contract {
namespace {

class RdmaLab final : public Lab {
 public:
  explicit RdmaLab(uint64_t seed) : world_(seed), fabric_(world_, prompt_cards()) {}
  ~RdmaLab() override {
    for (auto& machine : machines_) machine.node->endpoint.reset();
  }

  Node& add(const NodeOptions& options) override {
    Machine& machine = machines_.emplace_back();
    machine.node = std::make_unique<Node>();
    Node& node = *machine.node;
    const std::string name = fmt::format("m{}", machines_.size());
    machine.id = world_.add_node(name);
    auto net = std::make_unique<sim::SimRdmaNet>(fabric_, machine.id, name, uint16_t{1});
    node.entropy = std::make_unique<SeededEntropy>(machines_.size());
    node.memory = std::make_shared<cci::MemoryTable>(*node.entropy, *node.counters);
    node.endpoint = std::make_unique<Endpoint>(
        options.endpoint, std::make_unique<rdma::RdmaTransport>(options.transport, std::move(net), *node.counters), node.memory,
        *node.counters);
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
  std::string dead_uri() override { return "sim-rdma://m1:999"; }
  [[nodiscard]] std::vector<std::string> violations() const override {
    std::vector<std::string> all = world_.violations();
    for (std::string& refusal : refusals(fabric_)) all.push_back(std::move(refusal));
    return all;
  }

 private:
  struct Machine {
    sim::NodeId id = 0;
    std::unique_ptr<Node> node;
    std::unique_ptr<sim::Actor> driver;
  };
  sim::World world_;
  sim::RdmaFabric fabric_;
  std::deque<Machine> machines_;
};

}  // namespace

// Cards that let go of memory in time: what happens with others is no matter of CCI's (unit/rdma).
sim::RdmaLinkOptions prompt_cards() {
  sim::RdmaLinkOptions link;
  link.await_fails_chance = 0;
  return link;
}

std::vector<std::string> refusals(const sim::RdmaFabric& fabric) {
  if (fabric.totals().refused == 0) return {};
  return {fmt::format("a card refused {} accesses of a peer", fabric.totals().refused)};
}

std::unique_ptr<Lab> make_rdma_lab(uint64_t seed) { return std::make_unique<RdmaLab>(seed); }

}  // namespace ccixfer::contract
