// The world's seeded generator (xoshiro256**, seeded by splitmix64) and an Entropy over one. Own code, so that a seed
// means the same on every machine and library. Not for secrets.
// Source: Blackman, Vigna, 'Scrambled linear pseudorandom number generators' (public domain algorithms).
#pragma once
#include <array>
#include <cstdint>

#include "core/base/time.h"
#include "core/ports/entropy.h"

namespace ccixfer::sim {

class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  uint64_t below(uint64_t bound);                 // [0, bound); 0 for a bound of 0
  uint64_t between(uint64_t low, uint64_t high);  // [low, high]
  bool chance(double probability);                // 0: never, 1: always
  Duration between(Duration low, Duration high);  // [low, high]
  Duration exponential(Duration mean);            // at least 1 ns

 private:
  double unit();  // [0, 1)
  std::array<uint64_t, 4> state_{};
};

class SimEntropy final : public ports::Entropy {
 public:
  explicit SimEntropy(uint64_t seed) : random_(seed) {}
  uint64_t next_u64() override { return random_.next(); }

 private:
  Random random_;
};

}  // namespace ccixfer::sim
