// The jobs of one session in the work pool. A job consists of two functions: `work` runs on a pool
// thread and uses nothing of the session that the protocol thread changes; then `done` runs on the
// protocol thread. The object outlives its jobs: its session does not end while one is running.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "app/session/wake.h"
#include "core/ports/work_pool.h"

namespace ccixfer::recv {

class SessionJobs {
 public:
  SessionJobs(ports::WorkPool& pool, session::Wake& wake) : pool_(pool), wake_(wake) {}
  SessionJobs(const SessionJobs&) = delete;
  SessionJobs& operator=(const SessionJobs&) = delete;

  template <typename Work, typename Done>
  void submit(Work work, Done done) {
    ++running_;
    pool_.submit(std::make_unique<Job<Work, Done>>(*this, std::move(work), std::move(done)));
  }
  [[nodiscard]] uint32_t running() const { return running_; }
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  template <typename Work, typename Done>
  class Job final : public ports::Job {
   public:
    Job(SessionJobs& jobs, Work work, Done done) : jobs_(jobs), work_(std::move(work)), done_(std::move(done)) {}
    void run(ports::FileSystem&) override { work_(); }
    void done() override {
      --jobs_.running_;
      ++jobs_.ended_;
      jobs_.wake_.set();
      done_();
    }

   private:
    SessionJobs& jobs_;
    Work work_;
    Done done_;
  };

  ports::WorkPool& pool_;
  session::Wake& wake_;
  uint32_t running_ = 0;
  uint64_t ended_ = 0;
};

}  // namespace ccixfer::recv
