// Percentiles of what was measured. In: durations, in any order. Out: nearest-rank percentiles: the smallest sample that at least
// p percent of all samples do not exceed, so every figure is one that was really seen. Bound: samples_max; more are not kept.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace ccixfer::bench {

inline constexpr size_t samples_max = 1u << 21;

struct Percentiles {
  Duration min{0}, p50{0}, p90{0}, p99{0}, p99_9{0};
};

class Samples {
 public:
  void add(Duration sample);
  void clear() { samples_.clear(); }
  [[nodiscard]] size_t count() const { return samples_.size(); }
  [[nodiscard]] bool full() const { return samples_.size() >= samples_max; }
  // All zero without samples. `divisor`: of every sample; 2 for half round trips.
  [[nodiscard]] Percentiles percentiles(int64_t divisor = 1) const;

 private:
  std::vector<Duration> samples_;
};

// The rank (from 0) of a percentile given in tenths of a percent, among count > 0 samples in order.
[[nodiscard]] size_t nearest_rank(size_t count, uint32_t per_mille);

}  // namespace ccixfer::bench
