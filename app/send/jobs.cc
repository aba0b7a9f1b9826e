#include "app/send/jobs.h"

namespace ccixfer::send {
namespace {

class CloseJob final : public ports::Job {
 public:
  CloseJob(std::vector<int> descriptors, std::vector<std::unique_ptr<Walk>> walks)
      : descriptors_(std::move(descriptors)), walks_(std::move(walks)) {}
  void run(ports::FileSystem& files) override {
    for (const int fd : descriptors_) files.close(fd);
    for (const std::unique_ptr<Walk>& walk : walks_) walk->close(files);
  }
  void done() override {}

 private:
  std::vector<int> descriptors_;
  std::vector<std::unique_ptr<Walk>> walks_;
};

}  // namespace

void Jobs::flush() {
  if (descriptors_.empty() && walks_.empty()) return;
  pool_.submit(std::make_unique<CloseJob>(std::move(descriptors_), std::move(walks_)));
  descriptors_.clear();
  walks_.clear();
}

}  // namespace ccixfer::send
