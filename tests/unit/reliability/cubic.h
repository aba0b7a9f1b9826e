// CUBIC as a rival on a shared path: the control that most of a network's other flows have. It has no HyStart: slow start ends
// with the first loss. Source: RFC 9438; the kernel's is the rival in tests/e2e/test_fairness.py.
#pragma once
#include "core/reliability/congestion.h"
#include "core/reliability/cubic_window.h"

namespace ccixfer::reliability::testing {

class Cubic final : public CongestionControl {
 public:
  explicit Cubic(uint32_t datagram_bytes) : datagram_(datagram_bytes) {
    window_.begin(window_first_datagrams * uint64_t{datagram_}, 0);
  }
  void sent(uint64_t /*bytes*/, uint64_t /*in_flight_bytes_before*/, Instant /*now*/) override {}
  void acked(const AckReport& report) override;
  void round_trip(Duration /*latest*/, Duration smoothed, Instant /*now*/) override { round_trip_ = smoothed; }
  void lost(const LossReport& report) override;
  void datagram_length(uint32_t bytes) override { datagram_ = bytes; }
  void timed_out() override;
  [[nodiscard]] uint64_t window_bytes() const override;
  // It sends as acknowledgements come, and spreads nothing.
  [[nodiscard]] uint64_t pace_bytes_per_s() const override { return 1'000'000'000; }

 private:
  uint32_t datagram_;
  CubicWindow window_;
  uint64_t threshold_ = in_flight_bytes_max;
  Duration round_trip_{0};
  Instant recovery_from_{};  // losses of what was sent before it are of the same event
};

}  // namespace ccixfer::reliability::testing
