// Holes are made by one job at a time, and no more than so many wait.
#include "app/recv/hole_queue.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

struct Rig {
  test::JobRig rig;
  test::FaultyFiles disk;
  OpenedRoot root{disk, -1, ""};  // nothing is opened below it: each job fails
  FileTaskRef task = test::task_of(1, 4 * session::piece_bytes);
  std::shared_ptr<StagedFile> staged = std::make_shared<StagedFile>(root, *task, false);
  std::vector<std::pair<uint64_t, int>> told;
  HoleQueue queue{rig.jobs, [this](const session::Holes& holes, int error) { told.emplace_back(holes.ranges.size(), error); }};
};

TEST_CASE("hole_queue__a_job_is_slow__what_comes_meanwhile_is_one_more_job") {
  Rig rig;
  for (int i = 0; i < 10'000; ++i) REQUIRE(rig.queue.add(rig.task, rig.staged, {1, {{0, 1}}}));
  CHECK(rig.rig.jobs.running() == 1);
  rig.rig.pool.reap();
  CHECK(rig.rig.jobs.running() == 1);
  rig.rig.pool.reap();
  CHECK(rig.rig.jobs.running() == 0);
  REQUIRE(rig.told.size() == 10'000);
  CHECK(rig.told[0].first == 1);
  CHECK(rig.told[0].second > 0);
}

TEST_CASE("hole_queue__more_ranges_than_may_wait__are_refused_until_some_are_made") {
  Rig rig;
  const std::vector<session::Want::Range> many(hole_ranges_max - 1, {0, 1});
  REQUIRE(rig.queue.add(rig.task, rig.staged, {1, many}));
  CHECK_FALSE(rig.queue.add(rig.task, rig.staged, {1, {{0, 1}}}));
  CHECK_FALSE(rig.queue.add(rig.task, rig.staged, {1, {}}));  // which is remembered all the same
  rig.rig.pool.reap();
  CHECK(rig.queue.add(rig.task, rig.staged, {1, {{0, 1}}}));
  rig.rig.pool.reap();
}

}  // namespace
}  // namespace ccixfer::recv
