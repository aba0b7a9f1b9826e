// Endpoints in the simulated world over datagrams that are now and then lost, doubled, damaged and overtaken.
#pragma once
#include "tests/contract/lab.h"
#include "transports/sim/sim_datagram.h"

namespace ccixfer::contract {
[[nodiscard]] std::unique_ptr<Lab> make_datagram_lab(uint64_t seed, bool secured = false);
[[nodiscard]] sim::DatagramLinkOptions mild_link();
}  // namespace ccixfer::contract
