// Spreads a window over its round trip: a bucket of credit that fills at `rate` and holds a burst. Pure. In: what was sent, and the
// rate in bytes a second from then on. Out: the instant from which the next datagrams may go. A burst is what the rate brings in a
// millisecond, within bounds. Who has used its credit up waits for what half a millisecond brings, or half a burst where that is
// less: what goes out together costs one call and one turn. Clocks and processors are late by a millisecond or more; whoever
// waited for its turn and has it late makes up for that, because a rate that loses what came too late is never reached.
// Source: RFC 9002 §7.7; the send quantum of draft-cardwell-iccrg-bbr-congestion-control-02.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::reliability {

class Pacer {
 public:
  // The bounds of a burst.
  Pacer(uint32_t least_bytes, uint32_t most_bytes) : least_(least_bytes), most_(most_bytes), credit_(least_bytes) {}

  void bound(uint32_t least_bytes, uint32_t most_bytes) {
    least_ = least_bytes;
    most_ = most_bytes;
  }
  void sent(uint64_t bytes, uint64_t rate_bytes_per_s, Instant now) {
    fill(now);
    rate_ = rate_bytes_per_s;
    credit_ -= static_cast<int64_t>(bytes);
  }
  // To be called when the sender has waited for ready_at() with something to send: what it lost by being late is made up for. A
  // time without this call counts as a pause, which earns a burst at most.
  void waited(Instant now) {
    const auto late = static_cast<int64_t>(rate_ * late_max_us / 1'000'000);
    credit_ = std::min(std::max(burst(), late), credit_ + earned(now));
    filled_at_ = now;
  }
  [[nodiscard]] Instant ready_at(Instant now) const {
    const int64_t credit = credit_at(now);
    if (credit > 0 || rate_ == 0) return now;
    const int64_t quantum =
        std::clamp<int64_t>(static_cast<int64_t>(rate_ / bursts_per_s / 2), 1, std::max<int64_t>(burst() / 2, 1));
    return now + Duration(static_cast<int64_t>(static_cast<uint64_t>(quantum - credit) * 1'000'000'000 / rate_ + 1));
  }

 private:
  static constexpr uint64_t bursts_per_s = 1000;
  static constexpr uint64_t late_max_us = 4000;
  [[nodiscard]] int64_t burst() const { return static_cast<int64_t>(std::clamp<uint64_t>(rate_ / bursts_per_s, least_, most_)); }
  [[nodiscard]] int64_t earned(Instant now) const {
    const auto elapsed_us = static_cast<uint64_t>(std::clamp<int64_t>((now - filled_at_).count() / 1000, 0, 1'000'000));
    return static_cast<int64_t>(elapsed_us * rate_ / 1'000'000);
  }
  [[nodiscard]] int64_t credit_at(Instant now) const { return std::min(std::max(burst(), credit_), credit_ + earned(now)); }
  void fill(Instant now) {
    credit_ = rate_ == 0 ? burst() : credit_at(now);
    filled_at_ = now;
  }
  uint32_t least_;  // small, as each connection has them
  uint32_t most_;
  int64_t credit_;
  uint64_t rate_ = 0;
  Instant filled_at_{};
};

}  // namespace ccixfer::reliability
