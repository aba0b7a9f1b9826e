#include "app/recv/commit_queue.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

struct Rig final : CommitHandler {
  test::JobRig rig;
  std::vector<size_t> batches;
  std::vector<std::string> committed, cancelled;
  CommitQueue queue{rig.jobs,
                    [this](std::vector<CommitItem>& batch) {
                      batches.push_back(batch.size());
                      for (CommitItem& item : batch) item.error_number = 7;
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
  rig.queue.turn();
  CHECK(rig.rig.jobs.running() == 0);
  rig.add("a");
  CHECK_FALSE(rig.queue.empty());
  rig.queue.turn();
  CHECK(rig.queue.empty());
  rig.add("b");
  rig.add("c");
  rig.queue.turn();
  CHECK(rig.rig.jobs.running() == 1);
  rig.rig.pool.reap();
  rig.queue.turn();
  rig.rig.pool.reap();
  CHECK(rig.batches == std::vector<size_t>{1, 2});
  CHECK(rig.committed == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("commit_queue__cancel__gives_back_what_waits_once_the_batch_that_runs_has_ended") {
  Rig rig;
  CHECK_FALSE(rig.queue.cancel());
  rig.add("a");
  rig.queue.turn();
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
