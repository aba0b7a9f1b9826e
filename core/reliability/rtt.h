// The round trip of one path: smoothed, its variation, and the time after which silence means loss.
// In: one sample for each acknowledgement whose newest packet is new; unambiguous, as no packet number is used twice (so Karn's
// rule is not needed). Out: timeout(), within [rto_min, rto_max]. Source: RFC 6298 §2. Deviation: the minimum is 10 ms instead of
// 1 s (the peer's delayed acks are bounded by ack_delay_max), the first timeout 250 ms instead of 1 s: a lab's path and a WAN's
// alike are shorter than that, and a needless first repetition costs one packet.
#pragma once
#include "core/base/time.h"

namespace ccixfer::reliability {

inline constexpr Duration rto_min = std::chrono::milliseconds(10);
inline constexpr Duration rto_max = std::chrono::seconds(2);
inline constexpr Duration rto_first = std::chrono::milliseconds(250);
inline constexpr Duration ack_delay_max = std::chrono::milliseconds(1);  // how long a receiver may keep an ack back
inline constexpr Duration clock_granularity = std::chrono::milliseconds(1);

class RttEstimator {
 public:
  // `round_trip` as measured; `ack_delay` is what the peer says it kept the ack back: believed up to ack_delay_max, and never so
  // far that the sample falls below the least one seen.
  void sample(Duration round_trip, Duration ack_delay = Duration{0});

  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] Duration smoothed() const { return smoothed_; }
  [[nodiscard]] Duration variation() const { return variation_; }
  [[nodiscard]] Duration latest() const { return latest_; }
  [[nodiscard]] Duration least() const { return least_; }
  [[nodiscard]] Duration timeout() const;

 private:
  bool known_ = false;
  Duration smoothed_ = rto_first;
  Duration variation_{0};
  Duration latest_{0};
  Duration least_ = forever;
};

}  // namespace ccixfer::reliability
