// The steps of a router's planned stop.
#include "routing/router/planned_stop.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

TEST_CASE("planned_stop__not_wanted__no_step_is_due") {
  PlannedStop stop;
  const Instant now = Instant{} + std::chrono::seconds(100);
  CHECK_FALSE(stop.begins(now));
  CHECK_FALSE(stop.closes(now));
  CHECK_FALSE(stop.is_over(now));
  CHECK(stop.next_deadline() == never);
}

TEST_CASE("planned_stop__wanted__begins_closes_and_is_over_each_in_its_time_and_once") {
  PlannedStop stop;
  const Instant now = Instant{} + std::chrono::seconds(100);
  stop.want();
  CHECK_FALSE(stop.has_begun());
  CHECK(stop.begins(now));
  CHECK_FALSE(stop.begins(now + drain_timeout));
  CHECK(stop.next_deadline() == now + drain_timeout);
  CHECK_FALSE(stop.closes(now + drain_timeout - Duration(1)));
  CHECK(stop.closes(now + drain_timeout));
  CHECK_FALSE(stop.closes(now + drain_timeout));
  CHECK(stop.next_deadline() == now + drain_timeout + drain_flush_timeout);
  CHECK_FALSE(stop.is_over(now + drain_timeout + drain_flush_timeout - Duration(1)));
  CHECK(stop.is_over(now + drain_timeout + drain_flush_timeout));
}
