// How much one lane may have in the air beside others, so that no segment waits on a slow lane that a faster one could have taken:
// where the puts of a lane take longer than the quickest of them did, what is in the air waits in a queue of the path or of the
// kernel, and less of it would keep the lane as busy. Puts that end quickly say nothing: on a short path there is nothing to wait
// for, and a processor that is busy elsewhere looks like a queue.
// Source: the expected and the actual rate of TCP Vegas (Brakmo, Peterson 1995, section 3.2), for puts.
// Pure.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::send {

inline constexpr Duration lane_pace_from = std::chrono::milliseconds(50);  // puts that are quicker are not held back
inline constexpr double lane_pace_ahead = 1.5;  // of what fills the path: lets a lane that gets faster grow

class LanePace {
 public:
  // A put that took `took` from its beginning to its end; with it `carried_bytes` were in the air.
  void ended(uint64_t carried_bytes, Duration took) {
    least_ = std::min(least_, took);
    if (took < lane_pace_from) {
      bytes_max_ = UINT64_MAX;
      return;
    }
    const double share = static_cast<double>(least_.count()) / static_cast<double>(took.count());
    bytes_max_ = static_cast<uint64_t>(lane_pace_ahead * static_cast<double>(carried_bytes) * share);
  }
  [[nodiscard]] bool has_room(uint64_t in_air_bytes) const { return in_air_bytes == 0 || in_air_bytes < bytes_max_; }

 private:
  Duration least_ = forever;
  uint64_t bytes_max_ = UINT64_MAX;  // until a put has ended, credit alone decides
};

}  // namespace ccixfer::send
