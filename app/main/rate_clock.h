// Keeps the cap of a process as its timetable (RateTable) has it while it runs. The wall clock is looked at when a minute of it
// begins, so that an administrator who sets it, or the end of summer time, counts within a minute.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>

#include "app/main/rate_table.h"
#include "app/main/wall_clock.h"
#include "core/base/time.h"

namespace ccixfer::program {

class RateClock {
 public:
  explicit RateClock(RateTable table, std::function<WallTime()> wall = wall_time_now);
  [[nodiscard]] uint64_t rate_bytes_per_s() const { return rate_; }  // 0: no cap
  // True: the rate is another one from now on.
  [[nodiscard]] bool turn(Instant now);
  [[nodiscard]] Instant next_deadline() const { return next_look_; }

 private:
  RateTable table_;
  std::function<WallTime()> wall_;
  uint64_t rate_;
  Instant next_look_;
};

}  // namespace ccixfer::program
