#include "core/host/work_pool.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/host/threads.h"

namespace ccixfer::host {

using JobPtr = std::unique_ptr<ports::Job>;

struct ThreadWorkPool::Impl {
  Impl(ports::FileSystem& file_system, unsigned threads_wanted)
      : files(file_system), thread_count(threads_wanted), handle(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    CHECK(thread_count >= 1 && thread_count <= work_pool_threads_max);
  }
  // With fewer than wanted it goes on: what cannot be had now is not asked for with each job.
  Result<void> start() {
    if (handle < 0) {
      return fail(ErrorKind::file_io,
                  fmt::format("no descriptor for the work pool: {}: raise the limit of open files (ulimit -n; LimitNOFILE= of a "
                              "service)",
                              std::generic_category().message(handle_error)));
    }
    while (threads.size() < thread_count) {
      auto thread = begin_thread([this] { work(); });
      if (!thread && threads.empty()) return tl::unexpected(thread.error());
      if (!thread) thread_count = static_cast<unsigned>(threads.size());
      if (thread) threads.push_back(std::move(*thread));
    }
    return {};
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
    if (handle >= 0) ::close(handle);
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stopping || !queued.empty(); });
      if (stopping) return;
      JobPtr job = std::move(queued.front());
      queued.pop_front();
      lock.unlock();
      job->run(files);
      lock.lock();
      finished.push_back(std::move(job));
      if (finished.size() == 1) signal();
    }
  }

  void signal() const {
    const uint64_t one = 1;
    ssize_t written = -1;
    do {
      written = ::write(handle, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
  }

  void clear_signal() const {
    uint64_t count = 0;
    ssize_t got = -1;
    do {
      got = ::read(handle, &count, sizeof count);
    } while (got < 0 && errno == EINTR);
  }

  ports::FileSystem& files;
  unsigned thread_count;
  const int handle;
  const int handle_error = errno;  // of the line above
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;         // under mutex
  std::deque<JobPtr> queued;     // under mutex
  std::vector<JobPtr> finished;  // under mutex
  size_t in_flight = 0;          // protocol thread only
  std::vector<std::thread> threads;
};

ThreadWorkPool::ThreadWorkPool(ports::FileSystem& files, unsigned threads) : impl_(std::make_unique<Impl>(files, threads)) {}
ThreadWorkPool::~ThreadWorkPool() = default;

Result<void> ThreadWorkPool::begin() { return impl_->start(); }

void ThreadWorkPool::submit(JobPtr job) {
  CHECK(job != nullptr);
  CHECK(impl_->in_flight < work_pool_jobs_max);
  ++impl_->in_flight;
  const auto started = impl_->start();
  CHECK(started);  // begin() has told
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->queued.push_back(std::move(job));
  }
  impl_->wake.notify_one();
}

size_t ThreadWorkPool::reap() {
  std::vector<JobPtr> finished;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->finished.empty()) return 0;
    impl_->clear_signal();
    finished.swap(impl_->finished);
  }
  for (JobPtr& job : finished) {
    job->done();
    job.reset();
    --impl_->in_flight;
  }
  return finished.size();
}

size_t ThreadWorkPool::in_flight() const { return impl_->in_flight; }
int ThreadWorkPool::os_handle() const { return impl_->handle; }

}  // namespace ccixfer::host
