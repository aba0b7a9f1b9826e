// How often values were at most so large: what Prometheus calls a histogram. Any thread may observe and read; a reader sees a
// count that is the sum of the buckets that it read. Source: OpenMetrics 1.0, "Histogram".
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ccixfer {

template <size_t bounds>
class Histogram {
 public:
  explicit constexpr Histogram(const std::array<double, bounds>& upper) : upper_(upper) {}
  void observe(double value) {
    size_t at = 0;
    while (at < bounds && value > upper_[at]) ++at;
    buckets_[at].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  [[nodiscard]] const std::array<double, bounds>& upper() const { return upper_; }
  [[nodiscard]] uint64_t bucket(size_t at) const { return buckets_[at].load(std::memory_order_relaxed); }  // the last: all above
  [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::array<double, bounds> upper_;  // ascending; inclusive
  std::array<std::atomic<uint64_t>, bounds + 1> buckets_{};
  std::atomic<double> sum_{0};
};

}  // namespace ccixfer
