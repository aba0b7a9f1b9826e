// How much may be in flight: one interface, so that a measured one can take its place, and the first implementation, AIMD as
// NewReno has it. Pure: told what happened, answers window_bytes(). Guarantees: window within [2 datagrams, in_flight_bytes_max];
// one reduction for all packets that were lost of one flight. Source: RFC 5681, RFC 6582; RFC 9002 §7. Deviation: growth counts
// acked bytes, not acks, and rests while the application and not the window is what limits the sender.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::reliability {

inline constexpr uint64_t in_flight_bytes_max = 8u << 20;

class CongestionControl {
 public:
  virtual ~CongestionControl() = default;
  // `limited`: the window kept the sender back when it was sent, or nearly so.
  virtual void acked(uint64_t bytes, Instant sent_at, bool limited) = 0;
  virtual void lost(Instant newest_sent_at, Instant now) = 0;
  virtual void timed_out() = 0;  // several probes were not answered: the path is not what it was
  [[nodiscard]] virtual uint64_t window_bytes() const = 0;
  [[nodiscard]] virtual bool probing() const = 0;  // still doubling: pace faster than the window says
};

class NewReno final : public CongestionControl {
 public:
  explicit NewReno(uint32_t datagram_bytes);
  void acked(uint64_t bytes, Instant sent_at, bool limited) override;
  void lost(Instant newest_sent_at, Instant now) override;
  void timed_out() override;
  [[nodiscard]] uint64_t window_bytes() const override { return window_; }
  [[nodiscard]] bool probing() const override { return window_ < threshold_; }

 private:
  uint64_t datagram_;
  uint64_t window_;
  uint64_t threshold_ = UINT64_MAX;
  uint64_t growth_ = 0;  // acked in congestion avoidance, towards one datagram more
  Instant recovery_from_ = Instant::min();
};

}  // namespace ccixfer::reliability
