// How many buffers a lane has posted ahead of its source: enough to keep the path full and no more,
// because each of them has left the caches when its turn comes again. The window begins small and
// doubles while the source waits for credit. Waiting shows in the time from the posting of a buffer to
// its filling: a source that waits fills it within about one round trip, and one with plenty of credit
// only after the buffers before it. The shortest such time seen stands for the round trip.
// Pure.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::recv {

inline constexpr uint32_t window_segments_first = 4;
inline constexpr uint32_t window_segments_max = 1u << 14;  // the share of the pool is the real bound

class Window {
 public:
  [[nodiscard]] uint32_t segments() const { return segments_; }
  // Segment n arrived, `waited` after its buffer was posted; `posted` buffers have ever been posted (so n < posted).
  void arrived(uint64_t n, Duration waited, uint64_t posted);

 private:
  uint32_t segments_ = window_segments_first;
  uint64_t judged_from_ = 0;  // earlier ones were posted under a smaller window and say nothing of this one
  Duration shortest_ = forever;
};

}  // namespace ccixfer::recv
