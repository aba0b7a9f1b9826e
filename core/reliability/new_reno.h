// Congestion control by losses: the window doubles each round trip up to the first loss, and then
// grows by one datagram a round trip and halves at a loss (AIMD), with one reduction for all
// packets of one flight. The pace spreads the window over the smoothed round trip, with some to
// spare so that the window and not the pace is the limit. It takes no notice of delivery rates.
// Source: RFC 5681, RFC 6582; RFC 9002 section 7. Deviation: growth counts acknowledged bytes and
// not acknowledgements, and rests while the application and not the window is what limits the
// sender.
#pragma once
#include "core/reliability/congestion.h"

namespace ccixfer::reliability {

class NewReno final : public CongestionControl {
 public:
  explicit NewReno(uint32_t datagram_bytes);
  void sent(uint64_t, uint64_t, Instant) override {}
  void acked(const AckReport& report) override;
  void round_trip(Duration, Duration smoothed, Instant) override { smoothed_ = smoothed; }
  void lost(const LossReport& report) override;
  void timed_out() override;
  void datagram_length(uint32_t bytes) override;
  [[nodiscard]] uint64_t window_bytes() const override { return window_; }
  [[nodiscard]] uint64_t pace_bytes_per_s() const override;
  [[nodiscard]] bool is_doubling() const { return window_ < threshold_; }

 private:
  void grow(uint64_t acked_bytes);

  uint64_t datagram_;
  uint64_t window_;
  uint64_t threshold_ = UINT64_MAX;
  uint64_t growth_ = 0;   // acked since the last whole datagram that the window grew by
  Duration smoothed_{0};  // zero: not known yet
  Instant recovery_from_ = Instant::min();
};

}  // namespace ccixfer::reliability
