#include "core/reliability/rtt.h"

#include <algorithm>

namespace ccixfer::reliability {

void RttEstimator::sample(Duration round_trip, Duration ack_delay) {
  round_trip = std::max(round_trip, Duration{1});
  least_ = std::min(least_, round_trip);
  ack_delay = std::clamp(ack_delay, Duration{0}, ack_delay_max);
  latest_ = round_trip - ack_delay >= least_ ? round_trip - ack_delay : round_trip;
  if (!known_) {
    known_ = true;
    smoothed_ = latest_;
    variation_ = latest_ / 2;
    return;
  }
  const Duration error = smoothed_ > latest_ ? smoothed_ - latest_ : latest_ - smoothed_;
  variation_ = (3 * variation_ + error) / 4;
  smoothed_ = (7 * smoothed_ + latest_) / 8;
}

Duration RttEstimator::timeout() const {
  if (!known_) return rto_first;
  return std::clamp(smoothed_ + std::max(clock_granularity, 4 * variation_) + ack_delay_max, rto_min, rto_max);
}

}  // namespace ccixfer::reliability
