// Spreads a window over its round trip: a bucket of credit that fills at `rate` and holds a burst. Pure. In: what was sent, and the
// rate in bytes a second from then on. Out: the instant from which the next datagram may go. Source: RFC 9002 §7.7.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::reliability {

class Pacer {
 public:
  explicit Pacer(uint64_t burst_bytes) : burst_(static_cast<int64_t>(burst_bytes)), credit_(static_cast<int64_t>(burst_bytes)) {}

  void sent(uint64_t bytes, uint64_t rate_bytes_per_s, Instant now) {
    fill(now);
    rate_ = rate_bytes_per_s;
    credit_ -= static_cast<int64_t>(bytes);
  }
  [[nodiscard]] Instant ready_at(Instant now) const {
    const int64_t credit = credit_at(now);
    if (credit > 0 || rate_ == 0) return now;
    return now + Duration(static_cast<int64_t>(static_cast<uint64_t>(1 - credit) * 1'000'000'000 / rate_ + 1));
  }

 private:
  [[nodiscard]] int64_t credit_at(Instant now) const {
    const auto elapsed_us = static_cast<uint64_t>(std::clamp<int64_t>((now - filled_at_).count() / 1000, 0, 1'000'000));
    return std::min(burst_, credit_ + static_cast<int64_t>(elapsed_us * rate_ / 1'000'000));
  }
  void fill(Instant now) {
    credit_ = rate_ == 0 ? burst_ : credit_at(now);
    filled_at_ = now;
  }
  int64_t burst_;
  int64_t credit_;
  uint64_t rate_ = 0;
  Instant filled_at_{};
};

}  // namespace ccixfer::reliability
