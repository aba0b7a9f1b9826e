#include "app/recv/entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "app/recv/pieces.h"
#include "app/session/limits.h"
#include "app/session/receiver_words.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::Entry;
using session::EntryType;
using session::Verdict;

namespace {

constexpr uint32_t owner_all = 0700;  // u+rwx: what we need in a directory while we write in it

}  // namespace

// The parent's descriptor is kept from entry to entry: a walk stays in one directory for long.
class EntryDecider::Job {
 public:
  explicit Job(EntryDecider& session)
      : session_(session), root_(session.root_), files_(session.root_.files), directories_(session.directories_) {}

  std::optional<Error> prepare_base();
  std::optional<Error> look_again();
  Decision decide(const Entry& entry, uint64_t index);
  [[nodiscard]] std::optional<Error>& fatal() { return fatal_; }

 private:
  [[nodiscard]] bool base_is_directory();
  [[nodiscard]] bool dry() const { return session_.policy_.has(session::option_dry_run); }
  int make_directories(const std::string& path);
  int open_parent(std::string_view parent);
  static Decision& failed(Decision& decision, int negative_errno);
  Decision& failed_or_fatal(Decision& decision, int negative_errno);

  void place(const Entry& entry, uint64_t index, Decision& decision);
  void decide_directory(const Entry& entry, uint64_t index, Decision& decision);
  void decide_symlink(const Entry& entry, Decision& decision);
  void decide_leave(uint64_t index, Decision& decision);
  void decide_file(const Entry& entry, uint64_t index, Decision& decision);
  [[nodiscard]] int look_for(const std::string& path, std::string_view name, ports::FileStat& stat);
  int place_symlink(const Entry& entry, const std::string& path);
  void finish_symlink(const Entry& entry, std::string_view name);
  [[nodiscard]] bool differs(const Entry& entry, const ports::FileStat& stat);
  [[nodiscard]] bool has_time(const Entry& entry, const ports::FileStat& stat);
  [[nodiscard]] bool is_unchanged(const Entry& entry, std::string_view name, const ports::FileStat& stat);
  [[nodiscard]] bool set_attributes_of_unchanged(const Entry& entry, std::string_view name, const ports::FileStat& stat,
                                                 Decision& decision);
  [[nodiscard]] bool has_content(const Entry& entry, std::string_view name, const ports::FileStat& stat);
  [[nodiscard]] int is_empty_directory(std::string_view name);
  [[nodiscard]] bool was_delivered(const Entry& entry, const std::string& path, const ports::FileStat& stat);
  void resume(const FileTask& task, Decision& decision);

  EntryDecider& session_;
  OpenedRoot& root_;
  ports::FileSystem& files_;
  JobDirectories directories_;
  std::string parent_path_;
  HeldDirectoryRef parent_;
  std::optional<Error> fatal_;
};

Decision& EntryDecider::Job::failed(Decision& decision, int negative_errno) {
  decision.verdict = Verdict::failed;
  decision.error_number = -negative_errno;
  return decision;
}

Decision& EntryDecider::Job::failed_or_fatal(Decision& decision, int negative_errno) {
  if (is_fatal(-negative_errno)) fatal_ = fatal_error(-negative_errno, decision.path);
  return failed(decision, negative_errno);
}

int EntryDecider::Job::open_parent(std::string_view parent) {
  if (parent_ && parent_path_ == parent) return 0;
  HeldDirectoryRef opened;
  if (const int error = directories_.open(parent, opened); error < 0) return error;
  root_.disk->look_at(opened);
  parent_ = std::move(opened);
  parent_path_ = parent;
  return 0;
}

// Before the verdicts are told: they are of directories that may have been moved meanwhile.
std::optional<Error> EntryDecider::Job::look_again() {
  std::string path;
  if (const int error = directories_.look_again(path); error < 0) return fatal_error(-error, path);
  if (root_.check() < 0) return fatal_error(ESTALE, root_.path);
  return std::nullopt;
}

