#include "app/recv/deletions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "app/filter/rules_file.h"
#include "app/recv/caseless_names.h"
#include "app/recv/locked.h"
#include "app/recv/names.h"
#include "app/recv/same_file.h"
#include "app/recv/task.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

constexpr size_t names_bytes_max = 4u << 20;  // of a listed directory at once: the others are read when these are done
constexpr size_t frames_open_max = 64;
constexpr size_t warnings_a_step = 64;

}  // namespace

Deletions::Deletions(OpenedRoot& root, KnownDirectories& directories, const Policy& policy, const Owner& owner, Backups* backups,
                     DeleteWish wish, std::string base, std::string kept_place, uint64_t already)
    : root_(root),
      files_(root.files),
      known_(directories),
      policy_(policy),
      owner_(owner),
      backups_(backups),
      max_(wish.max),
      base_(std::move(base)),
      kept_place_(std::move(kept_place)),
      deleted_(already),
      present_(root),
      not_whole_(root),
      listed_(root),
      scope_(std::move(wish.rules), filter::Side::receiver),
      reads_rules_(scope_.reads_files()) {}

Deletions::~Deletions() = default;

void Deletions::note(const session::Entry& entry, const std::string& path) {
  if (entry.type != session::EntryType::leave) {
    add_present(path);
    if (entry.type == session::EntryType::directory) listed_.add(path);
    return;
  }
  if (!entry.is_whole) not_whole_.add(path);
  for (const std::string& name : entry.left_out) add_present(join_path(path, name));
}

// Where case is ignored, a file that replaces another one keeps the spelling that was there before.
void Deletions::add_present(const std::string& path) { present_.add(root_.ignores_case ? without_case_or_accents(path) : path); }

bool Deletions::is_present(const std::string& path) {
  return present_.contains(root_.ignores_case ? without_case_or_accents(path) : path);
}

std::string_view Deletions::relative(std::string_view path) const {
  if (base_.empty()) return path;
  return path.size() > base_.size() ? path.substr(base_.size() + 1) : std::string_view{};
}

std::optional<Error> Deletions::enter_scope(std::string_view path, int fd) {
  if (!reads_rules_) return std::nullopt;
  const auto read = [&](const std::string& name) { return filter::read_rules(files_, fd, name, false); };
  auto entered = scope_.enter(relative(path), read);
  if (!entered) return entered.error();
  return std::nullopt;
}

void Deletions::leave_scope() {
  if (reads_rules_) scope_.leave();
}

// What holds in the directory, from the session's path down to it. 0; or -errno: then nothing may be deleted in it, because what
// the rules above it say is not known.
int Deletions::place_scope(std::string_view path, DeleteStep& out) {
  const auto ends = [&out](Error problem, int error) {
    out.fatal = std::move(problem);
    return error;
  };
  if (auto begun = scope_.begin(base_); !begun) return ends(begun.error(), -EINVAL);
  if (!reads_rules_) return 0;
  size_t end = base_.size();
  for (;;) {
    const std::string so_far(path.substr(0, end));
    const int fd = files_.open(root_.fd, so_far.empty() ? "." : so_far, {.directory = true}, 0);
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) return ends(fatal_error(ESTALE, so_far), -ESTALE);
    if (fd < 0) return fd;
    const HeldFile held(files_, fd);
    if (auto problem = enter_scope(so_far, fd)) return ends(std::move(*problem), -EINVAL);
    if (end >= path.size()) return 0;
    end = std::min(path.size(), path.find('/', end == 0 ? 0 : end + 1));
  }
}

bool Deletions::is_protected(const Frame& frame, const std::string& path, bool is_directory) const {
  if (is_reserved_path(path)) return true;
  if (!kept_place_.empty() && (path == kept_place_ || is_below(path, kept_place_) || is_below(kept_place_, path))) return true;
  return scope_.excludes(relative(path), is_directory, !frame.listed);
}

