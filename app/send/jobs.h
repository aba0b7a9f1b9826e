// The jobs of a source in the work pool, and the descriptors that they hold. A job owns all that
// its run() touches. When the source is gone by the time that a job comes back, the job only lets
// go of what it owned. Closing a descriptor is a system call and so a job too: release() puts the
// descriptor on a list, and flush() submits one job that closes the list.
// Ownership: the source and each of its jobs share one Jobs. Thread: all of it belongs to the
// protocol thread, but for run() of a job and steps().
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/send/walk.h"
#include "app/session/wake.h"
#include "core/ports/work_pool.h"

namespace ccixfer::send {

class Jobs : public std::enable_shared_from_this<Jobs> {
 public:
  template <typename Data>
  using Run = void (*)(ports::FileSystem&, Data&, Jobs&);  // a lambda without captures, or a function

  explicit Jobs(ports::WorkPool& pool) : pool_(pool) {}

  // Runs `run` in the work pool, and then `done` of `stage` on the protocol thread, if the source
  // still lives.
  template <typename Stage, typename Data>
  void submit(Stage& stage, std::unique_ptr<Data> data, std::type_identity_t<Run<Data>> run, void (Stage::*done)(Data&));
  void source_ends() { source_lives_ = false; }  // the stages of the source are about to be destroyed
  [[nodiscard]] size_t running() const { return running_; }
  // Work done by jobs: it shows that the source is alive although the network is silent.
  [[nodiscard]] std::atomic<uint64_t>& steps() { return steps_; }

  // Something happened, so the next turn of the source is due. The end of each job sets it.
  [[nodiscard]] session::Wake& wake() { return wake_; }

  void release(int fd) { descriptors_.push_back(fd); }
  void release(std::unique_ptr<Walk> walk) { walks_.push_back(std::move(walk)); }
  void flush();  // closes what was released

 private:
  template <typename Stage, typename Data>
  class Task;

  ports::WorkPool& pool_;
  bool source_lives_ = true;
  session::Wake wake_;
  size_t running_ = 0;
  std::atomic<uint64_t> steps_{0};
  std::vector<int> descriptors_;
  std::vector<std::unique_ptr<Walk>> walks_;
};

// The place of a descriptor that a job opens. It is made before the job, so that the descriptor is
// released whatever becomes of the job.
class OpenFile {
 public:
  explicit OpenFile(std::shared_ptr<Jobs> jobs) : jobs_(std::move(jobs)) {}
  ~OpenFile() {
    if (fd_ >= 0) jobs_->release(fd_);
  }
  void set(int fd) { fd_ = fd; }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  std::shared_ptr<Jobs> jobs_;
  int fd_ = -1;
};

// Keeps the descriptors of the sources open as long as some job reads below them.
class WalkHold {
 public:
  WalkHold(std::shared_ptr<Jobs> jobs, WalkOptions options)
      : jobs_(std::move(jobs)), walk_(std::make_unique<Walk>(std::move(options))) {
    walk_->count_steps(jobs_->steps());
  }
  ~WalkHold() { jobs_->release(std::move(walk_)); }
  WalkHold(const WalkHold&) = delete;
  WalkHold& operator=(const WalkHold&) = delete;
  [[nodiscard]] Walk& operator*() const { return *walk_; }
  [[nodiscard]] Walk* operator->() const { return walk_.get(); }

 private:
  std::shared_ptr<Jobs> jobs_;
  std::unique_ptr<Walk> walk_;
};

template <typename Stage, typename Data>
class Jobs::Task final : public ports::Job {
 public:
  using Done = void (Stage::*)(Data&);
  Task(std::shared_ptr<Jobs> jobs, Stage& stage, std::unique_ptr<Data> data, Run<Data> on_run, Done on_done)
      : jobs_(std::move(jobs)), stage_(stage), data_(std::move(data)), run_(on_run), done_(on_done) {}
  void run(ports::FileSystem& files) override {
    run_(files, *data_, *jobs_);
    jobs_->steps_.fetch_add(1, std::memory_order_relaxed);
  }
  void done() override {
    --jobs_->running_;
    if (jobs_->source_lives_) {
      jobs_->wake_.set();
      (stage_.*done_)(*data_);
    }
    data_.reset();
    if (!jobs_->source_lives_) jobs_->flush();
  }

 private:
  std::shared_ptr<Jobs> jobs_;
  Stage& stage_;
  std::unique_ptr<Data> data_;
  Run<Data> run_;
  Done done_;
};

template <typename Stage, typename Data>
void Jobs::submit(Stage& stage, std::unique_ptr<Data> data, std::type_identity_t<Run<Data>> run, void (Stage::*done)(Data&)) {
  ++running_;
  pool_.submit(std::make_unique<Task<Stage, Data>>(shared_from_this(), stage, std::move(data), run, done));
}

}  // namespace ccixfer::send