int EntryDecider::Job::make_directories(const std::string& path) {
  for (size_t end = 0; end != std::string::npos && !path.empty();) {
    end = path.find('/', end == 0 ? 0 : end + 1);
    const std::string so_far = path.substr(0, end);
    HeldDirectoryRef directory;
    if (directories_.open(so_far, directory) == 0) continue;
    const SplitPath split = split_path(so_far);
    if (const int error = open_parent(split.parent); error < 0) return error;
    if (const int error = files_.mkdir_at(parent_->fd(), split.name, 0777); error < 0 && error != -EEXIST) return error;
    root_.directories_made.fetch_add(1);
    if (const int error = directories_.open(so_far, directory); error < 0) return error;
  }
  return 0;  // all of them are there
}

// Once a session: the parents of the session's path, or with option_directory the path itself.
std::optional<Error> EntryDecider::Job::prepare_base() {
  if (session_.base_ready_) return std::nullopt;
  ports::SpaceInfo space;
  if (files_.space(root_.fd, space) >= 0 && space.read_only) return fatal_error(EROFS, session_.base_);
  if (dry()) {
    HeldDirectoryRef directory;
    const int error = directories_.open(session_.base_, directory);
    if (error == -ELOOP) {
      return Error{ErrorKind::not_authorised, fmt::format("{} passes a symbolic link", printable(session_.base_))};
    }
    session_.base_ready_ = true;
    return std::nullopt;
  }
  const bool is_directory = session_.policy_.has(session::option_directory);
  const std::string directory = is_directory ? session_.base_ : std::string(split_path(session_.base_).parent);
  if (const int error = make_directories(directory); error < 0) {
    if (error == -ELOOP || error == -EXDEV) {
      return Error{ErrorKind::not_authorised,
                   fmt::format("{} leaves the receiver's root: it passes a symbolic link", printable(directory))};
    }
    if (error == -ENOTDIR)
      return Error{ErrorKind::file_io, fmt::format("{} is not a directory at the receiver", printable(directory))};
    if (is_fatal(-error)) return fatal_error(-error, directory);
    return Error{ErrorKind::file_io,
                 fmt::format("cannot make the directory {}: {}", printable(directory), std::generic_category().message(-error))};
  }
  session_.base_ready_ = true;
  return std::nullopt;
}

bool EntryDecider::Job::base_is_directory() {
  HeldDirectoryRef directory;
  return session_.base_.empty() || directories_.open(session_.base_, directory) == 0;
}

Decision EntryDecider::Job::decide(const Entry& entry, uint64_t index) {
  Decision decision;
  decision.type = entry.type;
  decision.path = join_path(session_.base_, entry.path);
  // As cp and rsync do: one thing that is sent to where a directory stands comes into it.
  if (!entry.name.empty() && base_is_directory()) decision.path = join_path(session_.base_, entry.name);
  decision.size_bytes = entry.type == EntryType::file && entry.size_bytes != size_unknown ? entry.size_bytes : 0;
  decision.version = entry.version;
  if (is_reserved_path(decision.path)) return failed(decision, -EPERM);
  if (decision.path.size() >= session::path_bytes_max) return failed(decision, -ENAMETOOLONG);
  const bool is_file_or_link = entry.type == EntryType::file || entry.type == EntryType::symlink;
  if (is_file_or_link && entry.unknown_mandatory != 0) return failed(decision, -session::errno_of_unknown_field);
  place(entry, index, decision);
  // A directory is made and left all the same, so that what is in it arrives.
  if (entry.unknown_mandatory != 0) failed(decision, -session::errno_of_unknown_field);
  return decision;
}

