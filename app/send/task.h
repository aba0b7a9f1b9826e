// Jobs of the source, and what they share with it. A job owns all that its run() touches. When the source is gone by the time that
// a job comes back, its done() only lets go of what it owned. Descriptors are closed by a job too, for that is a system call: who
// lets go of one puts it on the list of the Shared, and flush() sends the list off. Thread: all of it belongs to the protocol
// thread, but for run() and `steps`.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "app/send/walk.h"
#include "core/ports/work_pool.h"

namespace ccixfer::send {

struct Shared {
  explicit Shared(ports::WorkPool& pool) : work(pool) {}
  void flush();  // closes what was let go
  ports::WorkPool& work;
  void* source = nullptr;          // the machine, while it lives
  size_t jobs = 0;                 // of it, in the work pool
  std::atomic<uint64_t> steps{0};  // work done by jobs: the source is alive although the network is silent
  std::vector<int> descriptors;
  std::vector<std::unique_ptr<Walk>> walks;
};

// A place for a descriptor that a job opens: made before, so that it is let go of properly whatever becomes of the job.
class OpenFile {
 public:
  explicit OpenFile(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  ~OpenFile() {
    if (fd_ >= 0) shared_->descriptors.push_back(fd_);
  }
  void set(int fd) { fd_ = fd; }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  std::shared_ptr<Shared> shared_;
  int fd_ = -1;
};

// Keeps the descriptors of the sources open as long as some job reads below them.
class WalkHold {
 public:
  WalkHold(std::shared_ptr<Shared> shared, WalkOptions options)
      : shared_(std::move(shared)), walk_(std::make_unique<Walk>(std::move(options))) {}
  ~WalkHold() { shared_->walks.push_back(std::move(walk_)); }
  WalkHold(const WalkHold&) = delete;
  WalkHold& operator=(const WalkHold&) = delete;
  [[nodiscard]] Walk& operator*() const { return *walk_; }
  [[nodiscard]] Walk* operator->() const { return walk_.get(); }

 private:
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Walk> walk_;
};

template <typename Machine, typename Data>
class Task final : public ports::Job {
 public:
  using Run = void (*)(ports::FileSystem&, Data&, Shared&);
  using Done = void (Machine::*)(Data&);
  Task(std::shared_ptr<Shared> shared, std::unique_ptr<Data> data, Run on_run, Done on_done)
      : shared_(std::move(shared)), data_(std::move(data)), run_(on_run), done_(on_done) {}
  void run(ports::FileSystem& files) override {
    run_(files, *data_, *shared_);
    shared_->steps.fetch_add(1, std::memory_order_relaxed);
  }
  void done() override {
    --shared_->jobs;
    if (shared_->source != nullptr) {
      auto& machine = *static_cast<Machine*>(shared_->source);
      machine.wake();
      (machine.*done_)(*data_);
    }
    data_.reset();
    if (shared_->source == nullptr) shared_->flush();
  }

 private:
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Data> data_;
  Run run_;
  Done done_;
};

}  // namespace ccixfer::send
