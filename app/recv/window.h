// How many buffers a lane has posted ahead of its source: enough to keep the path full and no more,
// because each of them has left the caches when its turn comes again. The window begins small and
// doubles for as long as that makes the lane faster, which shows in the time from the posting of a
// buffer to its filling. A source that waits for credit fills it within about a round trip, however
// many are posted. Where credit is plenty, a buffer waits for those before it, and twice as many
// buffers take twice the time. Compared are means, because a lost packet holds a segment up.
// On a long path the window begins large: a sender doubles its rate each round trip there, and would
// wait for credit that doubles later. Such paths are slower than the caches anyway.
// Pure.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::recv {

inline constexpr uint32_t window_segments_first = 4;
inline constexpr uint32_t window_segments_long_path = 64;  // 5 Gb/s and 100 ms
inline constexpr Duration window_long_path_least = std::chrono::milliseconds(20);
inline constexpr uint32_t window_segments_max = 1u << 14;  // the share of the pool is the real bound

class Window {
 public:
  [[nodiscard]] uint32_t segments() const { return segments_; }
  // `posted` buffers have ever been posted.
  void expect_long_path(uint64_t posted);
  // Segment n arrived, `waited` after its buffer was posted; `posted` buffers have ever been posted (n < posted).
  void arrived(uint64_t n, Duration waited, uint64_t posted);

 private:
  uint32_t segments_ = window_segments_first;
  uint64_t judged_from_ = 0;  // earlier ones were posted under a smaller window and say nothing of this one
  Duration waited_{0};        // in all, by `count_` of them
  uint32_t count_ = 0;
  Duration mean_before_ = forever;  // under the window before
};

}  // namespace ccixfer::recv