void EntryDecider::Job::place(const Entry& entry, uint64_t index, Decision& decision) {
  if (entry.type == EntryType::leave) return decide_leave(index, decision);
  if (decision.path.empty()) {  // the root itself
    if (entry.type == EntryType::directory) {
      ports::FileStat stat;
      if (dry() && root_.fd < 0) decision.verdict = Verdict::make;
      if (dry() && root_.fd >= 0 && files_.fstat(root_.fd, stat) >= 0 && differs(entry, stat)) decision.verdict = Verdict::change;
      if (!dry()) session_.open_directories_.enter({decision.path, index, attributes_of(entry), false, false, 0, false});
    } else {
      fatal_ = Error{ErrorKind::file_io, "the destination is the receiver's root: give the file a name"};
    }
    return;
  }
  if (const int error = open_parent(split_path(decision.path).parent); error < 0) {
    // The directory that it is in comes before it, and takes the place of whatever stands there: a file or a link too.
    const bool would_be_made = dry() && (error == -ENOENT || error == -ENOTDIR || error == -ELOOP);
    if (would_be_made) {
      decision.verdict = entry.type == EntryType::file ? Verdict::send : Verdict::make;
    } else {
      failed_or_fatal(decision, error);
    }
    return;
  }
  switch (entry.type) {
    case EntryType::directory:
      decide_directory(entry, index, decision);
      break;
    case EntryType::symlink:
      decide_symlink(entry, decision);
      break;
    case EntryType::file:
    case EntryType::leave:
      decide_file(entry, index, decision);
      break;
  }
}

void EntryDecider::Job::decide_leave(uint64_t index, Decision& decision) {
  if (dry()) return;
  Leave leave;
  leave.path = decision.path;
  leave.leave_index = index;
  auto left = session_.open_directories_.leave(decision.path);
  if (!left) return;  // its own entry failed, or there was none: nothing of ours
  leave.first_index = left->index;
  leave.attributes = left->attributes;
  leave.made = left->made;
  leave.unlocked = left->unlocked;
  leave.mode_before = left->mode_before;
  decision.leave = std::move(leave);
}

void EntryDecider::Job::decide_directory(const Entry& entry, uint64_t index, Decision& decision) {
  const std::string_view name = split_path(decision.path).name;
  ports::FileStat stat;
  const int found = files_.stat_at(parent_->fd(), name, stat, false);
  if (found < 0 && found != -ENOENT) {
    failed(decision, found);
    return;
  }
  if (found == 0 && stat.type == ports::FileType::symlink && entry.path.empty()) {
    fatal_ = Error{ErrorKind::not_authorised, fmt::format("{} is a symbolic link at the receiver", printable(decision.path))};
    return;
  }
  // Within a tree the source decides, as with rsync; what the command line names is more likely a slip.
  if (found == 0 && stat.type != ports::FileType::directory && entry.path.empty()) {
    fatal_ = Error{ErrorKind::file_io, fmt::format("{} is there at the receiver and is not a directory", printable(decision.path))};
    return;
  }
  if (dry()) {
    const bool there = found == 0 && stat.type == ports::FileType::directory;
    decision.verdict = !there ? Verdict::make : differs(entry, stat) ? Verdict::change : Verdict::done;
    return;
  }
  if (found == 0 && stat.type == ports::FileType::directory) {
    if (const int error = directories_.remember(parent_->fd(), name, decision.path); error < 0) {
      failed_or_fatal(decision, error);
      return;
    }
    bool unlocked = false;
    if ((stat.mode & owner_all) != owner_all) {
      HeldDirectoryRef directory;
      unlocked = directories_.open(decision.path, directory) == 0 && files_.set_mode(directory->fd(), stat.mode | owner_all) >= 0;
    }
    session_.open_directories_.enter({decision.path, index, attributes_of(entry), false, unlocked, stat.mode, false});
    return;
  }
  if (found == 0) {
    if (const int error = files_.unlink_at(parent_->fd(), name, false); error < 0) {
      failed_or_fatal(decision, error);
      return;
    }
  }
  const int made = files_.mkdir_at(parent_->fd(), name, (entry.mode & 0777u) | owner_all);
  if (made < 0 && made != -EEXIST) {
    failed_or_fatal(decision, made);
    return;
  }
  root_.directories_made.fetch_add(1);
  directories_.forget(decision.path);
  if (const int error = directories_.remember(parent_->fd(), name, decision.path); error < 0) {
    failed_or_fatal(decision, error);
    return;
  }
  session_.open_directories_.enter({decision.path, index, attributes_of(entry), true, false, 0, made >= 0});
}

