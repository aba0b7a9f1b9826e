// When --stop-at, or the end of a job's window, has come. The wall clock is looked at every minute and at the time itself, so that
// a host that slept meanwhile, or an administrator who sets the clock, counts within a minute.
#pragma once
#include <functional>

#include "app/main/wall_clock.h"
#include "core/base/time.h"

namespace ccixfer::program {

class StopClock {
 public:
  explicit StopClock(WallTime at, std::function<WallTime()> wall = wall_time_now);
  [[nodiscard]] bool is_reached(Instant now);
  [[nodiscard]] Instant next_deadline() const { return next_look_; }

 private:
  WallTime at_;
  std::function<WallTime()> wall_;
  Instant next_look_ = Instant::min();
};

}  // namespace ccixfer::program
