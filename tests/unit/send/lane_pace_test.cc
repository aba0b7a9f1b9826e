// How many segments a lane gets ahead.
#include "app/send/lane_pace.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::send;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t segment = session::piece_bytes;

// A lane whose puts go one after the other at a rate, and end a round trip later.
struct Lane {
  double bytes_per_s = 0;
  double round_trip_s = 0.1;
  LanePace pace{};
  PutRoundTrip least{};

  [[nodiscard]] double seconds(uint64_t segments) const { return static_cast<double>(segments * segment) / bytes_per_s; }
  void ended(uint64_t in_air, double took_s) {
    const auto took = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(took_s));
    least.took(took);
    pace.ended(in_air * segment, took, least.least());
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

PutRoundTrip of_path(Duration round_trip) {  // another lane's put of few bytes has shown it
  PutRoundTrip least;
  least.took(round_trip);
  return least;
}

}  // namespace

TEST_CASE("lane_pace__before_a_put_has_ended__one_and_the_next") {
  const LanePace pace;
  CHECK(pace.has_room(0));
  CHECK(pace.has_room(segment));
  CHECK_FALSE(pace.has_room(2 * segment));
  CHECK(pace.bytes_per_s() == 0);
}

TEST_CASE("lane_pace__slow_lane__has_what_fills_its_path_and_the_next_one") {
  CHECK(Lane{.bytes_per_s = 25e6, .least = of_path(100ms)}.settle() == 2);
  CHECK(Lane{.bytes_per_s = 7.5e6, .least = of_path(100ms)}.settle() == 2);
}

TEST_CASE("lane_pace__lane_that_needs_many_round_trips_for_a_segment__has_one_at_a_time") {
  CHECK(Lane{.bytes_per_s = 1e6, .least = of_path(100ms)}.settle() == 1);
}

TEST_CASE("lane_pace__put_of_few_bytes__says_nothing_of_the_rate") {
  LanePace pace;
  pace.ended(1000, 100ms, 100ms);
  CHECK(pace.bytes_per_s() == 0);
  pace.ended(segment, 200ms, 100ms);
  CHECK(pace.bytes_per_s() == Approx(static_cast<double>(segment) / 0.2));
  pace.ended(1000, 100ms, 100ms);
  CHECK(pace.bytes_per_s() > 1e6);
}

TEST_CASE("lane_pace__path_gets_longer__the_shortest_time_fades") {
  PutRoundTrip round_trip = of_path(10ms);
  for (int put = 0; put < 100; ++put) round_trip.took(300ms);
  CHECK(round_trip.least() < 60ms);
  for (int put = 0; put < 40000; ++put) round_trip.took(300ms);
  CHECK(round_trip.least() > 250ms);
  round_trip.took(20ms);
  CHECK(round_trip.least() == 20ms);
}

TEST_CASE("lane_pace__lane_whose_window_holds_many_segments__is_kept_full") {
  const uint64_t in_air = Lane{.bytes_per_s = 400e6, .least = of_path(100ms)}.settle();
  CHECK(in_air * segment >= 40'000'000);
  CHECK(in_air * segment <= 80'000'000);
}

TEST_CASE("lane_pace__lane_that_gets_slower_than_it_was__has_one_segment_at_a_time") {
  LanePace pace;
  pace.ended(segment, 100ms, 100ms);
  pace.ended(2 * segment, 5s, 100ms);
  CHECK(pace.has_room(0));
  CHECK_FALSE(pace.has_room(segment));
}

TEST_CASE("lane_pace__quick_puts__hold_nothing_back") {
  LanePace pace;
  pace.ended(segment, 1ms, 1ms);
  pace.ended(20 * segment, lane_pace_from - 1ns, 1ms);
  CHECK(pace.has_room(100 * segment));
  pace.ended(20 * segment, lane_pace_from, 1ms);
  CHECK_FALSE(pace.has_room(20 * segment));
}
