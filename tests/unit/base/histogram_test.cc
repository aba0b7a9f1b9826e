// A histogram counts each value in the first bucket that holds it.
#include "core/base/histogram.h"

#include <catch2/catch.hpp>

using namespace ccixfer;

TEST_CASE("histogram__values__are_in_the_first_bucket_that_holds_them") {
  Histogram<3> histogram({1, 10, 100});
  for (const double value : {0.0, 1.0, 1.5, 10.0, 99.0, 101.0, 1e9}) histogram.observe(value);
  CHECK(histogram.bucket(0) == 2);
  CHECK(histogram.bucket(1) == 2);
  CHECK(histogram.bucket(2) == 1);
  CHECK(histogram.bucket(3) == 2);
  CHECK(histogram.sum() == 0.0 + 1 + 1.5 + 10 + 99 + 101 + 1e9);
}
