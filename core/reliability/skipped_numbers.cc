#include "core/reliability/skipped_numbers.h"

#include <algorithm>

namespace ccixfer::reliability {
namespace {

// The finalizer of splitmix64: neighbours have nothing in common.
uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

bool SkippedNumbers::skips(uint64_t number) {
  if (!is_on_ || mix(secret_ + number * 0x9e3779b97f4a7c15u) % one_of != 0) return false;
  last_[next_++ % remembered] = number;
  return true;
}

bool SkippedNumbers::is_named_by(const Ack& ack) const {
  return std::any_of(last_.begin(), last_.end(), [&](uint64_t number) { return number <= ack.largest() && ack.contains(number); });
}

uint64_t SkippedNumbers::between(uint64_t older, uint64_t newer) const {
  return static_cast<uint64_t>(
      std::count_if(last_.begin(), last_.end(), [&](uint64_t number) { return older < number && number < newer; }));
}

}  // namespace ccixfer::reliability
