// The cap of --bwlimit at a receiver, one for all sessions of the process and all their time. A posted
// buffer is paid for whole, and what a put leaves of it is given back. So the cap holds however the
// credit is used. A cap of one peer stands below that of the process, and both hold. Pure.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "app/session/limits.h"
#include "core/base/time.h"

namespace ccixfer::recv {

class RateAllowance {
 public:
  explicit RateAllowance(uint64_t rate_bytes_per_s, std::shared_ptr<RateAllowance> above = {})  // 0: no cap
      : rate_bytes_per_s_(static_cast<double>(rate_bytes_per_s)), above_(std::move(above)) {}
  // From now on. 0: no cap. What was posted while there was none is paid for at the new rate.
  void set(uint64_t rate_bytes_per_s, Instant now) {
    refill(now);
    if (rate_bytes_per_s_ <= 0) bytes_ = -static_cast<double>(posted_) * session::segment_bytes_max;
    rate_bytes_per_s_ = static_cast<double>(rate_bytes_per_s);
  }
  void refill(Instant now) {
    if (above_) above_->refill(now);
    if (refilled_ && now > *refilled_) {
      const double seconds = std::chrono::duration<double>(now - *refilled_).count();
      bytes_ = std::min(bytes_ + seconds * rate_bytes_per_s_, burst_bytes);
    }
    refilled_ = now;
  }
  [[nodiscard]] bool may_post() const { return may_post_alone() && (!above_ || above_->may_post()); }
  void posted() {
    ++posted_;
    bytes_ -= session::segment_bytes_max;
    if (above_) above_->posted();
  }
  void came_back(uint64_t filled_bytes) {
    if (above_) above_->came_back(filled_bytes);
    --posted_;
    bytes_ = std::min(bytes_ + session::segment_bytes_max - static_cast<double>(filled_bytes), burst_bytes);
  }
  [[nodiscard]] Instant next_deadline(Instant now) const {  // never: a buffer may be posted now
    const Instant above = above_ ? above_->next_deadline(now) : never;
    if (may_post_alone()) return above;
    const double seconds = -bytes_ / rate_bytes_per_s_ + 0.001;
    const Instant own = now + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, 3600.0)));
    return above == never ? own : std::max(own, above);
  }

 private:
  [[nodiscard]] bool may_post_alone() const { return rate_bytes_per_s_ <= 0 || bytes_ > 0; }

  static constexpr double burst_bytes = session::segment_bytes_max;
  double rate_bytes_per_s_;
  double bytes_ = burst_bytes;
  int64_t posted_ = 0;  // buffers that are out
  std::optional<Instant> refilled_;
  const std::shared_ptr<RateAllowance> above_;
};

}  // namespace ccixfer::recv
