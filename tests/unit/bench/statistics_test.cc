// Percentiles of samples by the nearest rank.
#include "app/bench/statistics.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace ccixfer;
using namespace ccixfer::bench;

TEST_CASE("nearest_rank__by_hand__smallest_that_covers_its_share") {
  CHECK(nearest_rank(1, 0) == 0);
  CHECK(nearest_rank(1, 500) == 0);
  CHECK(nearest_rank(1, 1000) == 0);
  CHECK(nearest_rank(2, 500) == 0);
  CHECK(nearest_rank(2, 501) == 1);
  CHECK(nearest_rank(3, 500) == 1);
  CHECK(nearest_rank(10, 900) == 8);
  CHECK(nearest_rank(100, 990) == 98);
  CHECK(nearest_rank(101, 990) == 99);
  CHECK(nearest_rank(999, 999) == 998);
  CHECK(nearest_rank(1000, 999) == 998);
  CHECK(nearest_rank(1001, 999) == 999);
}

TEST_CASE("percentiles__one_to_thousand_in_any_order__are_those_numbers") {
  std::mt19937_64 random(11);
  std::vector<int64_t> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) + 1;
  std::shuffle(values.begin(), values.end(), random);
  Samples samples;
  for (const int64_t value : values) samples.add(Duration(value * 2));
  const Percentiles p = samples.percentiles(2);
  CHECK(p.min == Duration(1));
  CHECK(p.p50 == Duration(500));
  CHECK(p.p90 == Duration(900));
  CHECK(p.p99 == Duration(990));
  CHECK(p.p99_9 == Duration(999));
  CHECK(samples.percentiles(1).p50 == Duration(1000));
}

// The definition, counted out: at least p of all are not above it, and it is the smallest such sample.
TEST_CASE("percentiles__random_samples__hold_the_definition") {
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    const size_t count = 1 + random() % 700;
    std::vector<int64_t> values(count);
    Samples samples;
    for (int64_t& value : values) {
      value = static_cast<int64_t>(random() % 50);  // many equal ones
      samples.add(Duration(value));
    }
    const Percentiles p = samples.percentiles();
    const auto not_above = [&](int64_t limit) {
      return static_cast<size_t>(std::count_if(values.begin(), values.end(), [&](int64_t value) { return value <= limit; }));
    };
    for (const auto& [got, per_mille] : {std::pair{p.p50, 500u}, {p.p90, 900u}, {p.p99, 990u}, {p.p99_9, 999u}}) {
      CHECK(not_above(got.count()) * 1000 >= count * per_mille);
      CHECK(not_above(got.count() - 1) * 1000 < count * per_mille);
    }
    CHECK(p.min.count() == *std::min_element(values.begin(), values.end()));
  }
}

TEST_CASE("percentiles__no_samples__all_zero") {
  const Percentiles p = Samples().percentiles();
  CHECK(p.min.count() == 0);
  CHECK(p.p99_9.count() == 0);
}

TEST_CASE("samples__beyond_the_bound__are_not_kept") {
  Samples samples;
  for (size_t i = 0; i < samples_max + 10; ++i) samples.add(Duration(1));
  CHECK(samples.count() == samples_max);
  CHECK(samples.full());
}
