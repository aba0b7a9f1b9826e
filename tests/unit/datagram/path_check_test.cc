// The machine that finds out whether a peer is at another address: what it asks, when, how much of it, and how it ends.
#include "transports/datagram/path_check.h"

#include <catch2/catch.hpp>

namespace ccixfer::datagram {
namespace {

using namespace std::chrono_literals;
using Step = PathCheck::Step;

const Instant start{1000s};
const Address elsewhere{1, 2, 3, 4};

PathCheck begun() { return PathCheck(elsewhere, {11, 12}, start, 100ms); }

TEST_CASE("path_check__an_answer_from_there__a_move_once_the_old_address_has_had_its_time") {
  PathCheck check = begun();
  CHECK(check.there() == elsewhere);
  REQUIRE(check.deadline() == start);
  REQUIRE(check.step(start) == Step::ask);
  CHECK(check.step(start) == Step::wait);
  check.answered();
  CHECK(check.deadline() == start + 100ms);
  CHECK(check.step(start + 100ms - 1ns) == Step::wait);
  CHECK(check.step(start + 100ms) == Step::moved);
}

TEST_CASE("path_check__a_late_answer__a_move_at_once") {
  PathCheck check = begun();
  REQUIRE(check.step(start) == Step::ask);
  check.answered();
  CHECK(check.step(start + 200ms) == Step::moved);
}

TEST_CASE("path_check__no_answer__asked_with_longer_pauses_and_then_no_more") {
  PathCheck check = begun();
  Instant now = start;
  uint32_t asked = 0;
  Duration last{0};
  for (;;) {
    const Step step = check.step(now);
    if (step != Step::ask) {
      CHECK(step == Step::stayed);
      break;
    }
    ++asked;
    const Duration pause = check.deadline() - now;
    CHECK(pause >= last);
    CHECK(pause <= hello_pause_max);
    last = pause;
    now = check.deadline();
  }
  CHECK(asked == path_challenges_max);
  CHECK(check.is_pausing());
  CHECK(check.step(now) == Step::wait);
  CHECK(check.deadline() == now + path_check_pause);
  CHECK(check.step(now + path_check_pause) == Step::over);
}

TEST_CASE("path_check__the_peer_is_where_it_was__no_move_though_the_new_address_answered") {
  PathCheck check = begun();
  REQUIRE(check.step(start) == Step::ask);
  check.answered();
  check.stay(start + 50ms);
  CHECK(check.is_pausing());
  CHECK(check.step(start + 100ms) == Step::wait);
  CHECK(check.step(start + 50ms + path_check_pause) == Step::over);
}

TEST_CASE("path_check__what_goes_there__three_times_what_came_at_most") {
  PathCheck check = begun();
  CHECK_FALSE(check.may_send(1));
  check.arrived(50);
  CHECK(check.may_send(150));
  CHECK_FALSE(check.may_send(151));
  check.sent(57);
  check.sent(57);
  CHECK_FALSE(check.may_send(57));
  check.arrived(10);
  CHECK(check.may_send(57));
}

}  // namespace
}  // namespace ccixfer::datagram
