// How often a router may say something new.
#include "routing/router/record_bucket.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace std::chrono_literals;

namespace {

uint32_t taken(RecordBucket& bucket, Instant now) {
  uint32_t count = 0;
  while (bucket.take(now)) ++count;
  return count;
}

}  // namespace

TEST_CASE("record_bucket__after_a_burst__one_in_every_gap") {
  RecordBucket bucket;
  const Instant began = Instant{} + 1h;
  CHECK(taken(bucket, began) == RecordBucket::burst);
  CHECK(taken(bucket, began + RecordBucket::gap - 1ms) == 0);
  CHECK(taken(bucket, began + RecordBucket::gap) == 1);
  CHECK(taken(bucket, began + 4 * RecordBucket::gap - 1ms) == 2);
  CHECK(taken(bucket, began + 4 * RecordBucket::gap) == 1);
}

TEST_CASE("record_bucket__a_long_silence__earns_no_more_than_a_burst") {
  RecordBucket bucket;
  const Instant began = Instant{} + 1h;
  CHECK(bucket.take(began));
  CHECK(taken(bucket, began + 100h) == RecordBucket::burst);
  CHECK(taken(bucket, began + 100h) == 0);
}
