#include "app/main/rate_clock.h"

namespace ccixfer::program {

RateClock::RateClock(RateTable table, std::function<WallTime()> wall)
    : table_(std::move(table)),
      wall_(std::move(wall)),
      rate_(table_.at(local_minute(wall_()).minute_of_day)),
      next_look_(table_.changes() ? Instant::min() : never) {}

bool RateClock::turn(Instant now) {
  if (now < next_look_) return false;
  const LocalMinute minute = local_minute(wall_());
  next_look_ = after(now, minute.to_next);
  return std::exchange(rate_, table_.at(minute.minute_of_day)) != rate_;
}

}  // namespace ccixfer::program
