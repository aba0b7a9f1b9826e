// How many negative acknowledgements a connection may draw.
#include "core/rvma/nack_limit.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::rvma;
using std::chrono::milliseconds;

TEST_CASE("nack_limit__zero__none") {
  NackLimit limit(0);
  for (int i = 0; i < 100; ++i) CHECK(limit.allow(1, Instant{}));
  CHECK(limit.connections() == 0);
}

TEST_CASE("nack_limit__one_second_s_worth_then_as_time_allows") {
  NackLimit limit(3);
  Instant now{};
  for (int i = 0; i < 3; ++i) CHECK(limit.allow(1, now));
  CHECK_FALSE(limit.allow(1, now));
  CHECK_FALSE(limit.allow(1, now + milliseconds(333)));
  CHECK(limit.allow(1, now + milliseconds(334)));
  CHECK_FALSE(limit.allow(1, now + milliseconds(334)));
  now += std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) CHECK(limit.allow(1, now));  // never more than a second's worth is saved
  CHECK_FALSE(limit.allow(1, now));
}

TEST_CASE("nack_limit__very_many_connections__bounded_and_the_one_in_use_keeps_its_bucket") {
  NackLimit limit(1);
  const Instant now{};
  CHECK(limit.allow(7, now));
  for (uint64_t connection = 1000; connection < 1000 + 10 * NackLimit::connections_max; ++connection) {
    CHECK(limit.allow(connection, now));
    CHECK_FALSE(limit.allow(7, now));
  }
  CHECK(limit.connections() <= NackLimit::connections_max);
}

TEST_CASE("nack_limit__few_busy_connections_then_many__the_least_recently_used_give_way") {
  NackLimit limit(1);
  const Instant now{};
  constexpr uint64_t few = 100;
  for (int i = 0; i < 300; ++i) {
    for (uint64_t connection = 0; connection < few; ++connection) CHECK(limit.allow(connection, now) == (i == 0));
  }
  CHECK(limit.connections() == few);
  for (uint64_t connection = 1000; connection < 1000 + NackLimit::connections_max - few / 2; ++connection)
    CHECK(limit.allow(connection, now));
  CHECK(limit.connections() == NackLimit::connections_max);
  for (uint64_t connection = few; connection-- > few / 2;) CHECK_FALSE(limit.allow(connection, now));  // the latter half is known
  CHECK(limit.allow(0, now));                                                                          // the first is forgotten
  CHECK(limit.connections() == NackLimit::connections_max);
}
