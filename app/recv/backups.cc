#include "app/recv/backups.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "app/recv/caseless_names.h"
#include "app/recv/directories.h"
#include "app/recv/locked.h"
#include "app/recv/names.h"
#include "app/recv/pieces.h"
#include "app/session/extended.h"
#include "app/session/limits.h"
#include "app/session/receiver_words.h"

namespace ccixfer::recv {
namespace {

constexpr size_t copy_part_bytes = 1u << 20;
constexpr size_t unsynced_max = 64;
constexpr size_t taken_max = 1u << 20;
constexpr char taken_mark = '\0';  // behind a path: tells it from one of which a backup was kept

bool is_unlinkable(int error) {
  return error == -EPERM || error == -EXDEV || error == -EMLINK || error == -ENOTSUP || error == -ENOSYS || error == -EACCES;
}

}  // namespace

// As rsync has it: what a name says.
bool Backups::is_backup(std::string_view path) const {
  return !how_.directory && path.size() > how_.suffix.size() && path.ends_with(how_.suffix);
}

int Backups::keep(int parent, std::string_view path, Before before) {
  if ((before == Before::removed && is_backup(path)) || kept_->has(path)) return 0;
  const int error = keep_what_stands(parent, path, before);
  if (error >= 0) kept_->add(path);
  return error;
}

int Backups::would_keep(int parent, std::string_view path, Before before) {
  if (before == Before::removed && is_backup(path)) return 0;
  std::string name = std::string(split_path(path).name) + how_.suffix;
  const std::string in(how_.directory ? join_path(how_.directory->path, split_path(below_base(path, base_, false)).parent)
                                      : std::string(split_path(path).parent));
  const std::lock_guard lock(mutex_);
  if (const int error = free_name(in, name); error < 0) return error;
  if (name.size() > session::name_bytes_max) return -ENAMETOOLONG;
  if (!how_.directory) return has_no_place(parent, name) ? -session::errno_of_no_backup : 0;
  const int top = open_side(root_, *how_.directory);
  if (top < 0) return 0;  // it would be made
  const HeldFile held(files_, top);
  return has_no_place(top, join_path(split_path(below_base(path, base_, false)).parent, name)) ? -session::errno_of_no_backup : 0;
}

bool Backups::has_no_place(int directory, const std::string& name) const {
  return is_empty_directory(files_, directory, name) == -ENOTEMPTY;
}

int Backups::keep_what_stands(int parent, std::string_view path, Before before) {
  const std::string_view original = split_path(path).name;
  ports::FileStat stat;
  const int found = files_.stat_at(parent, original, stat, false);
  if (found == -ENOENT || (found >= 0 && stat.type == ports::FileType::directory)) return 0;
  if (found < 0) return found;
  std::string name = std::string(original) + how_.suffix;
  const std::lock_guard lock(mutex_);
  if (!how_.directory) {
    if (const int error = free_name(split_path(path).parent, name); error < 0) return error;
    return keep_in(parent, name, parent, original, stat, before);
  }
  const std::string below(below_base(path, base_, false));
  if (const int error = free_name(join_path(how_.directory->path, split_path(below).parent), name); error < 0) return error;
  if (const int error = open_twin(split_path(below).parent); error < 0) return error;
  const MadeWritable writable(files_, twin_->fd(), policy_.uid);
  const int kept = keep_in(twin_->fd(), name, parent, original, stat, before);
  if (kept < 0) return kept;
  // The last sync of the session is of the root's own file system.
  if (how_.directory->outside) return files_.fsync(twin_->fd());
  unsynced_.emplace(twin_path_, twin_);
  return unsynced_.size() < unsynced_max ? kept : sync_all();
}

// Only such names are remembered: of the rest there are as many as there are files.
bool Backups::may_be_of_a_backup(std::string_view path) const {
  if (how_.directory) return !how_.directory->outside && is_below(path, how_.directory->path);
  return is_backup(path);
}

std::string Backups::as_one(std::string path) const { return root_.ignores_case ? without_case_or_accents(path) : path; }

bool Backups::is_taken(const std::string& path) const {
  return taken_.contains(xxh3_64(as_bytes(path))) || kept_->has(path + taken_mark);
}

// Over all sessions of the transfer.
void Backups::take(const std::string& path) {
  if (taken_.size() < taken_max) taken_.insert(xxh3_64(as_bytes(path)));
  kept_->add(path + taken_mark);
}

void Backups::note(std::string_view path) {
  if (!may_be_of_a_backup(path)) return;
  const std::lock_guard lock(mutex_);
  take(as_one(std::string(path)));
}

// What the source has of that name may be delivered already. Two files want one name where it ends with the suffix twice, and what
// the first one got is the other's no more. 0 or -errno.
int Backups::free_name(std::string_view directory, std::string& name) {
  if (how_.directory && how_.directory->outside) return 0;
  if (taken_.size() >= taken_max) return -session::errno_of_no_backup;  // nobody knows any more
  std::string path = as_one(join_path(directory, name));
  while (is_taken(path)) {
    if (how_.suffix.empty()) return -session::errno_of_no_backup;
    name += how_.suffix;
    path = as_one(join_path(directory, name));
  }
  const std::string_view of = std::string_view(name).substr(0, name.size() - how_.suffix.size());
  if (!how_.suffix.empty() && of.ends_with(how_.suffix)) take(path);
  return 0;
}

int Backups::sync() {
  const std::lock_guard lock(mutex_);
  return sync_all();
}

int Backups::sync_all() {
  int error = 0;
  for (const auto& [path, directory] : unsynced_) {
    owner_.step();
    error = std::min(error, files_.fsync(directory->fd()));
  }
  unsynced_.clear();
  return error;
}

// What is removed has one name at any moment of a power cut: the old one, or the backup's.
int Backups::keep_in(int directory, const std::string& name, int parent, std::string_view original, const ports::FileStat& stat,
                     Before before) {
  if (before == Before::removed && files_.rename_at(parent, original, directory, name) >= 0) return 0;
  int error = files_.link_at(parent, original, directory, name);
  if (error == -EEXIST) {  // an earlier backup
    error = files_.unlink_at(directory, name, false);
    if (error == -EISDIR || error == -EPERM) error = files_.unlink_at(directory, name, true);
    if (error == -ENOTEMPTY) return -session::errno_of_no_backup;  // of the file itself it would mean something else
    if (error >= 0) error = files_.link_at(parent, original, directory, name);
  }
  if (is_unlinkable(error)) error = copy(directory, name, parent, original, stat);
  return error >= 0 && before == Before::removed ? files_.fsync(directory) : error;
}

int Backups::copy(int directory, const std::string& name, int parent, std::string_view original, const ports::FileStat& stat) {
  files_.unlink_at(directory, name, false);
  if (stat.type == ports::FileType::symlink) {
    std::string target;
    const int64_t read = files_.readlink_at(parent, original, target);
    return read < 0 ? static_cast<int>(read) : files_.symlink_at(target, directory, name);
  }
  if (stat.type != ports::FileType::regular) return -ENOTSUP;
  const int from = files_.open(parent, original, {}, 0);
  if (from < 0) return from;
  const HeldFile from_file(files_, from);
  const int to = files_.open(directory, name, {.mode = ports::OpenMode::write, .create = true, .exclusive = true}, 0600);
  if (to < 0) return to;
  const HeldFile to_file(files_, to);
  std::vector<std::byte> buffer(copy_part_bytes);
  int64_t got = 0;
  int error = 0;
  for (uint64_t offset_bytes = 0; error >= 0 && (got = files_.pread(from, buffer, offset_bytes)) > 0;
       offset_bytes += static_cast<uint64_t>(got)) {
    owner_.step();
    error = write_all(files_, to, Bytes(buffer).first(static_cast<size_t>(got)), offset_bytes);
  }
  if (error >= 0) error = static_cast<int>(std::min<int64_t>(got, 0));
  give(to, from, {stat.mode, stat.uid, stat.gid}, Extended::all);
  files_.set_mtime(to, stat.mtime);
  if (error >= 0) error = files_.fsync(to);
  if (error < 0) files_.unlink_at(directory, name, false);
  return error;
}

int Backups::open_top() {
  if (top_) return 0;
  int fd = open_side(root_, *how_.directory);
  if (fd == -ENOENT && !how_.directory->outside) {
    const std::string& path = how_.directory->path;
    for (size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end == 0 ? 0 : end + 1);
      const SplitPath split = split_path(std::string_view(path).substr(0, end));
      const int parent = files_.open(root_.fd, split.parent.empty() ? "." : split.parent, {.directory = true, .anchor = true}, 0);
      if (parent < 0) return parent;
      const HeldFile held(files_, parent);
      if (const int error = files_.mkdir_at(parent, split.name, 0777); error < 0 && error != -EEXIST) return error;
      root_.directories_made.fetch_add(1);
    }
    fd = open_side(root_, *how_.directory);
  }
  if (fd < 0) return fd;
  top_ = std::make_shared<HeldFile>(files_, fd);
  return 0;
}

