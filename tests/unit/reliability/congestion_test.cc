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
