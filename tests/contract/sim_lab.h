// Endpoints in the simulated world: the same cases in virtual time, with streams cut anywhere.
#pragma once
#include "tests/contract/lab.h"

namespace ccixfer::contract {
[[nodiscard]] std::unique_ptr<Lab> make_sim_lab(uint64_t seed);
}
