// The process's monotonic clock. Read once a turn by the driver; protocol code gets the Instant as an argument.
#pragma once
#include "core/base/time.h"

namespace ccixfer::host {

class SystemClock {
 public:
  [[nodiscard]] Instant now() const;  // CLOCK_MONOTONIC: untouched by changes of the time of day
};

}  // namespace ccixfer::host
