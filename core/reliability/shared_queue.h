// The queue of a path that others keep standing. Tells by the round trips whether there is one that this connection has not built,
// and how much the connection keeps in flight meanwhile: what CUBIC would, as most of the others do. Pure; `now` is an argument.
//
// A queue stands through a time if even the shortest round trip of that time is longer than the path's own by a quarter, and by 2
// ms at least. The connection's own probes do not look like that: each of them empties the queue that it has built. What is lost
// while a queue stands is lost to it, and what is lost without one says nothing: a path may lose packets for other reasons.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"
#include "core/reliability/cubic_window.h"

namespace ccixfer::reliability {

class SharedQueue {
 public:
  void round_trip(Duration latest) {
    round_least_ = std::min(round_least_, latest);
    cycle_least_ = std::min(cycle_least_, latest);
    least_ = std::min(least_, latest);
  }
  void next_round() { round_least_ = forever; }
  void next_cycle() { cycle_least_ = forever; }
  // `path`: the round trip without a queue.
  [[nodiscard]] bool stood_all_round(Duration path) const { return stood(round_least_, path); }
  [[nodiscard]] bool stood_all_cycle(Duration path) const { return stood(cycle_least_, path); }

  // From now on the window is CUBIC's, and begins with what is in flight.
  void begin(uint64_t in_flight_bytes, Instant now);
  // At the end of a time in which the connection had little in flight, and which was one cycle: the queue was gone then, so it was
  // the connection's own. Three times in a row it was not: the path is another one, and counts as such.
  [[nodiscard]] bool was_own();
  [[nodiscard]] Duration path() const { return least_; }  // the shortest round trip of all, or since the path became another one
  void go_on(Instant now) { seen_at_ = now; }             // after a probe of the round trip that found it still
  // Before next_round(). `lost`: anything was, in this round.
  void round_ended(bool lost, Duration path, uint32_t datagram_bytes, Instant now);
  void acked(uint64_t bytes, uint64_t in_flight_bytes_before, uint32_t datagram_bytes, Duration round_trip, Instant now);
  // No queue was seen for so long that the others are gone, and not just making way after a loss. `round_trip`: as it is now.
  [[nodiscard]] bool is_gone(Duration path, Duration round_trip, Instant now) const;
  [[nodiscard]] uint64_t window_bytes() const { return window_.bytes(); }

 private:
  [[nodiscard]] static bool stood(Duration least, Duration path);
  [[nodiscard]] static bool is_none(Duration least, Duration path);

  Duration round_least_ = forever;
  Duration cycle_least_ = forever;
  Duration least_ = forever;
  int foreign_ = 0;  // times in a row in which it was not gone
  CubicWindow window_;
  Instant seen_at_{};
};

}  // namespace ccixfer::reliability
