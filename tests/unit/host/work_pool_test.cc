// The work pool runs jobs on threads, and calls `done` on the thread that reaps; the clock and entropy of the host.
#include "core/host/work_pool.h"

#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "core/host/clock.h"
#include "core/host/entropy.h"
#include "core/host/file_system.h"
#include "tests/unit/host/few_processes.h"

using namespace ccixfer;

namespace {

struct TestJob final : ports::Job {
  std::function<void(ports::FileSystem&)> on_run = [](ports::FileSystem&) {};
  std::function<void()> on_done = [] {};
  std::atomic<int>* alive = nullptr;
  explicit TestJob(std::atomic<int>* counter = nullptr) : alive(counter) {
    if (alive != nullptr) ++*alive;
  }
  ~TestJob() override {
    if (alive != nullptr) --*alive;
  }
  void run(ports::FileSystem& files) override { on_run(files); }
  void done() override { on_done(); }
};

class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

bool readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

void reap_all(ports::WorkPool& pool) {
  while (pool.in_flight() > 0) {
    if (readable(pool.os_handle(), -1)) pool.reap();
  }
}

}  // namespace

TEST_CASE("work_pool__jobs_submitted__run_once_and_done_on_the_reaping_thread") {
  host::PosixFileSystem files;
  host::ThreadWorkPool pool(files, 3);
  CHECK_FALSE(readable(pool.os_handle(), 0));
  std::atomic<int> ran = 0;
  std::atomic<int> alive = 0;
  int done = 0;
  const auto thread = std::this_thread::get_id();
  bool right_thread = true;
  for (int i = 0; i < 500; ++i) {
    auto job = std::make_unique<TestJob>(&alive);
    job->on_run = [&](ports::FileSystem& given) { ran += &given == &files ? 1 : 1000; };
    job->on_done = [&] {
      ++done;
      right_thread = right_thread && std::this_thread::get_id() == thread;
    };
    pool.submit(std::move(job));
  }
  CHECK(pool.in_flight() == 500);
  reap_all(pool);
  CHECK(ran == 500);
  CHECK(done == 500);
  CHECK(alive == 0);
  CHECK(right_thread);
  CHECK_FALSE(readable(pool.os_handle(), 0));
  CHECK(pool.reap() == 0);
}

TEST_CASE("work_pool__as_many_jobs_at_once_as_it_has_threads") {
  constexpr int threads = 3;
  host::PosixFileSystem files;
  host::ThreadWorkPool pool(files, threads);
  Gate gate;
  std::atomic<int> running = 0;
  for (int i = 0; i < threads + 2; ++i) {
    auto job = std::make_unique<TestJob>();
    job->on_run = [&](ports::FileSystem&) {
      ++running;
      gate.wait();
    };
    pool.submit(std::move(job));
  }
  while (running.load() < threads) std::this_thread::yield();
  const auto threads_now = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  const auto before = threads_now();
  {
    host::ThreadWorkPool other(files, threads);
    CHECK(threads_now() == before);  // until the first job, so that the process may confine itself
    other.submit(std::make_unique<TestJob>());
    CHECK(threads_now() == before + threads);
    reap_all(other);
  }
  gate.open();
  reap_all(pool);
  CHECK(running.load() == threads + 2);
}

TEST_CASE("work_pool__done_submits__the_new_job_runs_too") {
  host::PosixFileSystem files;
  host::ThreadWorkPool pool(files, 1);
  int rounds = 0;
  std::function<void()> again = [&] {
    if (++rounds == 20) return;
    auto job = std::make_unique<TestJob>();
    job->on_done = again;
    pool.submit(std::move(job));
  };
  auto first = std::make_unique<TestJob>();
  first->on_done = again;
  pool.submit(std::move(first));
  reap_all(pool);
  CHECK(rounds == 20);
}

TEST_CASE("work_pool__destroyed__running_jobs_finish_and_queued_ones_are_dropped_uncalled") {
  host::PosixFileSystem files;
  std::atomic<int> alive = 0;
  std::atomic<bool> finished = false;
  std::atomic<int> done = 0;
  Gate started;
  Gate go;
  std::thread opener;
  {
    host::ThreadWorkPool pool(files, 1);
    auto running = std::make_unique<TestJob>(&alive);
    running->on_run = [&](ports::FileSystem&) {
      started.open();
      go.wait();
      finished = true;
    };
    running->on_done = [&] { ++done; };
    pool.submit(std::move(running));
    started.wait();
    for (int i = 0; i < 10; ++i) {
      auto job = std::make_unique<TestJob>(&alive);
      job->on_done = [&] { ++done; };
      pool.submit(std::move(job));
    }
    opener = std::thread([&] { go.open(); });
  }
  opener.join();
  // The gate may open before the destructor told the thread to stop, so some queued jobs may have run; none is called done.
  CHECK(finished);
  CHECK(done == 0);
  CHECK(alive == 0);
}

TEST_CASE("clock_and_entropy__read_twice__time_does_not_go_back_and_numbers_differ") {
  const host::SystemClock clock;
  const Instant first = clock.now();
  CHECK(clock.now() >= first);
  host::SystemEntropy entropy;
  CHECK(entropy.next_u64() != entropy.next_u64());
}

TEST_CASE("work_pool__host_gives_no_thread__is_told_and_fewer_than_wanted_are_enough") {
  CHECK(testing::with_few_processes(1, [] {
    host::PosixFileSystem files;
    host::ThreadWorkPool pool(files, 3);
    const auto begun = pool.begin();
    return !begun && begun.error().kind == ErrorKind::file_io && begun.error().message.find("ulimit -u") != std::string::npos;
  }));
  CHECK(testing::with_few_processes(2, [] {
    host::PosixFileSystem files;
    host::ThreadWorkPool pool(files, 3);
    int ran = 0;
    if (!pool.begin()) return false;
    for (int i = 0; i < 3; ++i) {
      auto job = std::make_unique<TestJob>();
      job->on_done = [&ran] { ++ran; };
      pool.submit(std::move(job));
    }
    reap_all(pool);
    return ran == 3;
  }));
}

TEST_CASE("work_pool__no_descriptor_is_left__is_told") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 0;
  host::PosixFileSystem files;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  host::ThreadWorkPool pool(files, 1);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto begun = pool.begin();
  REQUIRE_FALSE(begun);
  CHECK(begun.error().kind == ErrorKind::file_io);
  CHECK(begun.error().message.find("ulimit -n") != std::string::npos);
}
