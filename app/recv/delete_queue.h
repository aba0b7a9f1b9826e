// When --delete has its turn: after everything else of the session, and a step at a time, so that the
// source hears what goes.
// Protocol thread; `step` runs in a job.
#pragma once
#include <functional>

#include "app/recv/deletions.h"
#include "app/recv/session_jobs.h"
#include "app/session/messages.h"
#include "app/session/tally.h"

namespace ccixfer::recv {

class DeleteQueue {
 public:
  using Step = std::function<DeleteStep(bool only_what_made_room)>;
  using Told = std::function<void(const DeleteStep&)>;
  DeleteQueue(SessionJobs& jobs, Step step, Told told) : jobs_(jobs), step_(std::move(step)), told_(std::move(told)) {}
  DeleteQueue(const DeleteQueue&) = delete;
  DeleteQueue& operator=(const DeleteQueue&) = delete;

  // Does the next step unless one runs. True: all is done. `is_whole`: the source could read all that it has; else nothing goes.
  [[nodiscard]] bool turn(bool is_whole);

 private:
  SessionJobs& jobs_;
  const Step step_;
  const Told told_;
  bool is_running_ = false;
  bool is_over_ = false;
};

// What the source is told of a step: the counts of the transfer, and the names.
[[nodiscard]] session::Deletions news_of(const DeleteStep& step, const session::Tally& tally);

}  // namespace ccixfer::recv
