#include "app/recv/leave_queue.h"

#include <memory>
#include <utility>

namespace ccixfer::recv {

void LeaveQueue::add(Leave leave) {
  if (leave.is_last && last_.size() < last_max) return last_.push_back(std::move(leave));
  if (leave.is_last) let_the_last_begin();  // those below it come first
  waiting_.push_back(std::move(leave));
  is_changed_ = true;
}

void LeaveQueue::let_the_last_begin() {
  for (Leave& leave : last_) waiting_.push_back(std::move(leave));
  last_.clear();
  is_changed_ = true;
}

bool LeaveQueue::finish() {
  if (!last_.empty()) let_the_last_begin();
  turn();
  return empty();
}

void LeaveQueue::turn() {
  if (is_running_ || !is_changed_ || waiting_.empty()) return;
  is_changed_ = false;
  struct Work {
    std::vector<Leave> due;
    std::vector<LeaveOutcome> outcomes;
  };
  auto work = std::make_shared<Work>();
  RingBuffer<Leave> later;
  for (Leave& leave : waiting_) {
    if (has_files_(leave.first_index, leave.leave_index)) {
      later.push_back(std::move(leave));
    } else {
      work->due.push_back(std::move(leave));
    }
  }
  waiting_ = std::move(later);
  if (work->due.empty()) return;
  is_running_ = true;
  jobs_.submit([this, work] { work->outcomes = apply_(work->due); },
               [this, work] {
                 is_running_ = false;
                 is_changed_ = true;
                 applied_(work->outcomes);
               });
}

}  // namespace ccixfer::recv
