// Whether a queue begins to stand while a connection looks for the rate of its path. Each of the last few round trips was longer
// than the path's own, so it was not one packet that was late. Pure. Source: RFC 9406 (HyStart++), section 4.2: N_RTT_SAMPLE,
// MIN_RTT_THRESH, MIN_RTT_DIVISOR, MAX_RTT_THRESH. Deviation: the latest samples in a row and not those of a round, which is long
// where the path is.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::reliability {

class QueueOnset {
 public:
  static constexpr uint32_t samples_wanted = 8;
  static constexpr Duration longer_least = std::chrono::milliseconds(4);
  static constexpr Duration longer_most = std::chrono::milliseconds(16);

  // `path`: the shortest round trip so far.
  void round_trip(Duration latest, Duration path) {
    longer_ = latest > path + std::clamp(path / 25, longer_least, longer_most) ? std::min(longer_ + 1, samples_wanted) : 0;
  }
  [[nodiscard]] bool stands() const { return longer_ == samples_wanted; }

 private:
  uint32_t longer_ = 0;  // samples in a row
};

}  // namespace ccixfer::reliability