// The look at a name costs a call for each file. Nothing worth keeping stands in a directory that was made for this run; what
// another process puts there meanwhile meets the file at its commit, as it would after a look that came too early.
int EntryDecider::Job::look_for(const std::string& path, std::string_view name, ports::FileStat& stat) {
  if (session_.open_directories_.is_new(split_path(path).parent)) return -ENOENT;
  return files_.stat_at(parent_->fd(), name, stat, false);
}

int EntryDecider::Job::is_empty_directory(std::string_view name) {
  const int fd = files_.open(parent_->fd(), name, {.directory = true}, 0);
  if (fd < 0) return fd;
  bool empty = true;
  const auto seen = [&empty](std::string_view) { empty = false; };
  int more = files_.read_directory_part(fd, true, seen);
  while (more > 0 && empty) more = files_.read_directory_part(fd, false, seen);
  files_.close(fd);
  if (more < 0) return more;
  return empty ? 0 : -ENOTEMPTY;
}

void EntryDecider::Job::finish_symlink(const Entry& entry, std::string_view name) {
  const Policy& policy = session_.policy_;
  // Always: one that was there may be anybody's, and in a setgid directory a new one has the directory's group.
  if (policy.has(session::option_owner) && policy.uid == 0) files_.set_link_owner_at(parent_->fd(), name, entry.uid, entry.gid);
  if (policy.has(session::option_times)) files_.set_link_mtime_at(parent_->fd(), name, entry.mtime);
}

// Under another name first, then renamed: a link that was there is replaced at once or not at all.
int EntryDecider::Job::place_symlink(const Entry& entry, const std::string& path) {
  const std::string_view name = split_path(path).name;
  const std::string temporary = staged_beside_name(path_key(path));
  files_.unlink_at(parent_->fd(), temporary, false);
  if (const int error = files_.symlink_at(entry.target, parent_->fd(), temporary); error < 0) return error;
  finish_symlink(entry, temporary);
  int error = files_.rename_at(parent_->fd(), temporary, parent_->fd(), name);
  if (error == -EISDIR || error == -ENOTEMPTY || error == -EEXIST) {
    error = files_.unlink_at(parent_->fd(), name, true);
    if (error >= 0) error = files_.rename_at(parent_->fd(), temporary, parent_->fd(), name);
  }
  if (error < 0) files_.unlink_at(parent_->fd(), temporary, false);
  return error;
}

void EntryDecider::Job::decide_symlink(const Entry& entry, Decision& decision) {
  const std::string_view name = split_path(decision.path).name;
  ports::FileStat stat;
  const int found = files_.stat_at(parent_->fd(), name, stat, false);
  if (found < 0 && found != -ENOENT) {
    failed(decision, found);
    return;
  }
  if (found == 0 && stat.type == ports::FileType::symlink) {
    std::string target;
    if (files_.readlink_at(parent_->fd(), name, target) >= 0 && target == entry.target) {
      if (!dry()) finish_symlink(entry, name);
      if (dry() && differs(entry, stat)) decision.verdict = Verdict::change;
      return;
    }
  }
  if (found == 0 && stat.type == ports::FileType::directory) {
    if (const int error = is_empty_directory(name); error < 0) {
      failed(decision, error);
      return;
    }
  }
  if (dry()) {
    decision.verdict = Verdict::make;
    return;
  }
  if (const int error = place_symlink(entry, decision.path); error < 0) {
    failed_or_fatal(decision, error);
    return;
  }
  directories_.forget(decision.path);
}

// Whether the run would give something that is there, and stays, another mode, owner or time.
bool EntryDecider::Job::differs(const Entry& entry, const ports::FileStat& stat) {
  const Policy& policy = session_.policy_;
  const bool is_link = stat.type == ports::FileType::symlink;
  if (policy.has(session::option_times) && !has_time(entry, stat)) return true;
  if (policy.has(session::option_owner)) {
    if (policy.uid == 0 && (stat.uid != entry.uid || stat.gid != entry.gid)) return true;
    if (policy.uid != 0 && !is_link && stat.gid != entry.gid) return true;
  }
  if (is_link || !policy.has(session::option_permissions)) return false;
  return wanted_mode(policy, {stat.mode, stat.uid, stat.gid}, attributes_of(entry)) != stat.mode;
}

