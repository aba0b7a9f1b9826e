// Jobs of a source that may end before they do.
#include "app/send/jobs.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

struct Stage {
  int ended = 0;
  void job_ended(int& data) { ended += data; }
};

TEST_CASE("jobs__one_ends__its_stage_is_told_and_the_next_turn_is_due") {
  WatchedFiles files;
  QueuePool pool(files);
  const auto jobs = std::make_shared<send::Jobs>(pool);
  Stage stage;
  jobs->submit(
      stage, std::make_unique<int>(3), [](ports::FileSystem&, int& data, send::Jobs&) { data += 4; }, &Stage::job_ended);
  CHECK(jobs->running() == 1);
  CHECK_FALSE(jobs->wake().is_set());
  pool.reap();
  CHECK(stage.ended == 7);
  CHECK(jobs->running() == 0);
  CHECK(jobs->steps() == 1);
  CHECK(jobs->wake().is_set());
  jobs->wake().clear();
  CHECK_FALSE(jobs->wake().is_set());
}

TEST_CASE("jobs__source_ends_first__a_job_only_releases_what_it_holds") {
  WatchedFiles files;
  QueuePool pool(files);
  auto jobs = std::make_shared<send::Jobs>(pool);
  using Held = std::shared_ptr<send::OpenFile>;
  struct OpenStage {
    bool told = false;
    void opened(Held&) { told = true; }
  } stage;
  jobs->submit(
      stage, std::make_unique<Held>(std::make_shared<send::OpenFile>(jobs)),
      [](ports::FileSystem& world, Held& data, send::Jobs&) {
        ports::OpenFlags flags;
        flags.directory = true;
        data->set(world.open(ports::FileSystem::no_directory, "/", flags, 0));
      },
      &OpenStage::opened);
  jobs->source_ends();
  jobs.reset();
  pool.reap();
  CHECK_FALSE(stage.told);
  CHECK(files.open_now == 1);
  CHECK(pool.in_flight() == 1);  // the job that closes it
  pool.reap();
  CHECK(files.open_now == 0);
}

}  // namespace
}  // namespace ccixfer::send_test
