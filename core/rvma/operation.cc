#include "core/rvma/operation.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::rvma {

FragmentState Operation::state(uint64_t begin, uint64_t end) const {
  for (const Range& range : placing_) {
    if (begin < range.end && range.begin < end) return FragmentState::placing;
  }
  return placed_.contains(begin, end) || whole() ? FragmentState::placed : FragmentState::absent;
}

bool Operation::full() const { return placed_.ranges() + placing_.size() >= ranges_per_operation_max; }

void Operation::begin(uint64_t begin, uint64_t end) {
  CHECK(begin < end && begin >= base_bytes_ && end - base_bytes_ <= total_bytes_);
  CHECK(state(begin, end) == FragmentState::absent);
  placing_.push_back({begin, end});
}

uint64_t Operation::end(uint64_t begin, uint64_t end, bool complete) {
  auto range =
      std::find_if(placing_.begin(), placing_.end(), [&](const Range& r) { return r.begin == begin; });  // they do not overlap
  CHECK(range != placing_.end() && range->end == end);
  *range = placing_.back();
  placing_.pop_back();
  if (!complete) return 0;
  const bool one_fragment = end - begin == total_bytes_;
  const uint64_t fresh = one_fragment ? total_bytes_ - placed_bytes_ : placed_.add(begin, end);
  placed_bytes_ += fresh;
  return fresh;
}

}  // namespace ccixfer::rvma
