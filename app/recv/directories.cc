#include "app/recv/directories.h"

#include <cerrno>

namespace ccixfer::recv {

int DirectoryCache::open(std::string_view path, HeldFileRef& out) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_path_.find(path); found != by_path_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      out = found->second->file;
      return 0;
    }
  }
  const ports::OpenFlags flags{.directory = true};
  const std::string_view name = path.empty() ? std::string_view(".") : path;
  int fd = files_.open(root_, name, flags, 0);
  if (fd == -EMFILE || fd == -ENFILE) {
    clear();
    fd = files_.open(root_, name, flags, 0);
  }
  if (fd < 0) return fd;
  out = std::make_shared<HeldFile>(files_, fd);
  const std::lock_guard lock(mutex_);
  if (by_path_.contains(path)) return 0;  // another thread was faster: ours closes with its last holder
  entries_.push_front({std::string(path), out});
  by_path_.emplace(entries_.front().path, entries_.begin());
  if (entries_.size() > directories_held_max) {
    by_path_.erase(entries_.back().path);
    entries_.pop_back();
  }
  return 0;
}

void DirectoryCache::forget(std::string_view path) {
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    const std::string_view held = at->path;
    const bool below =
        path.empty() || held == path || (held.size() > path.size() && held.starts_with(path) && held[path.size()] == '/');
    if (below) by_path_.erase(held);
    at = below ? entries_.erase(at) : std::next(at);
  }
}

void DirectoryCache::clear() { forget({}); }

namespace {

int apply_leave(ports::FileSystem& files, DirectoryCache& directories, const Policy& policy, uint64_t root_device,
                const Leave& leave) {
  HeldFileRef directory;
  if (const int error = directories.open(leave.path, directory); error < 0) return error;
  ports::FileStat stat;
  if (const int error = files.fstat(directory->fd(), stat); error < 0) return error;
  const bool keeps_mode = !policy.has(session::option_permissions) && !leave.made;
  const Current current{stat.mode, stat.uid, stat.gid};
  Attributes wanted = leave.attributes;
  if (keeps_mode) {
    // Not ours to change: the mode it had stays, and comes back if it was unlocked for the time.
    const uint32_t mode = leave.unlocked ? leave.mode_before : stat.mode;
    if (mode != stat.mode) {
      if (const int error = files.set_mode(directory->fd(), mode); error < 0) return error;
    }
    if (policy.has(session::option_times)) {
      if (const int error = files.set_mtime(directory->fd(), wanted.mtime); error < 0) return error;
    }
  } else if (const int error = apply_attributes(files, directory->fd(), policy, current, wanted); error < 0) {
    return error;
  }
  // syncfs of the root covers the root's own file system only.
  return stat.device != root_device ? files.fsync(directory->fd()) : 0;
}

}  // namespace

std::vector<LeaveOutcome> apply_leaves(ports::FileSystem& files, DirectoryCache& directories, const Policy& policy,
                                       uint64_t root_device, const std::vector<Leave>& leaves) {
  std::vector<LeaveOutcome> outcomes;
  outcomes.reserve(leaves.size());
  for (const Leave& leave : leaves) {
    const int error = apply_leave(files, directories, policy, root_device, leave);
    outcomes.push_back({error < 0 ? -error : 0, leave.path});
  }
  return outcomes;
}

}  // namespace ccixfer::recv