void Deletions::failed(const std::string& path, int error, DeleteStep& out) {
  ++out.failed;
  if (out.failures.size() < warnings_a_step)
    out.failures.push_back(fmt::format("{}: cannot delete it: {}", printable(path), describe_errno(-error)));
}

// Of a directory. A dry run unlocks none, and the run that is meant would have.
void Deletions::not_seen(const std::string& path, int error, DeleteStep& out) const {
  const bool would_be_seen = dry() && error == -EACCES && leads_into_locked(files_, root_.fd, path, policy_.uid);
  if (!would_be_seen) return failed(path, error, out);
  if (out.warnings.size() < warnings_a_step)
    out.warnings.push_back(
        fmt::format("{}: a dry run cannot tell what goes there: its mode keeps the receiver out", printable(path)));
}

// Fills names with more of what the directory has.
bool Deletions::read_names(Frame& frame, DeleteStep& out) {
  frame.names.clear();
  frame.at = 0;
  while (frame.has_more && frame.names.empty()) {
    int more = 1;
    while (more > 0 && (!frame.listed || frame.names.size() < names_bytes_max)) {
      owner_.step();
      more = files_.read_directory_part(frame.directory->fd(), std::exchange(frame.from_start, false), [&](std::string_view name) {
        const std::string path = join_path(frame.path, name);
        if (frame.listed && is_present(path)) return;
        frame.names.append(name).push_back('\0');
      });
    }
    frame.has_more = more > 0;
    if (more < 0) {
      frame.keeps = true;
      failed(frame.path, more, out);
    }
  }
  return !frame.names.empty();
}

bool Deletions::next_name(Frame& frame, std::string& name, DeleteStep& out) {
  if (frame.at >= frame.names.size() && !read_names(frame, out)) return false;
  const size_t end = frame.names.find('\0', frame.at);
  name.assign(frame.names, frame.at, end - frame.at);
  frame.at = end + 1;
  return true;
}

// The next directory that the source listed in full. False: there is none.
bool Deletions::next_listed(JobDirectories& directories, DeleteStep& out) {
  std::string path;
  while (listed_.next(path)) {
    owner_.step();
    if (not_whole_.contains(path)) continue;
    Frame frame;
    frame.listed = true;
    HeldDirectoryRef directory;
    const int error = directories.open(path, directory);
    if (error == -ESTALE) {
      out.fatal = fatal_error(ESTALE, path);
      return false;
    }
    if (error == -ENOENT || error == -ENOTDIR || error == -ELOOP) continue;  // a dry run would have made it, or its entry failed
    if (error < 0) {
      not_seen(path, error, out);
      continue;
    }
    // Another descriptor: the position in it is ours.
    const int fd = files_.open(directory->fd(), ".", {.directory = true}, 0);
    if (fd < 0) {
      not_seen(path, fd, out);
      continue;
    }
    frame.path = path;
    frame.directory = std::make_shared<HeldFile>(files_, fd);
    if (!dry()) root_.disk->look_at(directory);
    if (const int looked = files_.fstat(fd, frame.stat); looked < 0) {
      failed(path, looked, out);
      continue;
    }
    if (dry() && is_locked(frame.stat, policy_.uid)) {
      not_seen(path, -EACCES, out);
      continue;
    }
    if (const int placed = place_scope(path, out); placed < 0) {
      if (out.fatal) return false;
      not_seen(path, placed, out);
      continue;
    }
    stack_.push_back(std::move(frame));
    return true;
  }
  if (listed_.failed())
    out.fatal = Error{ErrorKind::file_io, "cannot read back which directories were listed: nothing more is deleted"};
  out.over = true;
  return false;
}

