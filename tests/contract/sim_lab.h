// Endpoints in the simulated world: the same cases in virtual time, with streams cut anywhere.
#pragma once
#include "tests/contract/lab.h"
#include "transports/sim/world.h"

namespace ccixfer::contract {
[[nodiscard]] std::unique_ptr<Lab> make_sim_lab(uint64_t seed);
// Turns a node's endpoint as its driver would.
[[nodiscard]] std::unique_ptr<sim::Actor> make_driver(Node& node);
// The application may have acted outside a turn, without a system call that the world would see.
void wake_if_due(sim::World& world, sim::NodeId id, const Node& node);
}  // namespace ccixfer::contract
