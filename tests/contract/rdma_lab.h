// Endpoints in the simulated world whose cards read and write one another's memory: the RDMA transport over SimRdmaNet.
#pragma once
#include "tests/contract/lab.h"
#include "transports/sim/sim_rdma.h"

namespace ccixfer::contract {
[[nodiscard]] std::unique_ptr<Lab> make_rdma_lab(uint64_t seed, bool secured = false);
[[nodiscard]] sim::RdmaLinkOptions prompt_cards();
// What the transport must never make a card refuse, in words; empty: nothing.
[[nodiscard]] std::vector<std::string> refusals(const sim::RdmaFabric& fabric);
}  // namespace ccixfer::contract
