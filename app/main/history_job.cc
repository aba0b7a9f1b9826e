#include "app/main/history_job.h"

#include <utility>

#include "app/recv/history.h"
#include "app/recv/task.h"
#include "core/base/log.h"

namespace ccixfer::program {
namespace {

class HistoryJob final : public ports::Job {
 public:
  HistoryJob(std::shared_ptr<recv::OpenedRoot> root, std::string line, std::shared_ptr<size_t> running)
      : root_(std::move(root)), line_(std::move(line)), running_(std::move(running)) {
    ++*running_;
  }
  void run(ports::FileSystem&) override { error_ = recv::add_history(*root_, line_); }
  void done() override {
    --*running_;
    if (error_ < 0) log(LogLevel::warning, "the history of transfers cannot be written: {}", recv::describe_errno(-error_));
  }

 private:
  const std::shared_ptr<recv::OpenedRoot> root_;
  const std::string line_;
  const std::shared_ptr<size_t> running_;
  int error_ = 0;
};

}  // namespace

std::unique_ptr<ports::Job> make_history_job(std::shared_ptr<recv::OpenedRoot> root, std::string line,
                                             std::shared_ptr<size_t> running) {
  return std::make_unique<HistoryJob>(std::move(root), std::move(line), std::move(running));
}

}  // namespace ccixfer::program
