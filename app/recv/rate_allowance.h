// The cap of --bwlimit at a receiver, one for all sessions of the process and all their time. A posted
// buffer is paid for whole, and what a put leaves of it is given back. So the cap holds however the
// credit is used. Pure.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "app/session/limits.h"
#include "core/base/time.h"

namespace ccixfer::recv {

class RateAllowance {
 public:
  explicit RateAllowance(uint64_t rate_bytes_per_s) : rate_bytes_per_s_(static_cast<double>(rate_bytes_per_s)) {}  // 0: no cap
  void refill(Instant now) {
    if (refilled_ && now > *refilled_) {
      const double seconds = std::chrono::duration<double>(now - *refilled_).count();
      bytes_ = std::min(bytes_ + seconds * rate_bytes_per_s_, burst_bytes);
    }
    refilled_ = now;
  }
  [[nodiscard]] bool may_post() const { return rate_bytes_per_s_ <= 0 || bytes_ > 0; }
  void posted() { bytes_ -= session::segment_bytes_max; }
  void came_back(uint64_t filled_bytes) {
    bytes_ = std::min(bytes_ + session::segment_bytes_max - static_cast<double>(filled_bytes), burst_bytes);
  }
  [[nodiscard]] Instant next_deadline(Instant now) const {  // never: a buffer may be posted now
    if (may_post()) return never;
    const double seconds = -bytes_ / rate_bytes_per_s_ + 0.001;
    return now + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, 3600.0)));
  }

 private:
  static constexpr double burst_bytes = session::segment_bytes_max;
  double rate_bytes_per_s_;
  double bytes_ = burst_bytes;
  std::optional<Instant> refilled_;
};

}  // namespace ccixfer::recv
