// A token bucket that lets a segment go while it has no debt: the average is the rate, and a burst is at
// most burst_ns of it and one segment. All sessions of a process share one.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::send {

class RateCap {
 public:
  static constexpr Duration burst = std::chrono::milliseconds(20);

  explicit RateCap(uint64_t rate_bytes_per_s) : rate_bytes_per_s_(static_cast<double>(rate_bytes_per_s)) {}  // 0: no cap
  [[nodiscard]] bool may_send(Instant now) const { return rate_bytes_per_s_ <= 0.0 || now >= free_at_; }
  void sent(Instant now, uint64_t bytes) {
    if (rate_bytes_per_s_ <= 0.0) return;
    const double ns = static_cast<double>(bytes) / rate_bytes_per_s_ * 1e9;
    const Instant from = std::max(free_at_, now - burst);
    free_at_ = after(from, Duration(static_cast<int64_t>(std::min(ns, 9e18))));
  }
  [[nodiscard]] Instant free_at() const { return free_at_; }

 private:
  double rate_bytes_per_s_;
  Instant free_at_{};  // when the debt is paid
};

}  // namespace ccixfer::send
