#include "app/main/expire_requests.h"

#include <utility>

#include "app/recv/leftovers.h"

namespace ccixfer::program {
namespace {

class LookJob final : public ports::Job {
 public:
  LookJob(std::shared_ptr<recv::OpenedRoot> root, std::shared_ptr<bool> is_looking)
      : root_(std::move(root)), is_looking_(std::move(is_looking)) {
    *is_looking_ = true;
  }
  void run(ports::FileSystem&) override {
    recv::serve_expire_request(*root_);
    if (root_->may_have_unrecorded.exchange(false)) recv::remove_unrecorded(*root_);
  }
  void done() override { *is_looking_ = false; }

 private:
  const std::shared_ptr<recv::OpenedRoot> root_;
  const std::shared_ptr<bool> is_looking_;
};

}  // namespace

void ExpireRequests::turn(Instant now) {
  if (root_ == nullptr || *is_looking_ || now < next_) return;
  next_ = after(now, expire_look_interval);
  work_.submit(std::make_unique<LookJob>(root_->opened(), is_looking_));
}

}  // namespace ccixfer::program
