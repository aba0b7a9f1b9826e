// When the attributes of directories are due.
#include "app/recv/leave_queue.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

struct Rig {
  test::JobRig rig;
  std::vector<std::string> applied;
  size_t outcomes = 0;
  uint64_t file_in_work = 0;
  int looks = 0;
  LeaveQueue queue{rig.jobs,
                   [this](const std::vector<Leave>& leaves) {
                     for (const Leave& leave : leaves) applied.push_back(leave.path);
                     return std::vector<LeaveOutcome>(leaves.size());
                   },
                   [this](const std::vector<LeaveOutcome>& all) { outcomes += all.size(); },
                   [this](uint64_t first, uint64_t end) {
                     ++looks;
                     return first <= file_in_work && file_in_work < end;
                   }};
  void add(const std::string& path, uint64_t first_index, uint64_t leave_index, bool is_last = false) {
    Leave leave;
    leave.path = path;
    leave.first_index = first_index;
    leave.leave_index = leave_index;
    leave.is_last = is_last;
    queue.add(std::move(leave));
  }
  void turn() {
    queue.turn();
    rig.pool.reap();
  }
};

TEST_CASE("leave_queue__directories__are_due_in_order_when_no_file_in_them_is_in_work") {
  Rig rig;
  rig.file_in_work = 4;
  rig.add("a/b", 2, 3);
  rig.add("a/c", 4, 6);
  rig.add("a/d", 6, 7);
  rig.add("a", 1, 8);
  rig.turn();
  CHECK(rig.applied == std::vector<std::string>{"a/b", "a/d"});
  CHECK(rig.outcomes == 2);
  CHECK_FALSE(rig.queue.empty());
  rig.file_in_work = 100;
  rig.queue.file_ended();
  rig.queue.turn();
  CHECK_FALSE(rig.queue.empty());  // they are in their job
  rig.rig.pool.reap();
  CHECK(rig.applied == std::vector<std::string>{"a/b", "a/d", "a/c", "a"});
  CHECK(rig.queue.empty());
}

TEST_CASE("leave_queue__turn_after_which_nothing_changed__looks_at_nothing") {
  Rig rig;
  rig.file_in_work = 1;
  rig.add("a", 1, 3);
  rig.turn();
  rig.turn();
  CHECK(rig.looks == 1);
  rig.queue.file_ended();
  rig.turn();
  CHECK(rig.looks == 2);
}

TEST_CASE("leave_queue__directory_that_is_left_while_a_job_runs__is_looked_at_after_it") {
  Rig rig;
  rig.add("a", 1, 3);
  rig.queue.turn();
  rig.add("b", 4, 5);
  rig.queue.turn();
  CHECK(rig.rig.jobs.running() == 1);
  rig.rig.pool.reap();
  rig.turn();
  CHECK(rig.applied == std::vector<std::string>{"a", "b"});
}

TEST_CASE("leave_queue__directories_that_something_is_left_to_do_in__are_due_at_the_end") {
  Rig rig;
  rig.file_in_work = 100;
  rig.add("a/b", 2, 3, true);
  rig.add("a/c", 4, 6);
  rig.add("a", 1, 7, true);
  rig.turn();
  CHECK(rig.applied == std::vector<std::string>{"a/c"});
  CHECK(rig.queue.empty());
  CHECK_FALSE(rig.queue.finish());
  rig.rig.pool.reap();
  CHECK(rig.queue.finish());
  CHECK(rig.applied == std::vector<std::string>{"a/c", "a/b", "a"});
  CHECK(rig.outcomes == 3);
}

TEST_CASE("leave_queue__more_directories_for_the_end_than_may_wait__all_are_due_in_their_order") {
  Rig rig;
  rig.file_in_work = 10 * LeaveQueue::last_max;
  for (uint64_t i = 0; i < LeaveQueue::last_max; ++i) rig.add("a/" + std::to_string(i), i, i + 1, true);
  rig.turn();
  CHECK(rig.applied.empty());
  rig.add("a", 0, LeaveQueue::last_max, true);
  rig.turn();
  REQUIRE(rig.applied.size() == LeaveQueue::last_max + 1);
  CHECK(rig.applied.front() == "a/0");
  CHECK(rig.applied.back() == "a");
  CHECK(rig.queue.finish());
}

}  // namespace
}  // namespace ccixfer::recv
