#include "core/host/clock.h"

#include <time.h>

#include "core/base/check.h"

namespace ccixfer::host {

Instant SystemClock::now() const {
  timespec time{};
  CHECK(::clock_gettime(CLOCK_MONOTONIC, &time) == 0);
  return Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace ccixfer::host
