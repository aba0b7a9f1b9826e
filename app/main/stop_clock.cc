#include "app/main/stop_clock.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ccixfer::program {

StopClock::StopClock(WallTime at, std::function<WallTime()> wall) : at_(at), wall_(std::move(wall)) {}

bool StopClock::is_reached(Instant now) {
  if (now < next_look_) return false;
  const auto left = at_ - wall_();
  if (left <= left.zero()) return true;
  next_look_ = after(now, std::min<std::chrono::seconds>(left, std::chrono::minutes(1)));
  return false;
}

}  // namespace ccixfer::program
