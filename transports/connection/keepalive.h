// When a connection's silence asks for a probe, and when it means that the peer is gone. After each period of silence a probe goes
// out; the period after the last of keepalive_probes_max unanswered ones ends in a verdict: the connection is lost, or, where the
// application asked for CCI's keepalive, the application is told once and the keepalive is off. While what we sent gets on and more
// waits to, the answer of the peer waits behind it, and nothing has been asked of the peer yet.
// Pure: `now` is an argument. Single-threaded. Source: CCI §III.D.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/time.h"
#include "transports/connection/limits.h"

namespace ccixfer::connection {

// What the network tells of the bytes that we gave it.
struct Outflow {
  uint64_t left_bytes = 0;  // have left for the peer, in all
  bool more_waits = false;  // others wait to leave
};

class Keepalive {
 public:
  enum class Verdict : uint8_t { probe, tell, lost };

  // Both ends have agreed. Zero or forever: off.
  void begin(Duration period, Instant now) {
    mode_ = is_off(period) ? Mode::off : Mode::lose;
    period_ = period;
    heard_at_ = probed_at_ = now;
  }
  // The application asks for CCI's. It may be long since the last turn: the period counts from the next one on.
  void ask(Duration period) {
    mode_ = is_off(period) ? Mode::off : Mode::tell;
    period_ = period;
    probes_ = 0;
    stamped_ = false;
  }
  void stamp(Instant now) {
    if (!std::exchange(stamped_, true)) probed_at_ = now;
  }
  void heard(Instant now) {
    heard_at_ = now;
    probes_ = 0;
  }
  void stop() { mode_ = Mode::off; }
  // Whether bytes of ours have left since the last deadline, and more wait. It is true only if that deadline came in the same
  // silence, since what left before the silence says nothing; and only if more waits, since a last byte may be a probe that nobody
  // reads.
  [[nodiscard]] bool gets_on(const Outflow& now) {
    const auto left_bytes = static_cast<uint32_t>(now.left_bytes);
    return std::exchange(left_bytes_, left_bytes) != left_bytes && now.more_waits && probes_ > 0;
  }

  [[nodiscard]] Instant deadline() const { return mode_ == Mode::off ? never : after(std::max(heard_at_, probed_at_), period_); }
  // The deadline has come.
  [[nodiscard]] Verdict due(Instant now) {
    probed_at_ = now;
    if (probes_ < keepalive_probes_max) {
      ++probes_;
      return Verdict::probe;
    }
    if (mode_ == Mode::lose) return Verdict::lost;
    mode_ = Mode::off;
    return Verdict::tell;
  }

 private:
  enum class Mode : uint8_t { off, lose, tell };
  [[nodiscard]] static bool is_off(Duration period) { return period <= Duration{0} || period == forever; }

  Duration period_{0};
  Instant heard_at_{};
  Instant probed_at_{};
  uint32_t left_bytes_ = 0;  // its low bits
  uint8_t probes_ = 0;
  Mode mode_ = Mode::off;
  bool stamped_ = true;
};

}  // namespace ccixfer::connection
