// Directories that the source has left: their own modes and times are set when no file in them is
// in work any more, in the order in which they were left, so that those below come first. One job
// at a time. Those whose modes keep us out, and which something is still to be done in, wait for
// everything else (Leave::is_last).
// Protocol thread; `apply` runs in a job. Bound: last_max directories wait like that; when there are
// more, all of them are due.
#pragma once
#include <functional>
#include <vector>

#include "app/recv/leaves.h"
#include "app/recv/session_jobs.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::recv {

class LeaveQueue {
 public:
  using Apply = std::function<std::vector<LeaveOutcome>(const std::vector<Leave>&)>;
  using Applied = std::function<void(const std::vector<LeaveOutcome>&)>;
  using HasFiles = std::function<bool(uint64_t first_index, uint64_t end_index)>;
  static constexpr size_t last_max = 32'768;
  LeaveQueue(SessionJobs& jobs, Apply apply, Applied applied, HasFiles has_files)
      : jobs_(jobs), apply_(std::move(apply)), applied_(std::move(applied)), has_files_(std::move(has_files)) {}
  LeaveQueue(const LeaveQueue&) = delete;
  LeaveQueue& operator=(const LeaveQueue&) = delete;

  void add(Leave leave);
  void file_ended() { is_changed_ = true; }
  void turn();
  // No directory waits, apart from those that wait for everything else.
  [[nodiscard]] bool empty() const { return waiting_.empty() && !is_running_; }
  // To be called when everything else of the session is done: those that waited for that begin. True: all directories are done.
  [[nodiscard]] bool finish();

 private:
  void let_the_last_begin();

  SessionJobs& jobs_;
  const Apply apply_;
  const Applied applied_;
  const HasFiles has_files_;
  RingBuffer<Leave> waiting_;
  std::vector<Leave> last_;
  bool is_running_ = false;
  bool is_changed_ = false;  // a file has ended since the waiting directories were looked at
};

}  // namespace ccixfer::recv
