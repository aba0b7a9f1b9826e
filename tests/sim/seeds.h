// Seeds of a simulated test: CCIXFER_SIM_SEEDS of them from CCIXFER_SIM_FIRST on (defaults: a few, from 1). A failing seed is
// printed; CCIXFER_SIM_FIRST=<seed> CCIXFER_SIM_SEEDS=1 CCIXFER_SIM_VERBOSE=1 replays it, with what the programs say on standard
// error.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "transports/sim/world.h"

namespace ccixfer::testing {

inline uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::stoull(text) : otherwise;
}
inline uint64_t first_seed() { return number_from_environment("CCIXFER_SIM_FIRST", 1); }
inline uint64_t seed_count(uint64_t otherwise) { return number_from_environment("CCIXFER_SIM_SEEDS", otherwise); }
// What the clock of a seed's world shows at first. A real one shows how long the machine has been up: nothing, years, or just so
// much that a count of it in 31 or 32 bits wraps while the test runs.
inline sim::WorldOptions world_of(uint64_t seed) {
  using std::chrono::microseconds, std::chrono::milliseconds, std::chrono::seconds, std::chrono::hours;
  constexpr std::array<Duration, 6> wraps{microseconds(1LL << 31), microseconds(1LL << 32), milliseconds(1LL << 31),
                                          milliseconds(1LL << 32), seconds(1LL << 31),      seconds(1LL << 32)};
  sim::Random random(seed * 0x9e37'79b9 + 5);
  sim::WorldOptions options;
  if (random.chance(0.3)) return options;
  if (random.chance(0.5)) {
    options.start += random.between(Duration(0), Duration(hours(24 * 365 * 20)));
  } else {
    options.start += wraps[static_cast<size_t>(random.below(wraps.size()))] - random.between(Duration(0), Duration(seconds(5)));
  }
  return options;
}
inline bool verbose() { return number_from_environment("CCIXFER_SIM_VERBOSE", 0) != 0; }

}  // namespace ccixfer::testing
