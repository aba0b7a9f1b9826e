// A token bucket that lets a segment go while it has no debt: the average is the rate, and a burst is at
// most burst_ns of it and one segment. All sessions of a process share one. A cap of one peer stands
// below that of the process, and both hold.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/time.h"

namespace ccixfer::send {

class RateCap {
 public:
  static constexpr Duration burst = std::chrono::milliseconds(20);

  explicit RateCap(uint64_t rate_bytes_per_s, std::shared_ptr<RateCap> above = {})  // 0: no cap
      : rate_bytes_per_s_(static_cast<double>(rate_bytes_per_s)), above_(std::move(above)) {}
  // From now on: a debt is paid at the new rate. 0: no cap.
  void set(uint64_t rate_bytes_per_s, Instant now) {
    const double before = rate_bytes_per_s_;
    rate_bytes_per_s_ = static_cast<double>(rate_bytes_per_s);
    if (now >= free_at_) return;
    const double owed_ns = rate_bytes_per_s == 0 ? 0 : static_cast<double>((free_at_ - now).count()) * before / rate_bytes_per_s_;
    free_at_ = after(now, Duration(static_cast<int64_t>(std::min(owed_ns, 9e18))));
  }
  [[nodiscard]] bool may_send(Instant now) const {
    return (rate_bytes_per_s_ <= 0.0 || now >= free_at_) && (!above_ || above_->may_send(now));
  }
  void sent(Instant now, uint64_t bytes) {
    if (above_) above_->sent(now, bytes);
    if (rate_bytes_per_s_ <= 0.0) return;
    const double ns = static_cast<double>(bytes) / rate_bytes_per_s_ * 1e9;
    const Instant from = std::max(free_at_, now - burst);
    free_at_ = after(from, Duration(static_cast<int64_t>(std::min(ns, 9e18))));
  }
  [[nodiscard]] Instant free_at() const { return above_ ? std::max(free_at_, above_->free_at()) : free_at_; }

 private:
  double rate_bytes_per_s_;
  Instant free_at_{};  // when the debt is paid
  const std::shared_ptr<RateCap> above_;
};

}  // namespace ccixfer::send
