#include "app/recv/delete_queue.h"

#include <memory>

namespace ccixfer::recv {

bool DeleteQueue::turn(bool is_whole) {
  if (is_running_ || is_over_) return is_over_;
  is_running_ = true;
  auto done = std::make_shared<DeleteStep>();
  jobs_.submit([this, done, is_whole] { *done = step_(!is_whole); },
               [this, done] {
                 is_running_ = false;
                 is_over_ = done->over;
                 told_(*done);
               });
  return false;
}

session::Deletions news_of(const DeleteStep& step, const session::Tally& tally) {
  session::Deletions news{tally.deleted, tally.delete_failed, tally.delete_skipped, {}};
  for (const Deleted& one : step.deleted) news.names.push_back({one.is_directory, false, one.path});
  return news;
}

}  // namespace ccixfer::recv
