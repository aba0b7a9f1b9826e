#include "app/recv/directories.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "app/recv/names.h"

namespace ccixfer::recv {
namespace {

// What a path says when another thing, or nothing, stands where a directory was.
bool leads_elsewhere(int error) {
  return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EXDEV || error == -ESTALE;
}

bool has_no_descriptor(int error) { return error == -EMFILE || error == -ENFILE; }

std::string_view or_dot(std::string_view path) { return path.empty() ? std::string_view(".") : path; }

bool same_number(const ports::FileIdentity& a, const ports::FileIdentity& b) {
  return a.type == b.type && a.device == b.device && a.inode == b.inode;
}

// The length of the longest path above (or equal to) both.
size_t common_path_bytes(std::string_view a, std::string_view b) {
  const size_t shorter = std::min(a.size(), b.size());
  const auto at =
      static_cast<size_t>(std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(shorter), b.begin()).first - a.begin());
  const bool a_ends = at == a.size() || a[at] == '/';
  const bool b_ends = at == b.size() || b[at] == '/';
  if (a_ends && b_ends) return at;
  const size_t slash = a.substr(0, at).rfind('/');
  return slash == std::string_view::npos ? 0 : slash;
}

bool is_in(std::string_view path, std::string_view outer) {
  return outer.empty() || path == outer || (path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '/');
}

}  // namespace

int is_empty_directory(ports::FileSystem& files, int parent, std::string_view name) {
  const int fd = files.open(parent, name, {.directory = true}, 0);
  if (fd < 0) return fd;
  bool empty = true;
  const auto seen = [&empty](std::string_view) { empty = false; };
  int more = files.read_directory_part(fd, true, seen);
  while (more > 0 && empty) more = files.read_directory_part(fd, false, seen);
  files.close(fd);
  if (more < 0) return more;
  return empty ? 0 : -ENOTEMPTY;
}

bool KnownDirectories::Expected::is(const ports::FileIdentity& found, bool with_generation) const {
  if (!lasting) return identity.type == found.type;
  return with_generation && has_generation ? identity == found : same_number(identity, found);
}

KnownDirectories::~KnownDirectories() { budget_.give(held_.size()); }

bool KnownDirectories::find(std::string_view path, Expected& out) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(path);
  if (found == known_.end()) return false;
  if (found->second.expected.held) held_.splice(held_.begin(), held_, found->second.age);
  out = found->second.expected;
  return true;
}

int KnownDirectories::as_known(std::string_view path, int error) {
  if (!leads_elsewhere(error)) return error;
  const std::lock_guard lock(mutex_);
  return known_.contains(path) ? -ESTALE : error;
}

int KnownDirectories::open(std::string_view path, Seen& seen, HeldDirectoryRef& out) {
  if (root_ < 0) return -ENOENT;
  Expected expected;
  if (find(path, expected) && expected.held) {
    if (const int error = look_at(path, expected, seen); error < 0) return error;
    out = std::move(expected.held);
    return 0;
  }
  const std::string name(path);
  if (const int error = open_anew(root_, or_dot(path), name, out); error < 0) return error;
  seen.paths.insert(name);
  return 0;
}

int KnownDirectories::open_anew(int parent, std::string_view name, const std::string& path, HeldDirectoryRef& out) {
  int fd = files_.open(parent, name, {.directory = true}, 0);
  if (has_no_descriptor(fd)) {
    let_go_of_all();
    fd = files_.open(parent, name, {.directory = true}, 0);
  }
  if (fd < 0) return as_known(path, fd);
  auto held = std::make_shared<HeldDirectory>(files_, fd);
  // Of one that is not known yet the generation is looked for when it is closed, if ever.
  Expected expected;
  const bool wants_generation = find(path, expected) && expected.has_generation;
  if (wants_generation) {
    if (const int error = files_.identify(fd, ".", held->identity); error < 0) return error;
  } else {
    ports::FileStat stat;
    if (const int error = files_.fstat(fd, stat); error < 0) return error;
    held->identity = {stat.type, stat.device, stat.inode, 0};
  }
  if (const int error = meet(path, held->identity, wants_generation, fd, held); error < 0) return error;
  out = std::move(held);
  return 0;
}

