// The cap of a receiver: one for all its sessions, wherever the clock begins.
#include "app/recv/rate_allowance.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::recv;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t segment = session::segment_bytes_max;

// Segments that may be posted, each filled, by `sessions` of them within `time`.
unsigned posted_within(RateAllowance& rate, Instant from, Duration time) {
  unsigned posted = 0;
  for (Instant now = from; now < from + time; now += 10ms) {
    rate.refill(now);
    while (rate.may_post()) {
      rate.posted();
      rate.came_back(segment);
      ++posted;
    }
    CHECK(rate.next_deadline(now) > now);
    CHECK(rate.next_deadline(now) != never);
  }
  return posted;
}

}  // namespace

TEST_CASE("rate_allowance__wherever_the_clock_begins__the_rate_and_one_segment") {
  for (const Instant begin : {Instant{}, Instant{} + 1h, Instant{} + 24h * 365 * 50, Instant{} - 24h * 365 * 50}) {
    RateAllowance rate(segment);  // one a second
    CHECK(posted_within(rate, begin, 10s) >= 9);
    CHECK(posted_within(rate, begin + 10s, 10s) <= 11);
    // A time without sessions does not add up.
    CHECK(posted_within(rate, begin + 2h, 10s) <= 12);
  }
}

TEST_CASE("rate_allowance__what_a_put_leaves_free__comes_back") {
  RateAllowance rate(segment);
  rate.refill(Instant{});
  for (int i = 0; i < 100; ++i) {  // small segments cost what they are
    REQUIRE(rate.may_post());
    rate.posted();
    rate.came_back(1000);
  }
}

TEST_CASE("rate_allowance__none__never_in_the_way") {
  RateAllowance rate(0);
  rate.refill(Instant{} + 1h);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(rate.may_post());
    rate.posted();
  }
  CHECK(rate.next_deadline(Instant{} + 1h) == never);
}

TEST_CASE("rate_allowance__another_one_while_it_runs__holds_from_then_on") {
  RateAllowance rate(segment);  // one a second
  CHECK(posted_within(rate, Instant{}, 10s) <= 11);
  rate.set(10 * segment, Instant{} + 10s);
  const unsigned faster = posted_within(rate, Instant{} + 10s, 10s);
  CHECK(faster >= 98);
  CHECK(faster <= 102);
  rate.set(segment, Instant{} + 20s);
  CHECK(posted_within(rate, Instant{} + 20s, 10s) <= 11);
  rate.set(0, Instant{} + 30s);
  CHECK(rate.may_post());
  CHECK(rate.next_deadline(Instant{} + 30s) == never);
}

// A source may fill at once what was posted while there was no cap.
TEST_CASE("rate_allowance__posted_without_a_cap__is_paid_for_when_there_is_one") {
  RateAllowance rate(0);
  rate.refill(Instant{});
  for (int i = 0; i < 20; ++i) rate.posted();
  for (int i = 0; i < 10; ++i) rate.came_back(segment);
  rate.set(segment, Instant{} + 1s);  // one a second, and ten are out
  for (int i = 0; i < 10; ++i) rate.came_back(segment);
  rate.refill(Instant{} + 10s);
  CHECK_FALSE(rate.may_post());
  rate.refill(Instant{} + 12s);
  CHECK(rate.may_post());
}
