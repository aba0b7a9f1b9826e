// Bytes that move are told from keepalives.
#include "app/main/flow_watch.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;
using namespace std::chrono_literals;

TEST_CASE("flow_watch__bytes_that_move__are_told_from_keepalives_and_from_none") {
  FlowWatch watch;
  Instant now{5h};
  CHECK(watch.is_due(now));
  CHECK_FALSE(watch.note(now, 1'000'000));  // a beginning: nobody knows since when
  CHECK_FALSE(watch.is_due(now + 1s - 1ns));
  now += 1s;
  REQUIRE(watch.is_due(now));
  CHECK(watch.note(now, 1'000'000 + flow_bytes_per_s_min) == now);
  now += 1s;
  CHECK_FALSE(watch.note(now, 1'000'000 + 2 * flow_bytes_per_s_min - 1));  // words now and then
  now += 1s;
  CHECK_FALSE(watch.note(now, 500));  // a lane went
  now += 1s;
  CHECK(watch.note(now, 500 + flow_bytes_per_s_min) == now);
  const Instant before = now;
  now += 30s;
  CHECK(watch.note(now, 500 + 31 * flow_bytes_per_s_min) == before + 1s);  // perhaps at once, and nothing since
  now += 30s;
  CHECK_FALSE(watch.note(now, 500 + 32 * flow_bytes_per_s_min));
}
