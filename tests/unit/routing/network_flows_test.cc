// How long something stands still.
#include "routing/router/network_flows.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::milliseconds;

namespace {

constexpr Duration tick = milliseconds(100);

}  // namespace

TEST_CASE("progress_clock__bytes_that_are_enough__are_progress_and_fewer_are_none") {
  ProgressClock clock;
  clock.note(progress_bytes_min - 1, tick);
  CHECK(clock.stands == tick);
  clock.note(progress_bytes_min, tick);  // in two steps all the same
  CHECK(clock.stands == Duration{0});
  clock.note(2 * progress_bytes_min - 1, tick);
  clock.note(2 * progress_bytes_min - 1, tick);
  CHECK(clock.stands == 2 * tick);
  clock.note(100, tick);  // what failed has not come
  CHECK(clock.stands == 3 * tick);
  clock.note(100 + progress_bytes_min, tick);
  CHECK(clock.stands == Duration{0});
}

TEST_CASE("network_flows__a_network_that_moves__needs_bytes_for_each_waiting_leg") {
  NetworkFlows flows;
  LegFlow legs[2];
  for (LegFlow& leg : legs) leg.waited_for = true;
  const auto look = [&](uint64_t first, uint64_t second) {
    flows.begin_look();
    flows.note(3, Direction::takes, legs[0], first);
    flows.note(3, Direction::takes, legs[1], second);
    flows.end_look(tick);
    return flows.stands(3, Direction::takes);
  };
  CHECK(look(progress_bytes_min, progress_bytes_min - 1) == tick);
  CHECK(look(progress_bytes_min, progress_bytes_min) == Duration{0});
  CHECK(flows.moved_bytes(3, Direction::takes) == 2 * progress_bytes_min);
  CHECK(look(progress_bytes_min, progress_bytes_min) == tick);
  // Of what failed, nothing came, and nothing went back.
  CHECK(look(0, progress_bytes_min) == 2 * tick);
  CHECK(flows.moved_bytes(3, Direction::takes) == 2 * progress_bytes_min);
}

TEST_CASE("network_flows__nobody_is_waited_for__stands_for_no_time") {
  NetworkFlows flows;
  LegFlow leg;
  leg.waited_for = true;
  for (int i = 0; i < 3; ++i) {
    flows.begin_look();
    flows.note(3, Direction::gives, leg, 0);
    flows.end_look(tick);
  }
  CHECK(flows.stands(3, Direction::gives) == 3 * tick);
  CHECK(flows.stands(3, Direction::takes) == Duration{0});
  CHECK(flows.stands(4, Direction::gives) == Duration{0});
  flows.begin_look();
  flows.end_look(tick);
  CHECK(flows.stands(3, Direction::gives) == Duration{0});
}
