// What a connection has learned of its path: the highest rate at which it delivered lately, the
// shortest round trip lately, and where one round of packets ends and the next begins. Pure.
// Source: draft-cardwell-iccrg-bbr-congestion-control-02, sections 4.1 and 4.5.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"
#include "core/reliability/delivery_rate.h"

namespace ccixfer::reliability {

// The highest rate of this cycle of probing and of the one before.
class BandwidthFilter {
 public:
  void add(const RateSample& sample) {
    const uint64_t rate = sample.bytes_per_s();
    if (!sample.app_limited || rate > most()) this_cycle_ = std::max(this_cycle_, rate);
  }
  void next_cycle() {
    if (this_cycle_ == 0) return;  // nothing was learned in it: what was known stays
    last_cycle_ = this_cycle_;
    this_cycle_ = 0;
  }
  [[nodiscard]] uint64_t most() const { return std::max(this_cycle_, last_cycle_); }

 private:
  uint64_t this_cycle_ = 0;
  uint64_t last_cycle_ = 0;
};

// The shortest round trip of the last `life`. One that is older gives way to the next that comes,
// which may have waited in a queue: is_stale() asks for one that has not.
class RoundTripFilter {
 public:
  static constexpr Duration life = std::chrono::seconds(10);
  static constexpr Duration assumed = std::chrono::milliseconds(1);  // until one has come

  void add(Duration round_trip, Instant now) {
    const bool old = now > after(measured_at_, life);
    if (round_trip > least_ && !old) return;
    stale_ = stale_ || (old && round_trip > least_);
    least_ = std::max(round_trip, Duration{1000});
    measured_at_ = now;
  }
  void refreshed(Instant now) {
    stale_ = false;
    measured_at_ = now;
  }
  [[nodiscard]] Duration least() const { return known() ? least_ : assumed; }
  [[nodiscard]] bool known() const { return least_ != forever; }
  [[nodiscard]] bool is_stale() const { return stale_; }

 private:
  Duration least_ = forever;
  Instant measured_at_{};
  bool stale_ = false;
};

// A round ends when a packet is acknowledged that was sent after the round began. It counts what
// was delivered and lost in it.
class RoundCounter {
 public:
  // Whether the acknowledgement ends a round.
  [[nodiscard]] bool ends(const RateSample& sample, uint64_t delivered_bytes) {
    if (sample.delivered_before < end_) return false;
    delivered_bytes_ = delivered_bytes - began_;
    lost_bytes_ = lost_now_;
    began_ = end_ = delivered_bytes;
    lost_now_ = 0;
    return true;
  }
  void lost(uint64_t bytes) { lost_now_ += bytes; }
  // Of the round that ended last: whether it lost more than that share and more than `spare_bytes`.
  [[nodiscard]] bool lost_more_than(uint64_t percent, uint64_t spare_bytes) const {
    return lost_bytes_ > spare_bytes && lost_bytes_ * 100 > (lost_bytes_ + delivered_bytes_) * percent;
  }

 private:
  uint64_t end_ = 0;  // of the delivered bytes
  uint64_t began_ = 0;
  uint64_t delivered_bytes_ = 0;
  uint64_t lost_bytes_ = 0;
  uint64_t lost_now_ = 0;
};

}  // namespace ccixfer::reliability
