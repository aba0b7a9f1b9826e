// Disk work on a few threads. submit(), reap(), in_flight() and the destructor belong to one thread, the protocol thread.
// The descriptor of os_handle() is readable from the end of a job's run() until the next reap().
// Bounds: work_pool_jobs_max jobs at most; more is the submitter's bug (it holds a loan of a bounded pool for each).
// The threads begin with begin() or the first job, so that a process can confine itself (core/sandbox) when it has made its pool.
// A host that gives fewer of them than wanted makes it slower and nothing else.
// The destructor lets the jobs that run finish, and drops the queued and the finished ones without calling anything of them
// but their destructors.
#pragma once
#include <memory>

#include "core/base/result.h"
#include "core/ports/work_pool.h"

namespace ccixfer::host {

inline constexpr size_t work_pool_jobs_max = 1u << 18;
inline constexpr unsigned work_pool_threads_max = 64;

class ThreadWorkPool final : public ports::WorkPool {
 public:
  ThreadWorkPool(ports::FileSystem& files, unsigned threads);  // threads: 1 to work_pool_threads_max
  ~ThreadWorkPool() override;
  ThreadWorkPool(const ThreadWorkPool&) = delete;
  ThreadWorkPool& operator=(const ThreadWorkPool&) = delete;

  // file_io: no thread at all can be made, or there is no descriptor. Who has not asked finds out by a CHECK with the first job.
  [[nodiscard]] Result<void> begin();
  void submit(std::unique_ptr<ports::Job> job) override;
  size_t reap() override;
  [[nodiscard]] size_t in_flight() const override;
  [[nodiscard]] int os_handle() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::host
