#include "app/recv/given_groups.h"

#include "app/recv/attributes.h"

namespace ccixfer::recv {

bool GivenGroups::may_give(ports::FileSystem& files, int staging, std::string_view scratch, uint32_t gid) {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(gid); known != known_.end()) return known->second;
  const int fd = files.open(staging, scratch, {.mode = ports::OpenMode::write, .create = true, .exclusive = true}, 0600);
  if (fd < 0) return true;
  const bool may = files.set_owner(fd, keep_owner, gid) >= 0;
  files.close(fd);
  files.unlink_at(staging, scratch, false);
  if (known_.size() < groups_max) known_.emplace(gid, may);
  return may;
}

}  // namespace ccixfer::recv