void Deletions::look_at(const std::string& name, DeleteStep& out) {
  Frame& frame = stack_.back();
  const std::string path = join_path(frame.path, name);
  ports::FileStat stat;
  const int directory = descriptor_of(frame);
  const int found = directory < 0 ? directory : files_.stat_at(directory, name, stat, false);
  if (found == -ENOENT && directory >= 0) return;
  const bool is_directory = found >= 0 && stat.type == ports::FileType::directory;
  if (found < 0 || is_protected(frame, path, is_directory) || (is_directory && stat.device != frame.stat.device)) {
    frame.keeps = true;
    if (found < 0) failed(path, found, out);
    return;
  }
  if (!is_directory) {
    remove(frame, path, false, out);
    return;
  }
  const bool was_locked = is_locked(stat, policy_.uid);
  if (was_locked && dry()) {
    frame.keeps = true;
    return not_seen(path, -EACCES, out);
  }
  const bool was_unlocked = was_locked && files_.set_mode_at(directory, name, stat.mode | owner_writes) >= 0;
  const int fd = files_.open(directory, name, {.directory = true}, 0);
  if (fd < 0) {
    frame.keeps = true;
    return failed(path, fd, out);
  }
  Frame inner;
  inner.path = path;
  inner.directory = std::make_shared<HeldFile>(files_, fd);
  inner.stat = stat;
  inner.was_unlocked = was_unlocked;
  if (auto problem = enter_scope(path, fd)) out.fatal = std::move(problem);
  stack_.push_back(std::move(inner));
  // All of their names are read, so those far above can be opened again by their paths.
  if (stack_.size() > frames_open_max + 1) stack_[stack_.size() - 1 - frames_open_max].directory.reset();
}

int Deletions::descriptor_of(Frame& frame) {
  if (frame.directory) return frame.directory->fd();
  const int fd = files_.open(root_.fd, frame.path, {.directory = true}, 0);
  if (fd < 0) return fd;
  auto opened = std::make_shared<HeldFile>(files_, fd);
  // The names are not those of another one.
  if (const int error = check_same_file(files_, fd, frame.stat.device, frame.stat.inode); error < 0) return error;
  frame.directory = std::move(opened);
  return fd;
}

// All in the innermost directory was looked at.
void Deletions::finish(DeleteStep& out) {
  Frame frame = std::move(stack_.back());
  stack_.pop_back();
  leave_scope();
  // Its twin in the backup directory was writable until now, and gets this directory's mode.
  const bool was_read_only = is_read_only(frame.stat, policy_.uid);
  if (was_read_only && backups_ != nullptr && !dry()) {
    if (const int fd = descriptor_of(frame); fd >= 0)
      backups_->left(frame.path, fd, {frame.stat.mode, frame.stat.uid, frame.stat.gid});
  }
  if (frame.listed) {
    if (!frame.was_changed) return;
    const Policy of_directories = policy_.of_directories();
    if (policy_.uid != 0) files_.set_mode(frame.directory->fd(), frame.stat.mode);
    if (of_directories.has(session::option_times)) files_.set_mtime(frame.directory->fd(), frame.stat.mtime);
    return;
  }
  if (stack_.empty()) {  // what makes room
    room_is_left_ = frame.keeps;
    return;
  }
  Frame& in = stack_.back();
  in.keeps = in.keeps || frame.keeps;
  if (!frame.keeps && remove(in, frame.path, true, out)) return;
  if (!frame.was_unlocked && !(was_read_only && frame.was_changed)) return;
  if (const int fd = descriptor_of(frame); fd >= 0) files_.set_mode(fd, frame.stat.mode);
}

