// Directories are made when their entry comes; their attributes wait until they are left.
#include <fmt/format.h>

#include <cerrno>

#include "app/recv/entry_job.h"
#include "app/recv/locked.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::Entry;
using session::Verdict;

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
  stays_ = found == 0 && stat.type != ports::FileType::directory && stays(entry, stat);
  if (stays_) {
    session_.left_out_ = decision.path;
    return;
  }
  const bool there = found == 0 && stat.type == ports::FileType::directory;
  const bool keeps_own = came_from_earlier_source(decision);  // those of the first source that has it
  const bool is_new = !there || (session_.base_made_ && entry.path.empty());
  decision.items = is_new ? items_of_new(session::item_made, entry, find_older(entry, decision.path)) : items_of(0, entry, &stat);
  if (keeps_own) decision.items = 0;
  if (dry()) {
    if (keeps_own) return;
    if (found == 0 && would_fail(&stat, decision, Backups::Before::removed)) return;
    decision.verdict = !there ? Verdict::make : differs(entry, stat) ? Verdict::change : Verdict::done;
    return;
  }
  if (there) {
    if (const int error = directories_.remember(parent_->fd(), name, decision.path); error < 0) {
      failed_or_fatal(decision, error);
      return;
    }
    const bool unlocked = is_read_only(stat, session_.policy_.uid) && unlock(decision.path, stat.mode | owner_writes);
    const Attributes attributes = keeps_own ? attributes_of(stat) : attributes_of(entry);
    session_.open_directories_.enter({decision.path, index, attributes, false, unlocked, stat.mode, false});
    return;
  }
  if (found == 0) {
    int error = session_.backups_ != nullptr ? session_.backups_->keep(parent_->fd(), decision.path, Backups::Before::removed) : 0;
    if (error >= 0) error = files_.unlink_at(parent_->fd(), name, false);
    if (error < 0 && error != -ENOENT) {
      failed_or_fatal(decision, error);
      return;
    }
  }
  const int made = files_.mkdir_at(parent_->fd(), name, (entry.mode & 0777u) | owner_writes);
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

bool EntryDecider::Job::unlock(const std::string& path, uint32_t mode) {
  HeldDirectoryRef directory;
  const int opened = directories_.open(path, directory);
  if (opened >= 0) return files_.set_mode(directory->fd(), mode) >= 0;
  // One that may not be read is found by its name.
  return opened == -EACCES && files_.set_mode_at(parent_->fd(), split_path(path).name, mode) >= 0;
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
  // --delete comes at the end, and so may further names of what is in it.
  const bool is_needed = session_.deletions_ != nullptr || session_.policy_.has(session::option_hard_links);
  leave.is_last = is_needed && keeps_us_out(session_.policy_, leave);
  decision.leave = std::move(leave);
}

// The directory is empty, or --delete empties it.
int EntryDecider::Job::make_room(const std::string& path, std::string_view name) {
  const int error = is_empty_directory(files_, parent_->fd(), name);
  if (error != -ENOTEMPTY || session_.deletions_ == nullptr) return error;
  const int made = session_.deletions_->make_room(path);
  if (is_no_space(-made)) fatal_ = fatal_error(-made, path);  // for the backups of what was in it
  return made;
}

// The entry in hand is ready under another name in its directory. What is replaced is kept first, when backups are.
int EntryDecider::Job::replace_by(std::string_view temporary, const std::string& path) {
  const std::string_view name = split_path(path).name;
  int error = session_.backups_ != nullptr ? session_.backups_->keep(parent_->fd(), path, Backups::Before::replaced) : 0;
  if (error >= 0 && session_.backups_ != nullptr) error = session_.backups_->sync();
  if (error >= 0) error = files_.rename_at(parent_->fd(), temporary, parent_->fd(), name);
  if (error == -EISDIR || error == -ENOTEMPTY || error == -EEXIST) {
    error = files_.unlink_at(parent_->fd(), name, true);
    if (error >= 0) error = files_.rename_at(parent_->fd(), temporary, parent_->fd(), name);
  }
  return error;
}

bool EntryDecider::Job::would_fail(const ports::FileStat* there, Decision& decision, Backups::Before before) const {
  if (!dry() || session_.backups_ == nullptr || there == nullptr || there->type == ports::FileType::directory) return false;
  const int error = session_.backups_->would_keep(parent_->fd(), decision.path, before);
  if (error < 0) failed(decision, error);
  return error < 0;
}

}  // namespace ccixfer::recv
