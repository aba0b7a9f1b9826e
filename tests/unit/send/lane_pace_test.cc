#include "app/send/lane_pace.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::send;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t segment = 4'000'000;

// A lane whose puts go one after the other at a rate, and end a round trip later.
struct Lane {
  double bytes_per_s = 0;
  double round_trip_s = 0.1;
  LanePace pace{};

  [[nodiscard]] double seconds(uint64_t segments) const { return static_cast<double>(segments * segment) / bytes_per_s; }
  void ended(uint64_t in_air, double took_s) {
    pace.ended(in_air * segment, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(took_s)));
  }
  [[nodiscard]] uint64_t room() const {
    uint64_t in_air = 0;
    while (in_air < 64 && pace.has_room(in_air * segment)) ++in_air;
    return in_air;
  }
  // How many segments it has in the air in the end: it begins with four, and another one goes whenever one ends.
  uint64_t settle() {
    for (uint64_t put = 1; put <= 4; ++put) ended(put, seconds(put) + round_trip_s);
    uint64_t in_air = 4;
    for (int put = 0; put < 200; ++put) {
      in_air = std::max<uint64_t>(room(), 1);
      ended(in_air, std::max(seconds(in_air), seconds(1) + round_trip_s));
    }
    return in_air;
  }
};

}  // namespace

TEST_CASE("lane_pace__before_a_put_has_ended__credit_alone_decides") {
  const LanePace pace;
  CHECK(pace.has_room(0));
  CHECK(pace.has_room(1000 * segment));
}

TEST_CASE("lane_pace__slow_lane__has_what_fills_its_path_and_the_next_one") {
  CHECK(Lane{.bytes_per_s = 7.5e6}.settle() == 2);
  CHECK(Lane{.bytes_per_s = 1e6}.settle() == 2);
}

TEST_CASE("lane_pace__lane_whose_window_holds_many_segments__is_kept_full") {
  const uint64_t in_air = Lane{.bytes_per_s = 400e6}.settle();
  CHECK(in_air * segment >= 40'000'000);
  CHECK(in_air * segment <= 80'000'000);
}

TEST_CASE("lane_pace__lane_that_gets_slower_than_it_was__has_one_segment_at_a_time") {
  LanePace pace;
  pace.ended(segment, 100ms);
  pace.ended(2 * segment, 5s);
  CHECK(pace.has_room(0));
  CHECK_FALSE(pace.has_room(segment));
}

TEST_CASE("lane_pace__quick_puts__hold_nothing_back") {
  LanePace pace;
  pace.ended(segment, 1ms);
  pace.ended(20 * segment, lane_pace_from - 1ns);
  CHECK(pace.has_room(100 * segment));
  pace.ended(20 * segment, lane_pace_from);
  CHECK_FALSE(pace.has_room(20 * segment));
}
