// Batches of staged files for the committer, files that are held, and cancelling.
#include "app/recv/commit_queue.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

const Instant now{std::chrono::hours(1)};

struct Rig final : CommitHandler {
  test::JobRig rig;
  std::vector<size_t> batches;
  bool is_held = false;
  HeldFileRef replaced;  // by the next batch
  std::vector<std::string> committed, cancelled;
  CommitQueue queue{rig.jobs,
                    [this](std::vector<CommitItem>& batch) {
                      batches.push_back(batch.size());
                      for (CommitItem& item : batch) {
                        item.error_number = 7;
                        item.replaced = std::exchange(replaced, nullptr);
                        if (is_held) item.outcome = CommitOutcome::held;
                      }
                    },
                    *this};
  void on_committed(const CommitItem& item) override {
    CHECK(item.error_number == 7);
    committed.push_back(item.staged);
  }
  void on_commit_cancelled(const CommitItem& item) override { cancelled.push_back(item.staged); }
  void add(const std::string& name) {
    CommitItem item;
    item.staged = name;
    queue.add(std::move(item));
  }
};

TEST_CASE("commit_queue__items_that_come_while_a_batch_runs__are_the_next_batch") {
  Rig rig;
  rig.queue.turn(now);
  CHECK(rig.rig.jobs.running() == 0);
  rig.add("a");
  CHECK_FALSE(rig.queue.empty());
  rig.queue.turn(now);
  CHECK(rig.queue.empty());
  rig.add("b");
  rig.add("c");
  rig.queue.turn(now);
  CHECK(rig.rig.jobs.running() == 1);
  rig.rig.pool.reap();
  rig.queue.turn(now);
  rig.rig.pool.reap();
  CHECK(rig.batches == std::vector<size_t>{1, 2});
  CHECK(rig.committed == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("commit_queue__a_batch_replaced_a_large_file__lets_go_of_it_in_a_job_that_nobody_waits_for") {
  Rig rig;
  test::TemporaryDirectory temporary;
  host::PosixFileSystem files;
  temporary.write("old", "old");
  rig.replaced = std::make_shared<HeldFile>(files, files.open(ports::FileSystem::no_directory, temporary.path("old"), {}, 0));
  const std::weak_ptr<HeldFile> replaced = rig.replaced;
  rig.add("a");
  rig.queue.turn(now);
  rig.rig.pool.reap();
  CHECK(rig.committed == std::vector<std::string>{"a"});
  CHECK_FALSE(replaced.expired());
  CHECK(rig.rig.jobs.running() == 1);
  rig.rig.pool.reap();
  CHECK(replaced.expired());
}

TEST_CASE("commit_queue__a_file_that_is_held__is_tried_again_until_it_is_let_go") {
  Rig rig;
  rig.is_held = true;
  rig.add("a");
  rig.queue.turn(now);
  rig.rig.pool.reap();
  CHECK(rig.committed.empty());
  CHECK_FALSE(rig.queue.empty());
  CHECK(rig.queue.next_deadline() == after(now, held_pause));
  rig.queue.turn(now);
  CHECK(rig.rig.jobs.running() == 0);  // not yet
  rig.is_held = false;
  rig.queue.turn(after(now, held_pause));
  rig.rig.pool.reap();
  CHECK(rig.committed == std::vector<std::string>{"a"});
  CHECK(rig.queue.empty());
  CHECK(rig.queue.next_deadline() == never);
}

TEST_CASE("commit_queue__a_file_that_is_held_for_too_long__is_told") {
  Rig rig;
  rig.is_held = true;
  rig.add("a");
  Instant at = now;
  for (; rig.committed.empty() && at < after(now, 2 * held_patience); at = after(at, held_pause)) {
    rig.queue.turn(at);
    rig.rig.pool.reap();
  }
  CHECK(rig.committed == std::vector<std::string>{"a"});
  CHECK(at >= after(now, held_patience));
  CHECK(rig.queue.empty());
}

TEST_CASE("commit_queue__cancel__gives_back_what_is_held_too") {
  Rig rig;
  rig.is_held = true;
  rig.add("a");
  rig.queue.turn(now);
  rig.rig.pool.reap();
  CHECK(rig.queue.cancel());
  CHECK(rig.cancelled == std::vector<std::string>{"a"});
  CHECK(rig.queue.empty());
}

TEST_CASE("commit_queue__cancel__gives_back_what_waits_once_the_batch_that_runs_has_ended") {
  Rig rig;
  CHECK_FALSE(rig.queue.cancel());
  rig.add("a");
  rig.queue.turn(now);
  rig.add("b");
  CHECK_FALSE(rig.queue.cancel());
  rig.rig.pool.reap();
  CHECK(rig.queue.cancel());
  CHECK_FALSE(rig.queue.cancel());
  CHECK(rig.committed == std::vector<std::string>{"a"});
  CHECK(rig.cancelled == std::vector<std::string>{"b"});
  CHECK(rig.batches.size() == 1);
}

}  // namespace
}  // namespace ccixfer::recv
