// Seeds of a simulated test: CCIXFER_SIM_SEEDS of them from CCIXFER_SIM_FIRST on (defaults: a few, from 1). A failing seed is
// printed; CCIXFER_SIM_FIRST=<seed> CCIXFER_SIM_SEEDS=1 CCIXFER_SIM_VERBOSE=1 replays it, with what the programs say on standard
// error.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>

namespace ccixfer::testing {

inline uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::stoull(text) : otherwise;
}
inline uint64_t first_seed() { return number_from_environment("CCIXFER_SIM_FIRST", 1); }
inline uint64_t seed_count(uint64_t otherwise) { return number_from_environment("CCIXFER_SIM_SEEDS", otherwise); }
inline bool verbose() { return number_from_environment("CCIXFER_SIM_VERBOSE", 0) != 0; }

}  // namespace ccixfer::testing
