#include "core/rvma/interval_set.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::rvma {

uint64_t IntervalSet::add(uint64_t begin, uint64_t end) {
  CHECK(begin < end);
  // [first, last): the ranges that touch or overlap the new one; they melt into it.
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin, [](const Range& r, uint64_t at) { return r.end < at; });
  uint64_t fresh = end - begin;
  Range merged{begin, end};
  auto last = first;
  for (; last != ranges_.end() && last->begin <= end; ++last) {
    const uint64_t common_begin = std::max(begin, last->begin);
    const uint64_t common_end = std::min(end, last->end);
    if (common_begin < common_end) fresh -= common_end - common_begin;
    merged.begin = std::min(merged.begin, last->begin);
    merged.end = std::max(merged.end, last->end);
  }
  if (first == last) {
    ranges_.insert(first, merged);
  } else {
    *first = merged;
    ranges_.erase(first + 1, last);
  }
  return fresh;
}

uint64_t IntervalSet::drop_lowest() {
  CHECK(!ranges_.empty());
  const uint64_t end = ranges_.front().end;
  ranges_.erase(ranges_.begin());
  return end;
}

bool IntervalSet::contains(uint64_t begin, uint64_t end) const {
  auto range = std::lower_bound(ranges_.begin(), ranges_.end(), begin, [](const Range& r, uint64_t at) { return r.end <= at; });
  return range != ranges_.end() && range->begin <= begin && end <= range->end;
}

}  // namespace ccixfer::rvma
