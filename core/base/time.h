// Instants and durations of protocol code. Time is an argument: nothing in core, routing, session, send or recv reads
// a clock; the driver reads it once per turn. An Instant counts nanoseconds since an arbitrary start, never wall time.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace ccixfer {

using Duration = std::chrono::nanoseconds;

struct MonotonicClock {  // a tag for the type only: it has no now()
  using rep = int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};
using Instant = MonotonicClock::time_point;

inline constexpr Instant never = Instant::max();
inline constexpr Duration forever = Duration::max();

// now + d without overflow; `forever` gives `never`.
[[nodiscard]] constexpr Instant after(Instant now, Duration d) {
  if (d == forever || d > never - std::max(now, Instant{})) return never;
  return now + d;
}

}  // namespace ccixfer
