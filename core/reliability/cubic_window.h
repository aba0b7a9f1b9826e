// The window of CUBIC: how fast most other flows of a network grow, and how much they give up when the queue they share is full. In
// bytes; pure, `now` is an argument. It knows no slow start.
// Source: RFC 9438, sections 4.2 to 4.7.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::reliability {

class CubicWindow {
 public:
  // Grows from `bytes` on, as after a window of `bytes_max` that was too much.
  void begin(uint64_t bytes, uint64_t bytes_max);
  // So many bytes were acknowledged, while the window was what kept the sender back.
  void acked(uint64_t bytes, uint32_t datagram_bytes, Duration round_trip, Instant now);
  // Something was lost: the window is smaller. The owner takes all losses of one round for one.
  void lost(uint32_t datagram_bytes);
  [[nodiscard]] uint64_t bytes() const { return static_cast<uint64_t>(window_); }

 private:
  void begin_epoch(double datagram, Instant now);

  double window_ = 0;      // bytes, as those below
  double window_max_ = 0;  // of the last loss
  double friendly_ = 0;    // what Reno would have since then
  double plateau_s_ = 0;   // after the beginning of the epoch: when the window is at its former size
  Instant epoch_{};
  bool in_epoch_ = false;
};

}  // namespace ccixfer::reliability
