#include "app/recv/directories.h"

#include <cerrno>

#include "app/recv/names.h"

namespace ccixfer::recv {
namespace {

// What a path says when another thing, or nothing, stands where a directory was.
bool leads_elsewhere(int error) {
  return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EXDEV || error == -ESTALE;
}

constexpr uint32_t owner_all = 0700;

std::string_view or_dot(std::string_view path) { return path.empty() ? std::string_view(".") : path; }

bool is_same(const ports::FileIdentity& a, const ports::FileIdentity& b, bool lasting) {
  return lasting ? a == b : a.type == b.type;
}

bool is_in(std::string_view path, std::string_view outer) {
  return outer.empty() || path == outer || (path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '/');
}

}  // namespace

int KnownDirectories::as_known(std::string_view path, int error) {
  if (!leads_elsewhere(error)) return error;
  const std::lock_guard lock(mutex_);
  return known_.contains(path) ? -ESTALE : error;
}

int KnownDirectories::open(std::string_view path, HeldFileRef& out) {
  if (root_ < 0) return -ENOENT;
  const int fd = files_.open(root_, or_dot(path), {.directory = true}, 0);
  if (fd < 0) return as_known(path, fd);
  auto held = std::make_shared<HeldFile>(files_, fd);
  ports::FileIdentity identity;
  if (const int error = files_.identify(fd, ".", identity); error < 0) return error;
  if (const int error = meet(path, identity, fd); error < 0) return error;
  out = std::move(held);
  return 0;
}

int KnownDirectories::remember(int parent, std::string_view name, const std::string& path) {
  ports::FileIdentity identity;
  if (const int error = files_.identify(parent, name, identity); error < 0) return as_known(path, error);
  return meet(path, identity, parent);
}

int KnownDirectories::meet(std::string_view path, const ports::FileIdentity& identity, int somewhere_on_it) {
  if (identity == staging_) return -EPERM;  // by another name: a file system that ignores case, or a mount
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(path); found != known_.end()) {
    return is_same(found->second.identity, identity, found->second.lasting) ? 0 : -ESTALE;
  }
  auto device = lasting_.find(identity.device);
  if (device == lasting_.end()) {
    ports::SpaceInfo space;
    const bool lasting = files_.space(somewhere_on_it, space) >= 0 && space.lasting_identity;
    device = lasting_.emplace(identity.device, lasting).first;
  }
  known_.emplace(path, Known{identity, device->second, false});
  return 0;
}

void KnownDirectories::forget(std::string_view path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [path](const auto& known) { return is_in(known.first, path); });
}

int KnownDirectories::check(std::string_view path) {
  Known known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(path);
    if (found == known_.end()) return 0;
    known = found->second;
  }
  std::string ignored;
  return check_these({{std::string(path), known}}, ignored);
}

int KnownDirectories::check(const std::set<std::string>& paths, std::string& path_that_is) {
  Map known;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& path : paths) {
      if (const auto found = known_.find(path); found != known_.end()) known.insert(*found);
    }
  }
  return check_these(known, path_that_is);
}

// Each by its name in its parent, which is opened by its path: that is what whoever reads the tree will do.
int KnownDirectories::check_these(const Map& known, std::string& path_that_is) {
  std::string parent_path;
  HeldFileRef parent;
  for (const auto& [path, directory] : known) {
    path_that_is = path;
    const SplitPath split = split_path(path);
    if (!parent || parent_path != split.parent) {
      const int fd = files_.open(root_, or_dot(split.parent), {.directory = true}, 0);
      if (fd < 0) return leads_elsewhere(fd) ? -ESTALE : fd;
      parent = std::make_shared<HeldFile>(files_, fd);
      parent_path = split.parent;
    }
    ports::FileIdentity identity;
    const int error = files_.identify(parent->fd(), or_dot(split.name), identity);
    if (error < 0) return leads_elsewhere(error) ? -ESTALE : error;
    if (!is_same(directory.identity, identity, directory.lasting)) return -ESTALE;
  }
  return 0;
}

int KnownDirectories::left(const std::string& path) {
  Map left;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(path); found != known_.end()) found->second.left = true;
    if (known_.size() <= known_max_) return 0;
    for (auto at = known_.begin(); at != known_.end();) {
      const auto next = std::next(at);
      if (at->second.left) left.insert(known_.extract(at));
      at = next;
    }
  }
  std::string ignored;
  return check_these(left, ignored);
}

int KnownDirectories::check_all(std::string& path_that_is) {
  Map known;
  {
    const std::lock_guard lock(mutex_);
    known = known_;
  }
  return check_these(known, path_that_is);
}

namespace {

int apply_leave(ports::FileSystem& files, KnownDirectories& directories, const Policy& policy, uint64_t root_device,
                const Leave& leave) {
  HeldFileRef directory;
  if (const int error = directories.open(leave.path, directory); error < 0) return error;
  ports::FileStat stat;
  if (const int error = files.fstat(directory->fd(), stat); error < 0) return error;
  const bool keeps_mode = !policy.has(session::option_permissions);
  const Current current{stat.mode, stat.uid, stat.gid};
  const Attributes& wanted = leave.attributes;
  int applied = 0;
  if (keeps_mode) {
    // Not ours to change: the mode it had stays, and comes back if it was unlocked for the time. One that we made has what mkdir(2)
    // gave it, with the directory it is in; but for what we gave ourselves to write in it.
    const uint32_t made = stat.mode & ~(owner_all & ~wanted.mode);
    const uint32_t mode = leave.made ? made : leave.unlocked ? leave.mode_before : stat.mode;
    if (mode != stat.mode) {
      if (const int error = files.set_mode(directory->fd(), mode); error < 0 && error != -EPERM && error != -ENOTSUP) return error;
    }
    if (policy.has(session::option_times)) {
      if (const int error = files.set_mtime(directory->fd(), wanted.mtime); error < 0) return error;
    }
  } else {
    applied = apply_attributes(files, directory->fd(), policy, current, wanted);
    if (applied < 0) return applied;
  }
  // syncfs of the root covers the root's own file system only.
  const int error = stat.device != root_device ? files.fsync(directory->fd()) : 0;
  return error < 0 ? error : applied;
}

}  // namespace

std::vector<LeaveOutcome> apply_leaves(ports::FileSystem& files, KnownDirectories& directories, const Policy& policy,
                                       uint64_t root_device, const std::vector<Leave>& leaves) {
  std::vector<LeaveOutcome> outcomes;
  outcomes.reserve(leaves.size());
  for (const Leave& leave : leaves) {
    int error = apply_leave(files, directories, policy, root_device, leave);
    if (const int elsewhere = directories.left(leave.path); elsewhere < 0) error = elsewhere;
    outcomes.push_back({error < 0 ? -error : 0, error == attributes_refused, leave.path});
  }
  return outcomes;
}

}  // namespace ccixfer::recv
