#include "transports/sim/random.h"

#include <bit>
#include <cmath>

namespace ccixfer::sim {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {  // splitmix64: no seed gives the all-zero state
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t bound) { return bound == 0 ? 0 : next() % bound; }  // the bias is of no matter here

uint64_t Random::between(uint64_t low, uint64_t high) {
  const uint64_t span = high - low;
  return span == ~uint64_t{0} ? next() : low + below(span + 1);
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
bool Random::chance(double probability) { return probability > 0 && unit() < probability; }

Duration Random::between(Duration low, Duration high) {
  if (high <= low) return low;
  return low + Duration(static_cast<int64_t>(below(static_cast<uint64_t>((high - low).count()) + 1)));
}

Duration Random::exponential(Duration mean) {
  const double ns = -std::log1p(-unit()) * static_cast<double>(mean.count());
  return Duration(1 + static_cast<int64_t>(std::fmin(ns, 4e18)));
}

}  // namespace ccixfer::sim
