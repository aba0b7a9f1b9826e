// Routed endpoints in the simulated world: nodes alternate between two subnets that one router joins, so every connection of the
// cases crosses it.
#pragma once
#include "tests/contract/lab.h"

namespace ccixfer::contract {
[[nodiscard]] std::unique_ptr<Lab> make_routed_lab(uint64_t seed);
}
