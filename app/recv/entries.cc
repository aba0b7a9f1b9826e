#include "app/recv/entries.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "app/recv/entry_job.h"
#include "app/recv/locked.h"
#include "app/session/receiver_words.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::Entry;
using session::EntryType;
using session::Verdict;

Decision& EntryDecider::Job::failed(Decision& decision, int negative_errno) {
  decision.verdict = Verdict::failed;
  decision.error_number = -negative_errno;
  return decision;
}

Decision& EntryDecider::Job::failed_or_fatal(Decision& decision, int negative_errno) {
  if (is_fatal(-negative_errno)) fatal_ = fatal_error(-negative_errno, decision.path);
  return failed(decision, negative_errno);
}

bool EntryDecider::Job::claim(const std::string& path) {
  if (!claim_) claim_.emplace(root_.claims, path_key(path), session_.owner_);
  return claim_->is_held();
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

// A dry run: what make_directories would say, as far as a look at what is there tells it.
int EntryDecider::Job::would_make_directories(const std::string& path) {
  HeldDirectoryRef directory;
  const int error = root_.fd < 0 ? 0 : directories_.open(path, directory);
  return error == -ELOOP || error == -EXDEV || error == -ENOTDIR ? error : 0;
}

Error EntryDecider::Job::passes_link(const std::string& path) {
  return {ErrorKind::not_authorised,
          fmt::format("{} passes a symbolic link at the receiver: name what it leads to", printable(path))};
}

// Once a session: the parents of the session's path, or with option_directory the path itself.
std::optional<Error> EntryDecider::Job::prepare_base() {
  if (session_.base_ready_) return std::nullopt;
  ports::SpaceInfo space;
  if (files_.space(root_.fd, space) >= 0 && space.read_only) return fatal_error(EROFS, session_.base_);
  const bool is_directory = session_.policy_.has(session::option_directory);
  if (!dry() && is_directory && !base_is_directory()) session_.base_made_ = true;
  const std::string directory = is_directory ? session_.base_ : std::string(split_path(session_.base_).parent);
  const int error = dry() ? would_make_directories(directory) : make_directories(directory);
  if (error == -ELOOP) return passes_link(session_.base_);
  if (error == -EXDEV) return Error{ErrorKind::not_authorised, fmt::format("{} leaves the receiver's root", printable(directory))};
  if (error == -ENOTDIR)
    return Error{ErrorKind::file_io, fmt::format("{} is not a directory at the receiver", printable(directory))};
  if (error < 0 && is_fatal(-error)) return fatal_error(-error, directory);
  if (error < 0) {
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

// A link to a directory below the root. Where it leads is read, and not asked of the host: what is outside is nobody's business.
bool EntryDecider::Job::base_leads_to_directory() {
  const SplitPath split = split_path(session_.base_);
  std::string target;
  if (open_parent(split.parent) < 0 || files_.readlink_at(parent_->fd(), split.name, target) < 0) return false;
  if (target.starts_with('/')) return false;
  const auto path = normalise_path((std::filesystem::path(split.parent) / target).lexically_normal().native());
  HeldDirectoryRef directory;
  return path && directories_.open(*path, directory) == 0;
}

Decision EntryDecider::Job::decide(const Entry& entry, uint64_t index) {
  Decision decision;
  decision.type = entry.type;
  decision.path = join_path(session_.base_, entry.path);
  // As cp and rsync do: one thing that is sent to where a directory stands comes into it.
  if (!entry.name.empty()) {
    if (base_is_directory()) {
      decision.path = join_path(session_.base_, entry.name);
    } else if (base_leads_to_directory()) {
      fatal_ = passes_link(session_.base_);
      return decision;
    }
  }
  decision.size_bytes = entry.type == EntryType::file && entry.size_bytes != size_unknown ? entry.size_bytes : 0;
  decision.version = entry.version;
  if (session_.policy_.has(session::option_itemize)) decision.target = entry.target;
  claim_.reset();
  stays_ = is_sources_ = false;
  if (is_reserved_path(decision.path)) return failed(decision, -EPERM);
  const bool is_directory = entry.type == EntryType::directory || entry.type == EntryType::leave;
  if (!is_directory && entry.unknown_mandatory != 0) return failed(decision, -session::errno_of_unknown_field);
  if (root_.ignores_case && entry.type != EntryType::leave && !session_.caseless_names_.take(decision.path, is_directory))
    return failed(decision, -session::errno_of_same_name);
  if (session_.backups_ != nullptr && entry.type != EntryType::leave) session_.backups_->note(decision.path);
  if (!is_directory && came_from_earlier_source(decision)) {
    stays_ = true;
    if (entry.type == EntryType::file) decision.verdict = Verdict::unchanged;
  } else {
    place(entry, index, decision);
  }
  if (is_in_locked(decision)) decide_in_missing_directory(entry, decision);
  // A directory is made and left all the same, so that what is in it arrives.
  if (entry.unknown_mandatory != 0) failed(decision, -session::errno_of_unknown_field);
  decision.stays = stays_ && !is_sources_ && decision.verdict != Verdict::failed;
  decision.setid_refused =
      decision.verdict != Verdict::failed && !stays_ && (loses_setid(entry) || would_be_anothers(entry, decision));
  return decision;
}

// A dry run: the run that is meant would unlock the directory, and find what cannot be seen now.
bool EntryDecider::Job::is_in_locked(const Decision& decision) {
  return dry() && decision.verdict == Verdict::failed && decision.error_number == EACCES &&
         leads_into_locked(files_, root_.fd, split_path(decision.path).parent, session_.policy_.uid);
}

// With the right to them it would have its set-ID bits, as it gets the owner or group that they are of, and its capabilities. Other
// attributes of security. are labels that the host gives by itself (SELinux has one for every file).
bool EntryDecider::Job::loses_setid(const Entry& entry) {
  const Policy& policy = session_.policy_;
  if (policy.setid) return false;
  if (loses_capabilities(policy, entry)) return true;
  if (!policy.has(session::option_permissions)) return false;
  if (entry.type == EntryType::symlink || entry.type == EntryType::leave) return false;
  if ((entry.mode & mode_setuid) != 0 && (policy.uid == 0 || policy.uid == entry.uid)) return true;
  return (entry.mode & mode_setgid) != 0 && may_give_group(entry.gid);
}

// Modes are kept and owners are not (-A alone): a program that runs with the rights of its owner at the source would run here with
// those of this account, which may be root's. It comes without the bit. A file that is staged is this account's, and its group's.
bool EntryDecider::Job::would_be_anothers(const Entry& entry, const Decision& decision) const {
  const Policy& policy = session_.policy_;
  if (!policy.has(session::option_permissions) || policy.has(session::option_owner)) return false;
  const bool is_new =
      entry.type == EntryType::file && decision.verdict != Verdict::unchanged && decision.verdict != Verdict::change;
  if (!is_new || (decision.task && decision.task->in_place)) return false;
  return ((entry.mode & mode_setuid) != 0 && entry.uid != policy.uid) ||
         ((entry.mode & mode_setgid) != 0 && entry.gid != policy.gid);
}

// A dry run: the directory would be made, or unlocked.
void EntryDecider::Job::decide_in_missing_directory(const Entry& entry, Decision& decision) {
  decision.verdict = Verdict::done;
  decision.error_number = 0;
  const bool is_file = entry.type == EntryType::file;
  if (came_from_earlier_source(decision) || may_not_be_made(entry, decision)) return;
  if (would_become_link(entry, decision)) return;
  const auto older = find_older(entry, decision.path);
  if (older && take_from_older(entry, *older, nullptr, decision)) return;
  decision.verdict = is_file ? Verdict::send : Verdict::make;
  decision.items = items_of_new(done_to(entry), entry, older);
  if (is_file && entry.is_linked) session_.linked_.begin(entry.path, decision.path);
}

// What is done to an entry that is not there, or replaced.
session::Items EntryDecider::Job::done_to(const Entry& entry) const {
  if (entry.type == EntryType::directory) return session::item_made;
  if (entry.type == EntryType::symlink || is_special(entry.type)) return session::item_made | session::item_content;
  const bool by_digest = session_.policy_.has(session::option_checksum);
  return by_digest ? session::item_sent | session::item_content : session::item_sent;
}

void EntryDecider::Job::place(const Entry& entry, uint64_t index, Decision& decision) {
  if (entry.type == EntryType::leave) return decide_leave(index, decision);
  if (decision.path.empty()) {  // the root itself
    if (entry.type == EntryType::directory) {
      ports::FileStat stat;
      const bool there = root_.fd >= 0 && files_.fstat(root_.fd, stat) >= 0;
      const bool is_new = !there || session_.base_made_;
      const bool keeps_own = there && came_from_earlier_source(decision);
      here_ = {root_.fd, "."};
      decision.items =
          is_new ? items_of_new(session::item_made, entry, find_older(entry, decision.path)) : items_of(0, entry, &stat);
      if (dry() && root_.fd < 0) decision.verdict = Verdict::make;
      if (keeps_own) decision.items = 0;
      if (dry() && there && !keeps_own && differs(entry, stat)) decision.verdict = Verdict::change;
      const Attributes attributes = keeps_own ? attributes_of(stat) : attributes_of(entry);
      if (!dry()) session_.open_directories_.enter({decision.path, index, attributes, false, false, 0, false});
    } else {
      fatal_ = Error{ErrorKind::file_io, "the destination is the receiver's root: give the file a name"};
    }
    return;
  }
  if (!session_.left_out_.empty()) {
    if (is_below(decision.path, session_.left_out_)) {
      failed(decision, -ENOTDIR);
      return;
    }
    session_.left_out_.clear();
  }
  if (const int error = open_parent(split_path(decision.path).parent); error < 0) {
    // The directory that it is in comes before it, and takes the place of whatever stands there: a file or a link too.
    const bool would_be_made = dry() && (error == -ENOENT || error == -ENOTDIR || error == -ELOOP);
    if (would_be_made) {
      decide_in_missing_directory(entry, decision);
    } else {
      failed_or_fatal(decision, error);
    }
    return;
  }
  here_ = {parent_->fd(), split_path(decision.path).name};
  switch (entry.type) {
    case EntryType::directory:
      decide_directory(entry, index, decision);
      break;
    case EntryType::symlink:
      decide_symlink(entry, decision);
      break;
    case EntryType::device:
    case EntryType::special:
      decide_special(entry, decision);
      break;
    case EntryType::file:
    case EntryType::leave:
      entry.is_linked ? decide_linked(entry, index, decision) : decide_file(entry, index, decision);
      break;
  }
}

// Of a file or directory that can be opened; what cannot be read is not known to differ.
session::Items EntryDecider::Job::extended_changes(const Entry& entry, const ports::FileStat& stat, Where where) {
  const bool is_directory = stat.type == ports::FileType::directory;
  if (!entry.has_extended || (!is_directory && stat.type != ports::FileType::regular)) return 0;
  const int fd = files_.open(where.directory, where.name, {.directory = is_directory}, 0);
  if (fd < 0) return 0;
  const HeldFile file(files_, fd);
  return extended_differences(files_, fd, session_.policy_, entry.extended);
}

bool EntryDecider::Job::may_give_group(uint32_t gid) {
  if (session_.policy_.uid == 0) return true;
  if (dry()) return files_.has_group(gid);  // nothing is tried
  return root_.given_groups.may_give(files_, root_.staging, root_.temporary_name(), gid);
}

// What the run gives to something that is there and stays, and the size that it has not.
session::Items EntryDecider::Job::changes_of(const Entry& entry, const ports::FileStat& stat, Where where) {
  const Policy& policy = session_.policy_;
  const bool is_link = stat.type == ports::FileType::symlink;
  const bool is_root = policy.uid == 0;
  session::Items items = 0;
  if (entry.type == EntryType::file && entry.size_bytes != stat.size_bytes) items |= session::item_size;
  const bool keeps_time = policy.has(session::option_times) && (entry.type != EntryType::directory || policy.directory_times);
  if (keeps_time && !has_time(entry, stat)) items |= session::item_time;
  if (policy.has(session::option_owner)) {
    if (is_root && stat.uid != entry.uid) items |= session::item_owner;
    if ((is_root || !is_link) && stat.gid != entry.gid && may_give_group(entry.gid)) items |= session::item_group;
  }
  if (is_link) return items;
  items |= extended_changes(entry, stat, where);
  if (!policy.has(session::option_permissions)) return items;
  // Set-ID bits go with the owner that it gets, or has.
  const bool gets_owner = policy.has(session::option_owner);
  const Current later{stat.mode, gets_owner && is_root ? entry.uid : stat.uid, gets_owner ? entry.gid : stat.gid};
  uint32_t mode = wanted_mode(policy, later, attributes_of(entry));
  if ((mode & mode_setgid) != 0 && !may_give_group(entry.gid)) mode &= ~mode_setgid;  // chmod(2) leaves it out
  if (mode != stat.mode) items |= session::item_mode;
  return items;
}

session::Items EntryDecider::Job::items_of(session::Items done, const Entry& entry, const ports::FileStat* there, Where where) {
  if (!session_.policy_.has(session::option_itemize)) return 0;
  if (there == nullptr) return done | session::item_new;
  session::Items items = done | changes_of(entry, *there, where);
  if (!session_.policy_.has(session::option_times) && done != 0) items |= session::item_time;  // that of its writing
  return items;
}

// Whether the run would give something that is there, and stays, another mode, owner or time.
bool EntryDecider::Job::differs(const Entry& entry, const ports::FileStat& stat, Where where) {
  return (changes_of(entry, stat, where) & ~session::item_size) != 0;
}

// The file system may not have been able to keep the time that it was given.
bool EntryDecider::Job::has_time(const Entry& entry, const ports::FileStat& stat) {
  if (stat.mtime == entry.mtime) return true;  // without the names below, which cost more than everything else about a file
  const std::string scratch = dry() ? std::string() : staged_beside_name(path_key(join_path(session_.base_, entry.path)));
  return root_.kept_times.same(files_, stat.device, parent_ ? parent_->fd() : root_.fd, scratch, stat.mtime, entry.mtime);
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
    const Decision& decision = decided.decisions.back();
    // A file whose first name has failed, or stays, before anything of it was looked at: what stands there is not it.
    const bool is_not_it = decision.verdict == Verdict::failed || decision.stays;
    if (is_not_it && entry.is_linked && entry.linked_to.empty()) linked_.fail(entry.path);
    if (earlier_ && entry.type != EntryType::leave && decision.verdict != Verdict::failed) earlier_->add(decision.path);
    if (deletions_ != nullptr) deletions_->note(entry, decision.path);
  }
  decided.fatal = job.look_again();
  return decided;
}

}  // namespace ccixfer::recv
