// The window of CUBIC, by RFC 9438.
#include "core/reliability/cubic_window.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::CubicWindow;

namespace {

constexpr uint32_t datagram = 1000;
const Instant start{std::chrono::seconds(100)};

// A round trip after the other, in each of which the whole window is acknowledged.
void rounds(CubicWindow& window, Duration time, Duration round_trip, Instant& now) {
  const Instant end = now + time;
  while (now < end) {
    now += round_trip;
    window.acked(window.bytes(), datagram, round_trip, now);
  }
}

double datagrams(const CubicWindow& window) { return static_cast<double>(window.bytes()) / datagram; }

}  // namespace

// RFC 9438, section 4.2: K = cbrt((W_max - cwnd_epoch) / C) seconds after a loss.
TEST_CASE("cubic_window__a_loss__it_keeps_seven_tenths_and_is_back_after_the_time_of_the_rfc") {
  CubicWindow window;
  window.begin(1'000'000, 1'000'000);
  window.lost(datagram);
  CHECK(window.bytes() == 700'000);
  Instant now = start;
  const double back_s = std::cbrt(1000 * 0.3 / 0.4);  // 9.1 s
  rounds(window, Duration(static_cast<int64_t>(back_s / 2 * 1e9)), 100ms, now);
  // Half of the way in time is seven eighths of the way.
  CHECK(datagrams(window) == Approx(1000 - 300.0 / 8).epsilon(0.02));
  rounds(window, Duration(static_cast<int64_t>(back_s / 2 * 1e9)), 100ms, now);
  CHECK(datagrams(window) == Approx(1000).epsilon(0.01));
  rounds(window, 5s, 100ms, now);
  CHECK(datagrams(window) == Approx(1000 + 0.4 * 125).epsilon(0.05));
}

// Section 4.3: where CUBIC would be slower than Reno it grows as Reno does, 0.53 datagrams a round trip until it is back.
TEST_CASE("cubic_window__a_short_path__it_grows_at_least_as_reno") {
  CubicWindow window;
  window.begin(20'000, 20'000);
  window.lost(datagram);
  CHECK(window.bytes() == 14'000);
  Instant now = start;
  rounds(window, 40ms, 4ms, now);
  CHECK(datagrams(window) == Approx(14 + 10 * 9.0 / 17).epsilon(0.01));
  rounds(window, 8ms, 4ms, now);
  const double back = datagrams(window);
  CHECK(back >= 20);
  rounds(window, 40ms, 4ms, now);
  CHECK(datagrams(window) == Approx(back + 10).epsilon(0.01));  // one a round trip above its former size
}

// Section 4.7.
TEST_CASE("cubic_window__a_loss_before_it_is_back__it_aims_lower_and_makes_way") {
  CubicWindow first, second;
  first.begin(700'000, 1'000'000);
  second.begin(700'000, 700'000);
  first.lost(datagram);
  second.lost(datagram);
  CHECK(first.bytes() == second.bytes());
  Instant a = start, b = start;
  rounds(first, 8s, 100ms, a);
  rounds(second, 8s, 100ms, b);
  CHECK(first.bytes() < second.bytes());
}

TEST_CASE("cubic_window__losses_without_end__two_datagrams_stay") {
  CubicWindow window;
  window.begin(50'000, 50'000);
  for (int i = 0; i < 50; ++i) window.lost(datagram);
  CHECK(window.bytes() == 2 * datagram);
  Instant now = start;
  rounds(window, 1s, 10ms, now);
  CHECK(window.bytes() > 10 * datagram);
}

TEST_CASE("cubic_window__it_was_told_nothing_for_a_day__it_grows_by_half_a_round_trip_at_most") {
  CubicWindow window;
  window.begin(100'000, 100'000);
  Instant now = start;
  window.acked(datagram, datagram, 10ms, now);
  now += 24h;
  const uint64_t before = window.bytes();
  window.acked(before, datagram, 10ms, now);
  CHECK(window.bytes() <= before * 3 / 2 + datagram);
}
