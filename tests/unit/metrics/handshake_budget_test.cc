// How many TLS handshakes a crowd of clients gets in a second.
#include "app/metrics/handshake_budget.h"

#include <catch2/catch.hpp>

using namespace ccixfer::metrics;

TEST_CASE("handshake_budget__a_crowd__has_so_many_a_second_and_no_more") {
  HandshakeBudget::Clock::time_point now{std::chrono::seconds(100)};
  HandshakeBudget budget(now);
  const auto taken = [&](int tries) {
    size_t count = 0;
    for (int i = 0; i < tries; ++i) count += budget.take(now) ? size_t{1} : size_t{0};
    return count;
  };
  CHECK(taken(1000) == handshakes_per_s_max);
  now += std::chrono::milliseconds(100);
  CHECK(taken(1000) == handshakes_per_s_max / 10);
  now += std::chrono::hours(1);  // what was not used is not kept for long
  CHECK(taken(1000) == handshakes_per_s_max);
  size_t of_a_second = 0;
  for (int step = 0; step < 100; ++step, now += std::chrono::milliseconds(10)) of_a_second += taken(10);
  CHECK(of_a_second <= handshakes_per_s_max);
  CHECK(of_a_second + 2 >= handshakes_per_s_max);
}
