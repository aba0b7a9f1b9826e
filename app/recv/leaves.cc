#include "app/recv/leaves.h"

#include <cerrno>

#include "app/recv/locked.h"

namespace ccixfer::recv {
namespace {

// The mode that it gets lacks one of these rights. Root needs none.
bool lacks(const Policy& policy, const Leave& leave, uint32_t rights) {
  const bool gets_mode = policy.has(session::option_permissions) || leave.made;
  const uint32_t mode = gets_mode ? leave.attributes.mode : leave.unlocked ? leave.mode_before : owner_writes;
  return policy.uid != 0 && (mode & rights) != rights;
}

int apply_leave(ports::FileSystem& files, JobDirectories& directories, const Policy& policy, uint64_t root_device,
                const Leave& leave, Backups* backups, std::optional<uint32_t>& mode_now) {
  HeldDirectoryRef directory;
  if (const int error = directories.open(leave.path, directory); error < 0) return error;
  ports::FileStat stat;
  if (const int error = files.fstat(directory->fd(), stat); error < 0) return error;
  const bool keeps_mode = !policy.has(session::option_permissions);
  const Current current{stat.mode, stat.uid, stat.gid, stat.mtime};
  const Attributes& wanted = leave.attributes;
  int applied = 0;
  if (keeps_mode) {
    // Not ours to change: the mode it had stays, and comes back if it was unlocked for the time. One that we made has what mkdir(2)
    // gave it, with the directory it is in; but for what we gave ourselves to write in it.
    const uint32_t made = stat.mode & ~(owner_writes & ~wanted.mode);
    const uint32_t mode = leave.made ? made : leave.unlocked ? leave.mode_before : stat.mode;
    if (mode != stat.mode) {
      if (const int error = files.set_mode(directory->fd(), mode); error < 0 && error != -EPERM && error != -ENOTSUP) return error;
    }
    applied = apply_extended(files, directory->fd(), policy, wanted);
    if (applied < 0) return applied;
    if (policy.has(session::option_times) && stat.mtime != wanted.mtime) {
      if (const int error = files.set_mtime(directory->fd(), wanted.mtime); error < 0) return error;
    }
  } else {
    applied = apply_attributes(files, directory->fd(), policy, current, wanted);
    if (applied < 0) return applied;
  }
  if (files.fstat(directory->fd(), stat) >= 0) {
    mode_now = stat.mode;
    if (backups != nullptr) backups->left(leave.path, directory->fd(), {stat.mode, stat.uid, stat.gid});
  }
  // syncfs of the root covers the root's own file system only.
  const int error = stat.device != root_device ? files.fsync(directory->fd()) : 0;
  return error < 0 ? error : applied;
}

}  // namespace

bool keeps_us_out(const Policy& policy, const Leave& leave) { return lacks(policy, leave, owner_looks); }

std::vector<LeaveOutcome> apply_leaves(OpenedRoot& root, KnownDirectories& known, const Policy& policy, const Owner& owner,
                                       const std::vector<Leave>& leaves, Backups* backups) {
  std::vector<LeaveOutcome> outcomes;
  const Policy of_directories = policy.of_directories();
  outcomes.reserve(leaves.size());
  JobDirectories directories(known);
  for (const Leave& leave : leaves) {
    owner.step();
    std::optional<uint32_t> mode;
    if (owner.lost.load()) {  // another session's by now
      outcomes.push_back({EBUSY, false, leave.path, mode});
      continue;
    }
    int error = lacks(policy, leave, owner_searches) ? directories.shut(leave.path) : 0;
    if (error >= 0) error = apply_leave(root.files, directories, of_directories, root.device, leave, backups, mode);
    if (const int elsewhere = directories.left(leave.path); elsewhere < 0) error = elsewhere;
    outcomes.push_back({error < 0 ? -error : 0, error == attributes_refused, leave.path, mode});
  }
  return outcomes;
}

}  // namespace ccixfer::recv
