// Disk work beside the protocol thread. The protocol thread submits a Job; run() happens on some pool thread (in
// simulation: at a virtual instant), done() back on the protocol thread inside reap(). Jobs run in no order.
// Ownership: the pool owns a job from submit until done() returned. Bounds: the submitter's (each job holds a loan of a bounded
// pool).
#pragma once
#include <cstddef>
#include <memory>

#include "core/ports/file_system.h"

namespace ccixfer::ports {

class Job {
 public:
  virtual ~Job() = default;
  virtual void run(FileSystem& files) = 0;  // no access to protocol state
  virtual void done() = 0;                  // may submit further jobs
};

class WorkPool {
 public:
  virtual ~WorkPool() = default;
  virtual void submit(std::unique_ptr<Job> job) = 0;
  virtual size_t reap() = 0;  // calls done() of what has finished; returns how many
  [[nodiscard]] virtual size_t in_flight() const = 0;
  [[nodiscard]] virtual int os_handle() const = 0;  // readable when reap has something to do; -1 under simulation
};

}  // namespace ccixfer::ports
