#include "core/reliability/congestion.h"

#include <catch2/catch.hpp>

#include "core/reliability/pacer.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::NewReno;
using reliability::Pacer;

namespace {
const Instant start{std::chrono::seconds(100)};
constexpr uint32_t datagram = 1000;
}  // namespace

TEST_CASE("new_reno__acks__the_window_doubles_each_round_trip_then_grows_by_one_datagram") {
  NewReno control(datagram);
  REQUIRE(control.window_bytes() == 10 * datagram);
  REQUIRE(control.probing());
  for (int i = 0; i < 10; ++i) control.acked(datagram, start, true);
  REQUIRE(control.window_bytes() == 20 * datagram);
  control.lost(start, start + 10ms);
  REQUIRE(control.window_bytes() == 10 * datagram);
  REQUIRE_FALSE(control.probing());
  for (int i = 0; i < 10; ++i) control.acked(datagram, start + 11ms, true);
  REQUIRE(control.window_bytes() == 11 * datagram);
}

TEST_CASE("new_reno__many_losses_of_one_flight__one_reduction") {
  NewReno control(datagram);
  control.lost(start, start + 10ms);
  control.lost(start + 1ms, start + 11ms);
  control.lost(start + 10ms, start + 20ms);
  REQUIRE(control.window_bytes() == 5 * datagram);
  control.acked(datagram, start + 5ms, true);  // of that flight: no growth
  REQUIRE(control.window_bytes() == 5 * datagram);
  control.lost(start + 11ms, start + 21ms);  // of the next one
  REQUIRE(control.window_bytes() == 5 * datagram / 2);
}

TEST_CASE("new_reno__bounds__never_below_two_datagrams_never_above_the_maximum") {
  NewReno control(datagram);
  for (int i = 1; i < 100; ++i) control.lost(start + i * 10ms, start + i * 10ms + 5ms);
  REQUIRE(control.window_bytes() == 2 * datagram);
  control.timed_out();
  REQUIRE(control.window_bytes() == 2 * datagram);
  NewReno other(datagram);
  for (int i = 0; i < 100'000; ++i) other.acked(datagram, start, true);
  REQUIRE(other.window_bytes() == reliability::in_flight_bytes_max);
}

TEST_CASE("new_reno__timed_out__begins_with_two_datagrams_and_doubles_to_half_of_what_was") {
  NewReno control(datagram);
  control.timed_out();
  REQUIRE(control.window_bytes() == 2 * datagram);
  REQUIRE(control.probing());
  control.acked(3 * datagram, start, true);
  REQUIRE(control.window_bytes() == 5 * datagram);
  REQUIRE_FALSE(control.probing());
}

TEST_CASE("new_reno__grown_in_part_when_it_is_lost_or_timed_out__a_whole_window_for_the_next_datagram") {
  for (const bool timed_out : {false, true}) {
    NewReno control(datagram);
    control.lost(start, start + 10ms);
    control.acked(4 * datagram, start + 11ms, true);  // of 5 for one more
    if (timed_out) {
      control.timed_out();
    } else {
      control.lost(start + 12ms, start + 20ms);
    }
    const uint64_t half = 5 * datagram / 2;
    if (timed_out) control.acked(half - control.window_bytes(), start + 21ms, true);  // doubling
    REQUIRE(control.window_bytes() == half);
    control.acked(half - 1, start + 21ms, true);
    REQUIRE(control.window_bytes() == half);
    control.acked(1, start + 21ms, true);
    REQUIRE(control.window_bytes() == half + datagram);
  }
}

TEST_CASE("new_reno__the_application_is_the_limit__no_growth") {
  NewReno control(datagram);
  for (int i = 0; i < 10; ++i) control.acked(datagram, start, false);
  REQUIRE(control.window_bytes() == 10 * datagram);
}

TEST_CASE("pacer__a_burst_then_the_rate") {
  Pacer pacer(10 * datagram);
  Instant now = start;
  constexpr uint64_t rate = 1'000'000;  // a datagram a millisecond
  for (int i = 0; i < 10; ++i) {
    REQUIRE(pacer.ready_at(now) <= now);
    pacer.sent(datagram, rate, now);
  }
  uint64_t sent = 0;
  while (now < start + 1s) {
    const Instant ready = pacer.ready_at(now);
    REQUIRE(ready >= now);
    if (ready > now) {
      now = ready;
      REQUIRE(pacer.ready_at(now) <= now);  // what it says is true, also after rounding
    }
    pacer.sent(datagram, rate, now);
    sent += datagram;
  }
  REQUIRE(sent > 990'000);
  REQUIRE(sent < 1'010'000);
}

TEST_CASE("pacer__long_idle__no_more_than_a_burst") {
  Pacer pacer(3 * datagram);
  pacer.sent(datagram, 1'000'000, start);
  const Instant later = start + 3600s;
  int count = 0;
  while (pacer.ready_at(later) <= later) {
    pacer.sent(datagram, 1'000'000, later);
    ++count;
  }
  REQUIRE(count == 3);
}
