// What is made of measured latencies.
#include <catch2/catch.hpp>

#include "routing/router/latency.h"

using namespace ccixfer;
using namespace ccixfer::routing;

TEST_CASE("latency__measurements__are_half_a_round_trip_and_count_for_a_quarter") {
  CHECK(smoothed_latency_ns(0, Duration(2000)) == 1000);
  CHECK(smoothed_latency_ns(1000, Duration(4000)) == 1250);
  CHECK(smoothed_latency_ns(0, Duration(0)) == 1);  // 0 says that nothing was measured
}

TEST_CASE("latency__worth_telling__differs_by_a_step_and_by_a_quarter") {
  CHECK(is_worth_telling(0, 1));
  constexpr uint64_t small = latency_step_min_ns;
  CHECK(is_worth_telling(small, 2 * small));
  CHECK_FALSE(is_worth_telling(small, 2 * small - 1));
  CHECK_FALSE(is_worth_telling(2 * small, small + 1));
  constexpr uint64_t large = 100 * latency_step_min_ns;
  CHECK(is_worth_telling(large, large + large / 4));
  CHECK_FALSE(is_worth_telling(large, large + large / 4 - 1));
  CHECK(is_worth_telling(large, large - large / 4));
}
