// Packets are spread over time, and late turns are made up for.
#include "core/reliability/pacer.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::Pacer;

namespace {
const Instant start{std::chrono::seconds(100)};
constexpr uint32_t datagram = 1000;
}  // namespace

TEST_CASE("pacer__a_burst_then_the_rate") {
  Pacer pacer(10 * datagram, 10 * datagram);
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
  Pacer pacer(3 * datagram, 3 * datagram);
  pacer.sent(datagram, 1'000'000, start);
  const Instant later = start + 3600s;
  int count = 0;
  while (pacer.ready_at(later) <= later) {
    pacer.sent(datagram, 1'000'000, later);
    ++count;
  }
  REQUIRE(count == 3);
}

TEST_CASE("pacer__used_up__the_next_ones_go_together_half_a_millisecond_of_them_or_half_a_burst") {
  struct Row {
    uint64_t rate, together;
  };
  for (const Row& row : {Row{1'000'000, 1}, Row{20'000'000, 10}, Row{100'000'000, 20}}) {
    Pacer pacer(10 * datagram, 40 * datagram);
    Instant now = start;
    const auto send_all = [&] {
      uint64_t count = 0;
      for (; pacer.ready_at(now) <= now; ++count) pacer.sent(datagram, row.rate, now);
      return count;
    };
    static_cast<void>(send_all());
    uint64_t sent = 0;
    for (int wakeup = 0; wakeup < 100; ++wakeup) {
      now = pacer.ready_at(now);
      const uint64_t count = send_all();
      CHECK(count >= row.together);
      CHECK(count <= row.together + 1);
      sent += count * datagram;
    }
    const double seconds = std::chrono::duration<double>(now - start).count();
    CHECK(static_cast<double>(sent) == Approx(seconds * static_cast<double>(row.rate)).epsilon(0.02));
  }
  // A fast path has a longer burst after a pause.
  Pacer pacer(10 * datagram, 40 * datagram);
  pacer.sent(datagram, 100'000'000, start);
  const Instant later = start + 1s;
  uint64_t burst = 0;
  for (; pacer.ready_at(later) <= later; ++burst) pacer.sent(datagram, 100'000'000, later);
  CHECK(burst == 40);
}

// As of a host that sleeps in whole milliseconds, or has other things to do.
TEST_CASE("pacer__turns_come_late__the_rate_is_reached_all_the_same") {
  constexpr uint64_t rate = 100'000'000;
  for (const Duration turn : {1500us, 3500us}) {
    Pacer pacer(10 * datagram, 64 * datagram);
    Instant now = start;
    uint64_t sent = 0;
    const auto send_all = [&] {
      uint64_t count = 0;
      for (; pacer.ready_at(now) <= now; ++count) pacer.sent(datagram, rate, now);
      sent += count * datagram;
      return count;
    };
    static_cast<void>(send_all());
    for (int late = 0; late < 1000; ++late) {
      REQUIRE(pacer.ready_at(now) < now + turn);
      now += turn;
      pacer.waited(now);
      CHECK(send_all() <= 351);
    }
    CHECK(static_cast<double>(sent) ==
          Approx(std::chrono::duration<double>(now - start).count() * static_cast<double>(rate)).epsilon(0.01));
    now += 1s;  // much later is made up for in part
    pacer.waited(now);
    CHECK(send_all() <= 401);
    now += 1s;  // and a pause not at all
    CHECK(send_all() == 64);
  }
}