bool EntryDecider::Job::has_content(const Entry& entry, std::string_view name, const ports::FileStat& stat) {
  if (!entry.has_digest || stat.size_bytes != entry.size_bytes) return false;
  const int fd = files_.open(parent_->fd(), name, {}, 0);
  if (fd < 0) return false;
  const HeldFile file(files_, fd);
  const auto digest = digest_of(files_, fd, stat.size_bytes, *session_.owner_);
  return digest.has_value() && *digest == entry.digest;
}

// The file system may not have been able to keep the time that it was given.
bool EntryDecider::Job::has_time(const Entry& entry, const ports::FileStat& stat) {
  const std::string scratch = dry() ? std::string() : staged_beside_name(path_key(join_path(session_.base_, entry.path)));
  return root_.kept_times.same(files_, stat.device, parent_ ? parent_->fd() : root_.fd, scratch, stat.mtime, entry.mtime);
}

bool EntryDecider::Job::is_unchanged(const Entry& entry, std::string_view name, const ports::FileStat& stat) {
  if (stat.type != ports::FileType::regular || entry.size_bytes == size_unknown) return false;
  if (session_.policy_.has(session::option_checksum)) return has_content(entry, name, stat);
  return session_.policy_.has(session::option_times) && stat.size_bytes == entry.size_bytes && has_time(entry, stat);
}

// The content stays; mode, owner and (under --checksum) mtime are brought up to date. False: it cannot be; write it anew.
bool EntryDecider::Job::set_attributes_of_unchanged(const Entry& entry, std::string_view name, const ports::FileStat& stat,
                                                    Decision& decision) {
  Policy policy = session_.policy_;
  if (has_time(entry, stat)) policy.options &= ~uint32_t{session::option_times};
  const Current current{stat.mode, stat.uid, stat.gid};
  const Attributes wanted = attributes_of(entry);
  const bool mode_differs = policy.has(session::option_permissions) && wanted_mode(policy, current, wanted) != stat.mode;
  const bool owner_differs = policy.has(session::option_owner) && (stat.uid != entry.uid || stat.gid != entry.gid);
  if (!mode_differs && !owner_differs && !policy.has(session::option_times)) return true;
  if (!policy.has(session::option_permissions) && !owner_differs && !policy.has(session::option_times)) return true;
  if (dry()) return true;
  const int fd = files_.open(parent_->fd(), name, {}, 0);
  if (fd < 0) return !mode_differs && !policy.has(session::option_times);
  const HeldFile file(files_, fd);
  if (!policy.has(session::option_permissions)) {
    // Without it a file keeps the mode that it has.
    Attributes same_mode = wanted;
    same_mode.mode = stat.mode;
    policy.options |= session::option_permissions;
    return apply_attributes(files_, fd, policy, current, same_mode) == 0;
  }
  const int applied = apply_attributes(files_, fd, policy, current, wanted);
  // Of a file that is somebody else's: a new one in its place is ours, and gets them.
  const bool is_ours = policy.uid == 0 || policy.uid == stat.uid;
  decision.attributes_refused = applied == attributes_refused;
  return applied == 0 || (decision.attributes_refused && is_ours);
}

