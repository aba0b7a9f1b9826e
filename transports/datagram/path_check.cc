#include "transports/datagram/path_check.h"

#include <algorithm>

namespace ccixfer::datagram {

void PathCheck::stay(Instant now) {
  answered_ = false;
  pausing_ = true;
  next_at_ = after(now, path_check_pause);
}

PathCheck::Step PathCheck::step(Instant now) {
  if (deadline() > now) return Step::wait;
  if (answered_) return Step::moved;
  if (pausing_) return Step::over;
  if (asked_ == path_challenges_max) {
    stay(now);
    return Step::stayed;
  }
  ++asked_;
  next_at_ = after(now, pause_);
  pause_ = std::min(pause_ * 2, hello_pause_max);
  return Step::ask;
}

}  // namespace ccixfer::datagram
