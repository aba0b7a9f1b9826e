// Jobs of a session are counted, and wake it when they end.
#include "app/recv/session_jobs.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

TEST_CASE("session_jobs__job_that_ends__is_counted_and_wakes_the_session") {
  test::JobRig rig;
  int result = 0;
  uint32_t running_when_told = 99;
  auto value = std::make_shared<int>(0);
  rig.jobs.submit([value] { *value = 7; },
                  [&, value] {
                    result = *value;
                    running_when_told = rig.jobs.running();
                  });
  rig.jobs.submit([] {}, [] {});
  CHECK(rig.jobs.running() == 2);
  CHECK(rig.jobs.ended() == 0);
  CHECK_FALSE(rig.wake.is_set());
  rig.pool.reap();
  CHECK(result == 7);
  CHECK(running_when_told == 1);
  CHECK(rig.jobs.running() == 0);
  CHECK(rig.jobs.ended() == 2);
  CHECK(rig.wake.is_set());
  rig.wake.clear();
  CHECK_FALSE(rig.wake.is_set());
}

}  // namespace
}  // namespace ccixfer::recv
