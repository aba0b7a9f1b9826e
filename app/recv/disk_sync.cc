#include "app/recv/disk_sync.h"

#include <algorithm>
#include <vector>

namespace ccixfer::recv {

int DiskSync::sync_each() {
  std::vector<HeldDirectoryRef> others;
  {
    const std::lock_guard lock(others_mutex_);
    for (const auto& [device, directory] : others_) others.push_back(directory);
  }
  int error = files_.syncfs(root_);
  for (const HeldDirectoryRef& directory : others) error = std::min(error, files_.syncfs(directory->fd()));
  return error;
}

int DiskSync::sync() {
  const uint64_t wanted = begun_.load() + 1;  // one that runs already began before what is to be synced was written
  const std::lock_guard lock(mutex_);
  if (ended_ < wanted) {  // else one began and ended while we waited for our turn
    const uint64_t number = begun_.fetch_add(1) + 1;
    if (const int error = sync_each(); error >= 0) {
      last_good_ = number;
    } else {
      last_error_ = error;
      failures_.fetch_add(1);
    }
    ended_ = number;
  }
  return last_good_ >= wanted ? 0 : last_error_;
}

int DiskSync::sync_names() {
  const int error = sync();
  return error < 0 ? sync() : error;
}

void DiskSync::look_at(const HeldDirectoryRef& directory) {
  if (directory->identity.device == root_device_) return;
  const std::lock_guard lock(others_mutex_);
  others_.try_emplace(directory->identity.device, directory);
}

void DiskSync::forget_others() {
  const std::lock_guard lock(others_mutex_);
  others_.clear();
}

}  // namespace ccixfer::recv
