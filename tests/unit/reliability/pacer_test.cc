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
