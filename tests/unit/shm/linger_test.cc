// After which sleeps a reader of shared memory first looks on for a moment.
#include "transports/shm/linger.h"

#include <catch2/catch.hpp>

using ccixfer::shm::Linger;

namespace {

// How many sleeps come until there is a moment before one.
int sleeps_without(Linger& linger) {
  int count = 0;
  while (!linger.before_this_sleep()) ++count;
  return count;
}

}  // namespace

TEST_CASE("linger__in_vain__twice_as_many_sleeps_without_each_time_and_no_more_than_63") {
  Linger linger;
  CHECK(sleeps_without(linger) == 0);
  for (const int expected : {1, 3, 7, 15, 31, 63, 63, 63}) {
    linger.ended(false);
    CHECK(sleeps_without(linger) == expected);
  }
}

TEST_CASE("linger__news__each_sleep_after_a_moment_again") {
  Linger linger;
  for (int i = 0; i < 10; ++i) linger.ended(false);
  CHECK(sleeps_without(linger) == 63);
  linger.ended(true);
  CHECK(sleeps_without(linger) == 0);
  CHECK(sleeps_without(linger) == 0);  // as long as nothing was in vain
  linger.ended(false);
  CHECK(sleeps_without(linger) == 1);  // from the beginning
}
