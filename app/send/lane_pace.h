// How much one lane may have in the air beside others, so that no segment waits on a slow lane that a faster one could have taken,
// and all lanes end at about the same time: what its rate puts on the path in a round trip, and the segment that goes next. More
// would wait in a queue of the path or of the kernel. The rate is what was in the air by the time that the last put took. Puts that
// end quickly say nothing: on a short path there is nothing to wait for, and a processor that is busy elsewhere looks like a queue.
// Source: the expected and the actual rate of TCP Vegas (Brakmo, Peterson 1995, section 3.2), for puts.
// Pure.
#pragma once
#include <algorithm>
#include <cstdint>

#include "app/session/limits.h"
#include "core/base/time.h"

namespace ccixfer::send {

inline constexpr Duration lane_pace_from = std::chrono::milliseconds(50);  // puts that are quicker are not held back
inline constexpr double lane_pace_ahead = 1.5;  // of what fills the path: lets a lane that gets faster grow
// A lane that needs so many round trips for one segment gets one at a time. It is idle for a round trip between two of them, which
// then costs little.
inline constexpr double lane_pace_slow = 10;

// The shortest time that a put of any lane took stands for the round trip. It fades towards what puts take now, because a path may
// get longer, and too short a time would keep lanes idle.
class PutRoundTrip {
 public:
  void took(Duration time) { least_ = time < least_ ? time : least_ + (time - least_) / fades_in_puts; }
  [[nodiscard]] Duration least() const { return least_; }

 private:
  static constexpr int64_t fades_in_puts = 8192;
  Duration least_ = forever;
};

class LanePace {
 public:
  // A put that took `took` from its beginning to its end; with it `carried_bytes` were in the air.
  void ended(uint64_t carried_bytes, Duration took, Duration round_trip) {
    if (took < lane_pace_from) {
      bytes_max_ = UINT64_MAX;
      bytes_per_s_ = 0;
      return;
    }
    const double in_round_trip =
        static_cast<double>(carried_bytes) * static_cast<double>(round_trip.count()) / static_cast<double>(took.count());
    const double next = std::min(double{session::segment_bytes_max}, lane_pace_slow * in_round_trip);
    bytes_max_ = static_cast<uint64_t>(lane_pace_ahead * in_round_trip + next);
    if (carried_bytes >= session::piece_bytes)
      bytes_per_s_ = static_cast<double>(carried_bytes) / std::chrono::duration<double>(took).count();
  }
  [[nodiscard]] bool has_room(uint64_t in_air_bytes) const { return in_air_bytes == 0 || in_air_bytes < bytes_max_; }
  [[nodiscard]] double bytes_per_s() const { return bytes_per_s_; }  // 0: not known, or too quick to say

 private:
  uint64_t bytes_max_ = session::segment_bytes_max + 1;  // until the first put has ended there is room for one segment and the next
  double bytes_per_s_ = 0;
};

}  // namespace ccixfer::send
