// Pieces that become holes, as the source says of its sparse files. One job at a time makes all that waits, so that a slow disk
// never has more than one of them, however many messages come.
// Bound: hole_ranges_max ranges and messages wait; a source that says more meanwhile breaks the protocol.
// Protocol thread; the holes are made in jobs.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "app/recv/pieces.h"
#include "app/recv/session_jobs.h"
#include "app/session/messages.h"

namespace ccixfer::recv {

inline constexpr size_t hole_ranges_max = 1u << 20;

class HoleQueue {
 public:
  using Told = std::function<void(const session::Holes& holes, int error_number)>;
  HoleQueue(SessionJobs& jobs, Told told) : jobs_(jobs), told_(std::move(told)) {}
  HoleQueue(const HoleQueue&) = delete;
  HoleQueue& operator=(const HoleQueue&) = delete;

  // False: too many wait.
  [[nodiscard]] bool add(const FileTaskRef& task, const std::shared_ptr<StagedFile>& staged, const session::Holes& holes) {
    if (ranges_ + cost(holes) > hole_ranges_max) return false;
    ranges_ += cost(holes);
    waiting_.push_back({task, staged, holes});
    turn();
    return true;
  }

 private:
  struct Work {
    FileTaskRef task;
    std::shared_ptr<StagedFile> staged;
    session::Holes holes;
    int error_number = 0;
  };
  // A message without ranges takes room too.
  [[nodiscard]] static size_t cost(const session::Holes& holes) { return 1 + holes.ranges.size(); }
  void turn() {
    if (is_running_ || waiting_.empty()) return;
    is_running_ = true;
    auto batch = std::make_shared<std::vector<Work>>(std::exchange(waiting_, {}));
    jobs_.submit(
        [batch] {
          for (Work& work : *batch) work.error_number = -work.staged->make_holes(work.holes.ranges, work.task->size_bytes);
        },
        [this, batch] {
          is_running_ = false;
          for (const Work& work : *batch) {
            ranges_ -= cost(work.holes);
            told_(work.holes, work.error_number);
          }
          turn();
        });
  }

  SessionJobs& jobs_;
  const Told told_;
  std::vector<Work> waiting_;
  size_t ranges_ = 0;  // that wait or are being made
  bool is_running_ = false;
};

}  // namespace ccixfer::recv