void EntryDecider::Job::decide_file(const Entry& entry, uint64_t index, Decision& decision) {
  const std::string_view name = split_path(decision.path).name;
  ports::FileStat stat;
  const int found = look_for(decision.path, name, stat);
  if (found < 0 && found != -ENOENT) {
    failed(decision, found);
    return;
  }
  if (found == 0 && stat.type == ports::FileType::directory) {
    if (entry.path.empty() && entry.name.empty()) {  // standard input
      fatal_ = Error{ErrorKind::file_io,
                     fmt::format("{} is a directory at the receiver: give the file a name in it", printable(decision.path))};
      return;
    }
    if (const int error = is_empty_directory(name); error < 0) {
      failed(decision, error == -ENOTEMPTY ? -EISDIR : error);
      return;
    }
  }
  if (entry.size_bytes > file_bytes_max && entry.size_bytes != size_unknown) {
    failed(decision, -EOVERFLOW);
    return;
  }
  if (found == 0 && is_unchanged(entry, name, stat) && set_attributes_of_unchanged(entry, name, stat, decision)) {
    decision.verdict = dry() && differs(entry, stat) ? Verdict::change : Verdict::unchanged;
    return;
  }
  if (found == 0 && was_delivered(entry, decision.path, stat)) {
    decision.verdict = Verdict::unchanged;
    return;
  }
  decision.verdict = Verdict::send;
  if (dry()) return;
  const Hash128 key = path_key(decision.path);
  if (!root_.claims.take(key, session_.owner_)) {
    failed(decision, -EBUSY);
    return;
  }
  auto task = std::make_shared<FileTask>();
  task->index = index;
  task->path = decision.path;
  task->key = key;
  task->size_bytes = entry.size_bytes;
  task->version = entry.version;
  task->attributes = attributes_of(entry);
  task->has_digest = entry.has_digest;
  task->digest = entry.digest;
  resume(*task, decision);
  decision.task = std::move(task);
}

// By a transfer that did not end, this one or another: where stat alone cannot tell.
bool EntryDecider::Job::was_delivered(const Entry& entry, const std::string& path, const ports::FileStat& stat) {
  const Policy& policy = session_.policy_;
  if (!root_.deliveries || stat.type != ports::FileType::regular || entry.size_bytes == size_unknown) return false;
  if (policy.has(session::option_times) || policy.has(session::option_checksum)) return false;
  const auto found = root_.deliveries->find(path_key(path), entry.version);
  if (!found || found->placed != Deliveries::Placed{stat.size_bytes, stat.mtime, stat.inode}) return false;
  session_.taken_over_.insert(found->transfer);
  return true;
}

// What an earlier run left: pieces of this version, read back; other versions of the path go.
void EntryDecider::Job::resume(const FileTask& task, Decision& decision) {
  const Result<std::vector<uint64_t>> versions = root_.ledger->versions(task.key);
  if (!versions) {
    fatal_ = versions.error();
    return;
  }
  if (versions->empty()) return;
  std::vector<Ledger::File> stale;
  bool known = false;
  for (const uint64_t version : *versions) {
    known = known || version == task.version;
    if (version != task.version) stale.push_back({task.key, version});
  }
  if (known) {
    if (task.size_bytes != size_unknown) decision.present = read_back(root_, task, *session_.owner_);
    if (decision.present.empty()) stale.push_back(task.ledger_file());
  }
  for (const Ledger::File& file : stale) files_.unlink_at(root_.staging, staged_name(file.key, file.version), false);
  if (const auto removed = root_.ledger->remove(stale); !removed) {
    fatal_ = removed.error();
    return;
  }
  if (decision.present.empty()) return;
  decision.verdict = Verdict::pieces;
  decision.wants = missing_ranges(decision.present, piece_count(task.size_bytes));
}

DecidedEntries EntryDecider::decide(const std::vector<Entry>& entries, uint64_t first_index) {
  DecidedEntries decided;
  if (root_.check() < 0) {
    decided.fatal = fatal_error(ESTALE, root_.path);
    return decided;
  }
  Job job(*this);
  if (auto error = job.prepare_base()) {
    decided.fatal = std::move(error);
    return decided;
  }
  decided.decisions.reserve(entries.size());
  for (const Entry& entry : entries) {
    owner_->step();
    decided.decisions.push_back(job.decide(entry, first_index + decided.decisions.size()));
    if (job.fatal()) {
      decided.fatal = std::move(job.fatal());
      return decided;
    }
  }
  decided.fatal = job.look_again();
  return decided;
}

}  // namespace ccixfer::recv