// The directory in the backup directory for what was in `directory`, made if absent, in twin_.
int Backups::open_twin(std::string_view directory) {
  if (const int error = open_top(); error < 0) return error;
  if (twin_ && twin_path_ == directory) return 0;
  HeldFileRef at = top_;
  for (size_t end = directory.empty() ? std::string::npos : 0; end != std::string::npos;) {
    const size_t begin = end == 0 ? 0 : end + 1;
    end = directory.find('/', begin);
    const std::string_view name = directory.substr(begin, end == std::string_view::npos ? end : end - begin);
    const HeldFileRef around = at;
    const MadeWritable writable(files_, around->fd(), policy_.uid);
    int fd = open_to_write_in(around->fd(), name);
    if (fd == -ENOTDIR || fd == -ELOOP) {  // as with rsync, what is in the way of a backup goes
      files_.unlink_at(at->fd(), name, false);
      fd = -ENOENT;
    }
    if (fd == -ENOENT) fd = make_twin(at->fd(), name, std::string(directory.substr(0, end)));
    if (fd < 0) return fd;
    at = std::make_shared<HeldFile>(files_, fd);
  }
  twin_ = at;
  twin_path_ = directory;
  return 0;
}

// One that may not be read, as a run before left it, is open to us for the moment.
int Backups::open_to_write_in(int parent, std::string_view name) {
  const int fd = files_.open(parent, name, {.directory = true}, 0);
  ports::FileStat stat;
  if (fd != -EACCES || policy_.uid == 0 || files_.stat_at(parent, name, stat, false) < 0) return fd;
  if (stat.uid != policy_.uid || files_.set_mode_at(parent, name, stat.mode | owner_writes) < 0) return fd;
  const int opened = files_.open(parent, name, {.directory = true}, 0);
  files_.set_mode_at(parent, name, stat.mode);
  return opened;
}