int KnownDirectories::remember(int parent, std::string_view name, const std::string& path) {
  HeldDirectoryRef held;
  int error = open_anew(parent, name, path, held);
  if (error != -EACCES && error != -EPERM && !has_no_descriptor(error)) return error;
  // One that may not be read can be written into.
  ports::FileIdentity identity;
  if (error = files_.identify(parent, name, identity); error < 0) return as_known(path, error);
  return meet(path, identity, true, parent, nullptr);
}

int KnownDirectories::meet(const std::string& path, const ports::FileIdentity& identity, bool has_generation, int somewhere_on_it,
                           const HeldDirectoryRef& held) {
  if (same_number(identity, staging_)) return -EPERM;  // by another name: a file system that ignores case, or a mount
  const std::lock_guard lock(mutex_);
  auto found = known_.find(path);
  if (found != known_.end()) {
    if (!found->second.expected.is(identity, has_generation)) return -ESTALE;
  } else {
    auto device = lasting_.find(identity.device);
    if (device == lasting_.end()) {
      ports::SpaceInfo space;
      const bool lasting = files_.space(somewhere_on_it, space) >= 0 && space.lasting_identity;
      device = lasting_.emplace(identity.device, lasting).first;
    }
    found = known_.emplace(path, Known{{identity, has_generation, device->second, nullptr}, false, {}}).first;
  }
  if (held && !found->second.expected.held) hold(found, held);
  return 0;
}

// Its slot is taken from the one that was used the longest ago when there is no other.
void KnownDirectories::hold(Map::iterator at, const HeldDirectoryRef& held) {
  if (held_.size() >= budget_.session_max() || !budget_.take()) {
    if (held_.empty()) return remember_generation(at->second.expected, held->fd());
    let_go(known_.find(*held_.back()));
  }
  at->second.expected.held = held;
  held_.push_front(&at->first);
  at->second.age = held_.begin();
}

// Whoever calls it has the slot.
void KnownDirectories::let_go(Map::iterator at) {
  Expected& expected = at->second.expected;
  remember_generation(expected, expected.held->fd());
  expected.held = nullptr;
  held_.erase(at->second.age);
}

void KnownDirectories::let_go_of_all() {
  const std::lock_guard lock(mutex_);
  budget_.give(held_.size());
  while (!held_.empty()) let_go(known_.find(*held_.back()));
}

void KnownDirectories::remember_generation(Expected& expected, int fd) {
  ports::FileIdentity identity;
  if (expected.has_generation || !expected.lasting || files_.identify(fd, ".", identity) < 0) return;
  expected.identity = identity;
  expected.has_generation = true;
}

KnownDirectories::Map::iterator KnownDirectories::erase(Map::iterator at) {
  if (at->second.expected.held) {
    held_.erase(at->second.age);
    budget_.give(1);
  }
  return known_.erase(at);
}

void KnownDirectories::forget(std::string_view path) {
  const std::lock_guard lock(mutex_);
  for (auto at = known_.lower_bound(path); at != known_.end() && at->first.starts_with(path);) {
    at = is_in(at->first, path) ? erase(at) : std::next(at);
  }
}

// By its name in its parent, as whoever reads the tree will find it; and so are the parents that are held.
int KnownDirectories::look_at(std::string_view path, const Expected& expected, Seen& seen) {
  OpenedParent opened;
  size_t end = path.size();
  while (end > 0 && !seen.chains.contains(path.substr(0, end))) {
    const size_t slash = path.substr(0, end).rfind('/');
    end = slash == std::string_view::npos ? 0 : slash;
  }
  while (end < path.size()) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string_view so_far = path.substr(0, end);
    Expected above;
    if (!seen.paths.contains(so_far) && (end == path.size() || (find(so_far, above) && above.held))) {
      const Expected& there = end < path.size() ? above : expected;
      const bool parent_is_checked = seen.paths.contains(split_path(so_far).parent);
      if (const int error = look_at_one(so_far, there, parent_is_checked, opened); error < 0) return error;
      seen.paths.emplace(so_far);
    }
    seen.chains.emplace(so_far);
  }
  return 0;
}

