// When --stop-at has come, though the host slept or its clock was set.
#include "app/main/stop_clock.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;
using namespace std::chrono_literals;

namespace {

struct Night {
  WallTime wall = WallTime(std::chrono::seconds(1'800'000'000));
  Instant now{};
  StopClock clock{wall + 2h, [this] { return wall; }};
  // The loop's clock stands still while the host sleeps; the wall clock does not.
  void pass(std::chrono::seconds time) {
    wall += time;
    now = after(now, time);
  }
  // As the loop waits. How long it was until then, by the loop's clock.
  Duration until_reached() {
    const Instant began = now;
    while (!clock.is_reached(now)) {
      REQUIRE(clock.next_deadline() > now);
      const auto pause = std::chrono::duration_cast<std::chrono::seconds>(clock.next_deadline() - now);
      pass(pause);
    }
    return now - began;
  }
};

}  // namespace

TEST_CASE("stop_clock__nothing_happens__it_is_reached_at_its_time") {
  Night night;
  CHECK_FALSE(night.clock.is_reached(night.now));
  CHECK(night.until_reached() == 2h);
}

TEST_CASE("stop_clock__the_host_sleeps__it_is_reached_within_a_minute_of_its_waking") {
  Night night;
  CHECK_FALSE(night.clock.is_reached(night.now));
  night.wall += 5h;
  CHECK(night.until_reached() <= 1min);
}

TEST_CASE("stop_clock__the_clock_is_set__its_time_counts") {
  Night night;
  CHECK_FALSE(night.clock.is_reached(night.now));
  night.pass(1h);
  night.wall -= 30min;
  CHECK(night.until_reached() == 90min);
  Night ahead;
  CHECK_FALSE(ahead.clock.is_reached(ahead.now));
  ahead.wall += 1h;
  CHECK(ahead.until_reached() == 1h);
}
