#include "app/bench/statistics.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::bench {

size_t nearest_rank(size_t count, uint32_t per_mille) {
  CHECK(count > 0 && per_mille <= 1000);
  const uint64_t covered = (uint64_t{count} * per_mille + 999) / 1000;  // samples that are not above it, rounded up
  return covered == 0 ? 0 : static_cast<size_t>(covered - 1);
}

void Samples::add(Duration sample) {
  if (!full()) samples_.push_back(sample);
}

Percentiles Samples::percentiles(int64_t divisor) const {
  if (samples_.empty()) return {};
  std::vector<Duration> sorted = samples_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](uint32_t per_mille) { return sorted[nearest_rank(sorted.size(), per_mille)] / divisor; };
  return {sorted.front() / divisor, at(500), at(900), at(990), at(999)};
}

}  // namespace ccixfer::bench