bool Deletions::remove(Frame& in, const std::string& path, bool is_directory, DeleteStep& out) {
  if (deleted_ >= max_) {
    ++out.skipped;
    in.keeps = true;
    return false;
  }
  int error = 0;
  const int fd = descriptor_of(in);
  if (fd < 0) error = fd;
  if (fd >= 0 && !dry()) {
    if (is_read_only(in.stat, policy_.uid) && !in.was_changed) files_.set_mode(fd, in.stat.mode | owner_writes);
    in.was_changed = true;
    if (!is_directory && backups_ != nullptr) error = backups_->keep(fd, path, Backups::Before::removed);
    const bool may_be_gone = error >= 0 && !is_directory && backups_ != nullptr;
    if (error >= 0) error = files_.unlink_at(fd, split_path(path).name, is_directory);
    if (may_be_gone && error == -ENOENT) error = 0;
    if (is_directory && error >= 0) known_.forget(path);
  }
  if (dry() && !is_directory && backups_ != nullptr && fd >= 0) error = backups_->would_keep(fd, path, Backups::Before::removed);
  if (error == -ENOENT && fd >= 0) return true;
  if (error < 0) {
    in.keeps = true;
    // A directory may have been filled meanwhile. Of a file these say that its backup failed.
    const bool was_filled = is_directory && (error == -ENOTEMPTY || error == -EEXIST);
    if (is_no_space(-error)) {  // of its backup, and the next one would fare no better
      out.fatal = fatal_error(-error, path);
      no_space_ = error;
    } else if (!was_filled) {
      failed(path, error, out);
    }
    return false;
  }
  if (dry() && !is_directory && backups_ != nullptr && backups_->keeps_beside(path)) in.keeps = true;
  ++deleted_;
  out.deleted.push_back({std::string(relative(path)), is_directory});
  return true;
}

void Deletions::run(DeleteStep& out, uint32_t& steps, bool may_stop) {
  std::string name;
  for (; !stack_.empty() && steps > 0 && !out.fatal && !(may_stop && is_alone()); --steps) {
    owner_.step();
    if (next_name(stack_.back(), name, out)) {
      look_at(name, out);
    } else {
      finish(out);
    }
  }
}

DeleteStep Deletions::step(bool only_that) {
  DeleteStep out = std::exchange(of_rooms_, {});
  out.over = only_that;
  if (only_that) return out;
  JobDirectories directories(known_);
  HeldDirectoryRef again;
  if (!stack_.empty() && directories.open(stack_.front().path, again) < 0) {
    out.fatal = fatal_error(ESTALE, stack_.front().path);
    return out;
  }
  for (uint32_t steps = deletions_a_step; steps > 0 && !out.over && !out.fatal && !is_alone();) {
    if (stack_.empty()) --steps;
    if (!stack_.empty() || next_listed(directories, out)) run(out, steps, true);
  }
  std::string path;
  if (!out.fatal && directories.look_again(path) < 0) out.fatal = fatal_error(ESTALE, path);
  if (!out.fatal && root_.check() < 0) out.fatal = fatal_error(ESTALE, root_.path);
  return out;
}

int Deletions::make_room(const std::string& path) {
  DeleteStep& out = of_rooms_;
  Frame frame;
  frame.path = path;
  const int fd = files_.open(root_.fd, path, {.directory = true}, 0);
  if (fd < 0) return fd;
  frame.directory = std::make_shared<HeldFile>(files_, fd);
  if (const int looked = files_.fstat(fd, frame.stat); looked < 0) return looked;
  const std::string parent(split_path(path).parent);
  HeldDirectoryRef around;
  if (const int opened = JobDirectories(known_).open(parent, around); opened < 0) return opened;
  ports::FileStat of_parent;
  if (const int looked = files_.fstat(around->fd(), of_parent); looked < 0) return looked;
  if (of_parent.device != frame.stat.device) return -EBUSY;  // another file system is mounted there
  DeleteStep of_rules;                                       // what goes wrong with them keeps the room alone
  if (parent.size() >= base_.size() ? place_scope(parent, of_rules) < 0 : !scope_.begin(base_).has_value()) return -ENOTEMPTY;
  if (enter_scope(path, fd)) return -ENOTEMPTY;
  stack_.push_back(std::move(frame));
  room_is_left_ = true;
  for (uint32_t steps = deletions_a_step; !stack_.empty() && !out.fatal; steps = deletions_a_step) run(out, steps, false);
  stack_.clear();
  known_.forget(path);
  const bool has_failed = std::exchange(out.fatal, std::nullopt).has_value();
  if (no_space_ < 0) return no_space_;
  return room_is_left_ || has_failed ? -ENOTEMPTY : 0;
}

}  // namespace ccixfer::recv
