// How many lanes a session gets, by losses, queues and the rate.
#include "app/main/lane_count.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;
using namespace std::chrono_literals;

namespace {

constexpr Duration round_trip = 100ms;

// A path between two hosts: what a lane moves is bounded by its window, and all of them by the path.
struct Path {
  double path_bytes_per_s = 1e12;
  double lane_bytes_per_s = 25e6;
  double losses_per_s = 0;
  Duration queue{0};
  bool tells_figures = true;
  LaneCount count{1, 16, round_trip};
  Instant now{5h};
  double moved = 0;
  double lost = 0;

  // How many lanes there are after so long.
  uint16_t run(Duration time) {
    for (const Instant end = now + time; now < end; now += 20ms) {
      const double rate = std::min(path_bytes_per_s, lane_bytes_per_s * count.lanes());
      moved += rate * 0.02;
      lost += losses_per_s * 0.02;
      ports::PathFigures figures{static_cast<uint64_t>(moved / 1448), static_cast<uint64_t>(lost), round_trip + queue, round_trip};
      if (now >= count.next_look())
        count.look(now, static_cast<uint64_t>(moved), tells_figures ? std::optional(figures) : std::nullopt);
    }
    return count.lanes();
  }
};

}  // namespace

TEST_CASE("lane_count__path_that_few_lanes_fill__one_trial_and_no_more") {
  Path path{.path_bytes_per_s = 100e6};
  CHECK(path.run(300ms) == 6);
  CHECK(path.run(60s) == 9);
}

TEST_CASE("lane_count__others_leave_the_path__more_are_tried_again") {
  Path path{.path_bytes_per_s = 100e6};
  REQUIRE(path.run(60s) == 9);
  path.path_bytes_per_s = 200e6;
  CHECK(path.run(60s) == 13);
}

TEST_CASE("lane_count__path_that_no_number_of_lanes_fills__as_many_as_may_be") {
  Path path;
  CHECK(path.run(60s) == 16);
  CHECK(path.count.next_look() == never);
}

TEST_CASE("lane_count__nobody_knows_of_losses__the_rate_decides") {
  Path path{.path_bytes_per_s = 200e6, .tells_figures = false};
  CHECK(path.run(60s) == 13);  // 6, 9, and a last trial that adds nothing
}

TEST_CASE("lane_count__losses_without_a_queue__as_many_lanes_as_losses_in_a_round_trip_ask_for") {
  Path few{.path_bytes_per_s = 100e6, .losses_per_s = 10};
  CHECK(few.run(1s) > 6);
  CHECK(few.run(60s) < 16);
  Path many{.path_bytes_per_s = 100e6, .losses_per_s = 1000};
  CHECK(many.run(300ms) == 16);  // at once, however the rate grows
}

TEST_CASE("lane_count__losses_of_a_queue_that_stands__are_no_reason_for_more_lanes") {
  Path path{.path_bytes_per_s = 100e6, .losses_per_s = 1000, .queue = 50ms};
  CHECK(path.run(60s) == 6);
}

TEST_CASE("lane_count__a_queue_stands__no_more_lanes_are_tried_until_it_is_gone") {
  Path path{.path_bytes_per_s = 100e6, .queue = 30ms};
  CHECK(path.run(60s) == 6);
  path.queue = 20ms;
  CHECK(path.run(60s) == 9);
}

TEST_CASE("lane_count__losses_begin_late__are_noticed_when_no_trial_runs_any_more") {
  Path path{.path_bytes_per_s = 100e6};
  REQUIRE(path.run(60s) == 9);
  path.losses_per_s = 1000;
  CHECK(path.run(1s) == 16);
}

TEST_CASE("lane_count__a_lane_is_lost_and_its_counts_with_it__is_a_new_beginning") {
  Path path{.path_bytes_per_s = 100e6};
  REQUIRE(path.run(60s) == 9);
  path.moved /= 2;
  path.lost = 0;
  CHECK(path.run(5s) == 9);
  path.losses_per_s = 1000;
  CHECK(path.run(1s) == 16);
}

TEST_CASE("lane_count__bounds__are_kept_and_where_they_are_the_same_nothing_is_looked_at") {
  CHECK(LaneCount(1, 1, 0ns).lanes() == 1);
  CHECK(LaneCount(1, 1, 0ns).next_look() == never);
  CHECK(LaneCount(32, 32, round_trip).lanes() == 32);
  CHECK(LaneCount(32, 32, round_trip).next_look() == never);
  CHECK(LaneCount(1, 3, 1ms).lanes() == 3);
  CHECK(LaneCount(8, 16, round_trip).lanes() == 8);
  CHECK(LaneCount(1, 16, round_trip).lanes() == 6);
}

TEST_CASE("lanes_for__round_trip__one_nearby_more_on_long_paths_of_tcp_and_bounded") {
  const auto lanes = [](Duration round_trip, std::vector<std::string> transports) {
    std::vector<ports::HopInfo> hops;
    for (const std::string& transport : transports) hops.push_back({.transport = transport, .node = {}, .round_trip = round_trip});
    return lanes_for(hops);
  };
  CHECK(lanes(0ns, {"tcp"}) == 1);
  CHECK(lanes(1ms, {"tcp"}) == 1);
  CHECK(lanes(10ms, {"tcp"}) == 7);
  CHECK(lanes(100ms, {"tcp"}) == 16);
  CHECK(lanes(100ms, {"udp", "tcp"}) == 16);
  CHECK(lanes(100ms, {"sim"}) == 16);
  CHECK(lanes(100ms, {"udp"}) == 1);
  CHECK(lanes(100ms, {"udp", "eth"}) == 1);
  CHECK(lanes_for({}) == 1);
}
