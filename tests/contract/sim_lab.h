// Endpoints in the simulated world: the same cases in virtual time, with streams cut anywhere.
#pragma once
#include <deque>

#include "tests/contract/lab.h"
#include "transports/sim/world.h"

namespace ccixfer::contract {
// `cards`: the network has cards that check keys, as those with RDMA do.
[[nodiscard]] std::unique_ptr<Lab> make_sim_lab(uint64_t seed, bool cards = false, bool secured = false);
// Turns a node's endpoint as a driver would that waits for the OS handle and nothing else: what a turn would do, timers included,
// the armed handle has to show. (In the simulated world the net's deadline stands for the handle's timer.)
[[nodiscard]] std::unique_ptr<sim::Actor> make_driver(Node& node);
// The same after the application may have acted outside a turn.
void arm(sim::World& world, sim::NodeId id, const Node& node);

// Endpoints on machines m1, m2 ... of a world, whatever the network. Each lab declares its network after this base, and calls
// end_all() before that goes.
class WorldLab : public Lab {
 public:
  Node& add(const NodeOptions& options) final;
  bool run(const std::function<bool()>& done, Duration limit) final;
  void pass(Duration duration) final;
  [[nodiscard]] std::vector<std::string> violations() const override { return world_.violations(); }

 protected:
  explicit WorldLab(uint64_t seed) : world_(seed) {}
  // Of the machine `name`, whose entropy and counters `node` has.
  [[nodiscard]] virtual std::unique_ptr<ports::Transport> make_transport(sim::NodeId id, const std::string& name,
                                                                         const ports::TransportOptions& options, Node& node) = 0;
  [[nodiscard]] sim::World& world() { return world_; }
  void end_all();

 private:
  struct Machine {
    sim::NodeId id = 0;
    std::unique_ptr<Node> node;
    std::unique_ptr<sim::Actor> driver;
  };
  sim::World world_;
  std::deque<Machine> machines_;
};
}  // namespace ccixfer::contract
