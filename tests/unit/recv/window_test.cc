// How many buffers a lane is given ahead.
#include "app/recv/window.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>

namespace ccixfer::recv {
namespace {

using namespace std::chrono_literals;

// A source that puts whenever it has credit, over a path of `round_trip` on which a segment takes `segment`. Buffers are posted
// again as soon as they are filled. What the window grew to, and the share of the path's time that was used in the last `measured`
// segments.
struct Path {
  Duration round_trip, segment;
};
struct Grown {
  uint32_t segments = 0;
  double used = 0;
};
Grown run(const Path& path, int count, int measured) {
  Window window;
  std::deque<Instant> posted;  // buffers not filled yet
  uint64_t ever = 0;
  Instant now{};
  Instant path_free{};
  Instant measured_from{};
  for (int n = 0; n < count; ++n) {
    while (posted.size() < window.segments()) {
      posted.push_back(now);
      ++ever;
    }
    const Instant credit_there = posted.front() + path.round_trip / 2;
    const Instant put_at = std::max(credit_there, path_free);
    path_free = put_at + path.segment;
    now = std::max(now, path_free + path.round_trip / 2);
    window.arrived(static_cast<uint64_t>(n), now - posted.front(), ever);
    posted.pop_front();
    if (n == count - measured) measured_from = now;
  }
  return {window.segments(),
          std::chrono::duration<double>(path.segment * (measured - 1)) / std::chrono::duration<double>(now - measured_from)};
}

}  // namespace

TEST_CASE("window__long_path__grows_until_the_path_is_full") {
  for (const Path path : {Path{100ms, 4ms}, Path{100ms, 400us}, Path{300ms, 100ms}, Path{10ms, 1ms}}) {
    const Grown grown = run(path, 3000, 1000);
    CAPTURE(path.round_trip.count(), path.segment.count(), grown.segments);
    CHECK(grown.used > 0.99);
    const auto needed = static_cast<uint32_t>(path.round_trip / path.segment) + 1;
    CHECK(grown.segments >= needed);
    CHECK(grown.segments <= std::max(4 * needed + 8, window_segments_first));
  }
}

TEST_CASE("window__short_path__stays_small") {
  const Grown grown = run({200us, 2ms}, 3000, 1000);
  CHECK(grown.used > 0.99);
  CHECK(grown.segments <= 2 * window_segments_first);
}

TEST_CASE("window__losses_hold_segments_up__grows_all_the_same") {
  Window window;
  uint64_t n = 0;
  for (uint64_t posted = 0; n < 300; ++n) {
    posted = std::max<uint64_t>(posted, n + window.segments());
    window.arrived(n, n % 3 == 0 ? 100ms : 230ms, posted);
  }
  CHECK(window.segments() >= 64);
}

TEST_CASE("window__buffers_posted_under_a_smaller_window__say_nothing_of_this_one") {
  Window window;
  window.arrived(0, 10ms, 4);
  CHECK(window.segments() == 4);  // one alone says little
  window.arrived(1, 10ms, 5);
  CHECK(window.segments() == 8);
  for (uint64_t n = 2; n < 9; ++n) window.arrived(n, 10ms, n + 8);  // three of before, and four that were posted at once
  CHECK(window.segments() == 8);
  window.arrived(9, 20ms, 17);
  window.arrived(10, 20ms, 18);
  CHECK(window.segments() == 8);  // twice the time: the others were before it
  window.arrived(11, 14ms, 19);
  window.arrived(12, 14ms, 20);
  CHECK(window.segments() == 16);
  for (uint64_t n = 13; n < 200000; ++n) window.arrived(n, 10ms, n + 1);
  CHECK(window.segments() == window_segments_max);
}

TEST_CASE("window__a_long_path_is_expected__begins_large_and_grows_from_there") {
  Window window;
  window.expect_long_path(4);
  CHECK(window.segments() == window_segments_long_path);
  window.expect_long_path(4);
  CHECK(window.segments() == window_segments_long_path);
  for (uint64_t n = 0; n < 4 + window_segments_long_path; ++n) window.arrived(n, 900ms, n + 64);  // posted before, or all at once
  CHECK(window.segments() == window_segments_long_path);
  for (uint64_t n = 100; n < 116; ++n) window.arrived(n, 100ms, 200);
  CHECK(window.segments() == 2 * window_segments_long_path);
  window.expect_long_path(300);
  CHECK(window.segments() == 2 * window_segments_long_path);
}

}  // namespace ccixfer::recv