// As look_at. A pass over all directories of a large tree is on the way of its end, so it makes no copies of their paths.
int KnownDirectories::look_at_next(std::string_view path, const Expected& expected, Pass& pass) {
  size_t end = common_path_bytes(pass.last, path);
  while (!pass.checked.empty() && pass.checked.back() > end) pass.checked.pop_back();
  pass.last.assign(path);
  while (end < path.size()) {
    const bool parent_is_checked = !pass.checked.empty() && pass.checked.back() == end;
    end = std::min(path.find('/', end + 1), path.size());
    const std::string_view so_far = path.substr(0, end);
    Expected above;
    if (end < path.size() && !(find(so_far, above) && above.held)) continue;
    const Expected& there = end < path.size() ? above : expected;
    if (const int error = look_at_one(so_far, there, parent_is_checked, pass.opened); error < 0) return error;
    pass.checked.push_back(end);
  }
  return 0;
}

int KnownDirectories::look_at_one(std::string_view path, const Expected& expected, bool parent_is_checked, OpenedParent& opened) {
  const SplitPath split = split_path(path);
  Expected above;
  int parent = root_;
  if (!split.parent.empty() && parent_is_checked && find(split.parent, above) && above.held) {
    parent = above.held->fd();
  } else if (!split.parent.empty()) {
    if (opened.path != split.parent) {
      const int fd = files_.open(root_, split.parent, {.directory = true, .anchor = true}, 0);
      if (fd < 0) return leads_elsewhere(fd) ? -ESTALE : fd;
      opened.held = std::make_shared<HeldFile>(files_, fd);
      opened.path = split.parent;
    }
    parent = opened.held->fd();
  }
  ports::FileIdentity identity;
  ports::FileStat stat;
  const bool with_generation = !expected.held && expected.has_generation;
  const int error =
      with_generation ? files_.identify(parent, split.name, identity) : files_.stat_at(parent, split.name, stat, false);
  if (error < 0) return leads_elsewhere(error) ? -ESTALE : error;
  if (!with_generation) identity = {stat.type, stat.device, stat.inode, 0};
  return expected.is(identity, with_generation) ? 0 : -ESTALE;
}

int KnownDirectories::look(const Paths& paths, std::string& path_that_is) {
  Pass pass;
  for (const std::string& path : paths) {
    path_that_is = path;
    Expected expected;
    if (!find(path, expected)) continue;
    if (const int error = look_at_next(path, expected, pass); error < 0) return error;
  }
  return 0;
}

int KnownDirectories::look_at_all(std::string& path_that_is) {
  Paths all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, known] : known_) all.insert(all.end(), path);
  }
  return look(all, path_that_is);
}

int KnownDirectories::left(const std::string& path) {
  Gone gone;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(path); found != known_.end()) found->second.left = true;
    if (known_.size() <= known_max_) return 0;
    for (auto at = known_.begin(); at != known_.end();) {
      if (at->second.left) gone.emplace_back(at->first, at->second.expected);
      at = at->second.left ? erase(at) : std::next(at);
    }
  }
  return look_at_gone(gone);
}

int KnownDirectories::shut(const std::string& path) {
  Gone gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = known_.upper_bound(path); at != known_.end() && at->first.starts_with(path);) {
      const bool is_below = is_in(at->first, path);
      if (is_below) gone.emplace_back(at->first, at->second.expected);
      at = is_below ? erase(at) : std::next(at);
    }
  }
  return look_at_gone(gone);
}

int KnownDirectories::look_at_gone(const Gone& gone) {
  Pass pass;
  for (const auto& [name, expected] : gone) {
    if (const int error = look_at_next(name, expected, pass); error < 0) return error;
  }
  return 0;
}

}  // namespace ccixfer::recv
