// Endpoints in the simulated world: the same cases in virtual time, with streams cut anywhere.
#pragma once
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
}  // namespace ccixfer::contract