int Backups::make_twin(int parent, std::string_view name, const std::string& directory) {
  const int made = files_.mkdir_at(parent, name, owner_writes);
  if (made < 0 && made != -EEXIST) return made;
  root_.directories_made.fetch_add(1);
  const int fd = files_.open(parent, name, {.directory = true}, 0);
  if (fd < 0) return fd;
  ports::FileStat stat;
  const std::string path = join_path(base_, directory);
  int original = files_.open(root_.fd, path, {.directory = true}, 0);
  // Through an anchor its extended attributes cannot be read; its mode can.
  if (original == -EACCES) original = files_.open(root_.fd, path, {.directory = true, .anchor = true}, 0);
  if (original < 0) return fd;
  const HeldFile held(files_, original);
  // Until it is left it must be one that we can write in.
  const uint32_t mode_at_least = policy_.uid != 0 ? owner_writes : 0;
  if (files_.fstat(original, stat) >= 0) give(fd, original, {stat.mode | mode_at_least, stat.uid, stat.gid}, Extended::lists);
  made_.insert(directory);
  return fd;
}

// What is refused stays, as everywhere.
void Backups::give(int fd, int original, const Current& attributes, Extended which) const {
  if (policy_.has(session::option_owner)) files_.set_owner(fd, policy_.uid == 0 ? attributes.uid : keep_owner, attributes.gid);
  files_.set_mode(fd, attributes.mode);
  if (!policy_.has_extended()) return;
  std::vector<session::ExtendedAttribute> extended;
  if (session::read_extended(files_, original, policy_.options, policy_.uid == 0, extended) < 0) return;
  Attributes wanted;
  wanted.extended = std::make_shared<const std::vector<session::ExtendedAttribute>>(std::move(extended));
  static_cast<void>(apply_extended(files_, fd, policy_, wanted, which));
}

void Backups::left(std::string_view path, int directory, const Current& attributes) {
  if (!how_.directory) return;
  const std::string below(below_base(path, base_, true));
  const std::lock_guard lock(mutex_);
  const auto made = made_.find(below);
  if (made == made_.end()) return;
  made_.erase(made);
  const int fd = files_.open(top_->fd(), below, {.directory = true}, 0);
  if (fd < 0) return;
  const HeldFile held(files_, fd);
  give(fd, directory, attributes, Extended::lists);
}

}  // namespace ccixfer::recv
