// A router's budget of bytes a second.
#include "routing/router/rate_limit.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const Instant start = Instant{} + seconds(100);

}  // namespace

TEST_CASE("rate_limit__no_limit__holds_up_nobody") {
  RateLimit rate(0);
  rate.use(1u << 30, start);
  CHECK_FALSE(rate.is_used_up(start));
  CHECK(rate.next_deadline(start) == never);
}

TEST_CASE("rate_limit__overdrawn_by_more_than_a_burst__is_used_up_until_the_burst_is_left") {
  RateLimit rate(1'000'000);
  rate.use(20'000, start);
  CHECK_FALSE(rate.is_used_up(start));  // 20 ms
  rate.use(10'000, start);
  CHECK(rate.is_used_up(start));
  CHECK(rate.next_deadline(start) == start + milliseconds(10));
  CHECK_FALSE(rate.is_used_up(start + milliseconds(10)));
  // Nobody waits for the rate any more. `now` would be an answer on which a loop never sleeps.
  CHECK(rate.next_deadline(start + milliseconds(10)) == never);
  CHECK(rate.next_deadline(start + milliseconds(15)) == never);
  CHECK(rate.next_deadline(start + milliseconds(30)) == never);
}

TEST_CASE("rate_limit__not_used_for_a_while__saves_nothing") {
  RateLimit rate(1'000'000);
  rate.use(1, start);
  rate.use(30'000, start + seconds(10));
  CHECK(rate.is_used_up(start + seconds(10)));
}

TEST_CASE("rate_limit__set_anew__counts_for_what_is_used_from_then_on") {
  RateLimit rate(1'000'000);
  rate.set(10'000'000);
  rate.use(300'000, start);
  CHECK(rate.next_deadline(start) == start + milliseconds(30) - rate_burst);
  rate.set(0);
  CHECK(rate.next_deadline(start) == never);
}
