// What becomes of a file: unchanged, wanted whole, or in the pieces that lack.
#include <fmt/format.h>

#include <cerrno>

#include "app/recv/entry_job.h"
#include "app/recv/pieces.h"
#include "app/recv/shared_place.h"
#include "app/session/limits.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

constexpr uint64_t mostly_holes = 16;  // less than the 16th part of it is allocated: more than file systems that compress save

}  // namespace

using session::Entry;
using session::Verdict;

// The look at a name costs a call for each file. Nothing worth keeping stands in a directory that was made for this run; what
// another process puts there meanwhile meets the file at its commit, as it would after a look that came too early.
int EntryDecider::Job::look_for(const std::string& path, std::string_view name, ports::FileStat& stat) {
  if (session_.open_directories_.is_new(split_path(path).parent)) return -ENOENT;
  return files_.stat_at(parent_->fd(), name, stat, false);
}

bool EntryDecider::Job::has_content(const Entry& entry, int parent, std::string_view name, const ports::FileStat& stat) {
  if (!entry.has_digest || stat.size_bytes != entry.size_bytes) return false;
  const int fd = files_.open(parent, name, {}, 0);
  if (fd < 0) return false;
  const HeldFile file(files_, fd);
  const auto digest = digest_of(files_, fd, stat.size_bytes, *session_.owner_);
  return digest.has_value() && *digest == entry.digest;
}

// --ignore-existing and --update: what is there is left as it is, whatever the source has.
bool EntryDecider::Job::stays(const Entry& entry, const ports::FileStat& stat) const {
  if (session_.policy_.has(session::option_ignore_existing)) return true;
  const bool are_files = entry.type == session::EntryType::file && stat.type == ports::FileType::regular;
  return session_.policy_.has(session::option_update) && are_files && entry.size_bytes != size_unknown && entry.mtime < stat.mtime;
}

// A file that stays: an earlier run that was killed may have brought it. It is not read for that, also with --checksum.
bool EntryDecider::Job::is_what_source_has(const Entry& entry, const std::string& path, const ports::FileStat& stat) {
  if (was_delivered(entry, path, stat)) return true;
  const bool is_same = stat.type == ports::FileType::regular && stat.size_bytes == entry.size_bytes &&
                       session_.policy_.has(session::option_times) && has_time(entry, stat);
  return is_same && !differs(entry, stat);
}

bool EntryDecider::Job::is_unchanged(const Entry& entry, int parent, std::string_view name, const ports::FileStat& stat) {
  if (stat.type != ports::FileType::regular || entry.size_bytes == size_unknown) return false;
  if (session_.policy_.has(session::option_checksum)) return has_content(entry, parent, name, stat);
  if (session_.policy_.has(session::option_size_only)) return stat.size_bytes == entry.size_bytes;
  return session_.policy_.has(session::option_times) && stat.size_bytes == entry.size_bytes && has_time(entry, stat);
}

// The content stays; what is asked for of mode, owner, attributes and (under --checksum) mtime is brought up to date. False: it
// cannot be; write it anew.
bool EntryDecider::Job::set_attributes_of_unchanged(const Entry& entry, std::string_view name, const ports::FileStat& stat,
                                                    Decision& decision) {
  Policy policy = session_.policy_;
  if (has_time(entry, stat)) policy.options &= ~uint32_t{session::option_times};
  const Current current{stat.mode, stat.uid, stat.gid};
  Attributes wanted = attributes_of(entry);
  const bool mode_differs = policy.has(session::option_permissions) && wanted_mode(policy, current, wanted) != stat.mode;
  const bool owner_differs = policy.has(session::option_owner) && (stat.uid != entry.uid || stat.gid != entry.gid);
  const bool extended_differ = extended_changes(entry, stat, {parent_->fd(), name}) != 0;
  if (!mode_differs && !owner_differs && !extended_differ && !policy.has(session::option_times)) return true;
  if (dry()) return true;
  const int fd = files_.open(parent_->fd(), name, {}, 0);
  if (fd < 0) return !mode_differs && !policy.has(session::option_times);
  const HeldFile file(files_, fd);
  if (!policy.has(session::option_permissions)) {
    // Without it a file keeps the mode that it has, and its set-ID bits with the owner that stays.
    wanted.mode = stat.mode;
    if (!policy.has(session::option_owner)) {
      wanted.uid = stat.uid;
      wanted.gid = stat.gid;
    }
    policy.options |= session::option_permissions;
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
    if (const int error = stays(entry, stat) ? 0 : make_room(decision.path, name); error < 0) {
      failed(decision, error == -ENOTEMPTY ? -EISDIR : error);
      return;
    }
  }
  stays_ = found == 0 && stays(entry, stat);
  if (stays_) {
    is_sources_ = is_what_source_has(entry, decision.path, stat);
    decision.verdict = Verdict::unchanged;
    return;
  }
  if (entry.size_bytes > file_bytes_max && entry.size_bytes != size_unknown) {
    failed(decision, -EOVERFLOW);
    return;
  }
  const bool replaces_file = found == 0 && stat.type == ports::FileType::regular;
  const auto older = entry.size_bytes != size_unknown ? find_older(entry, decision.path) : std::nullopt;
  if (older && take_from_older(entry, *older, found == 0 ? &stat : nullptr, decision)) return;
  claim_.reset();
  const bool is_there = found == 0 && (is_unchanged(entry, parent_->fd(), name, stat) || was_delivered(entry, decision.path, stat));
  if (is_there) {
    decision.items = items_of(0, entry, &stat);
    if (!is_others_too(entry, stat) && set_attributes_of_unchanged(entry, name, stat, decision)) {
      decision.verdict = dry() && differs(entry, stat) ? Verdict::change : Verdict::unchanged;
      return;
    }
  }
  decision.items = replaces_file ? items_of(done_to(entry), entry, &stat) : items_of_new(done_to(entry), entry, older);
  decision.verdict = Verdict::send;
  if (would_fail(found == 0 ? &stat : nullptr, decision) || dry()) return;
  // A link of an older tree, or a file that is to be kept, is never written to, whatever the options say. Nor is a program that
  // runs with the rights of its owner, by who may not make one.
  const bool has_rights = (stat.mode & (mode_setuid | mode_setgid)) == 0 || session_.policy_.setid;
  const bool in_place = replaces_file && has_rights && session_.policy_.has(session::option_inplace) &&
                        session_.older_ == nullptr && session_.backups_ == nullptr;
  begin_task(entry, index, in_place ? &stat : nullptr, decision);
  if (!decision.task) return;
  const FileTask& task = *decision.task;
  resume(task, decision);
  if (replaces_file) {
    compare_with(task, std::make_shared<OlderFile>(root_, session_.directories_, decision.path, stat.size_bytes), stat, decision);
  } else if (older) {
    const OlderTrees::Candidate& found_older = older->candidate;
    compare_with(
        task,
        std::make_shared<OlderFile>(root_, session_.directories_, found_older.top, found_older.path, found_older.stat.size_bytes),
        found_older.stat, decision);
  }
}

void EntryDecider::Job::begin_task(const Entry& entry, uint64_t index, const ports::FileStat* in_place, Decision& decision) {
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
  task->items = decision.items;
  task->linked_to = decision.target;
  task->has_digest = entry.has_digest;
  task->digest = entry.digest;
  task->in_place = in_place != nullptr;
  if (in_place != nullptr) {
    task->device = in_place->device;
    task->inode = in_place->inode;
  }
  task->sparse = session_.policy_.has(session::option_sparse);
  task->first_name = leads_;
  if (!leads_.empty()) task->path_of_first = join_path(session_.base_, leads_);
  decision.task = std::move(task);
}

// A file that travels in pieces need not come whole where its older version has some of them. One that has mostly holes has little
// to offer, and both ends would read the holes to compare them: data and holes are told apart without that.
void EntryDecider::Job::compare_with(const FileTask& task, std::shared_ptr<OlderFile> older, const ports::FileStat& stat,
                                     Decision& decision) {
  if (session_.policy_.has(session::option_whole_file) || task.size_bytes == size_unknown) return;
  if (task.size_bytes <= session::piece_bytes || !older->may_have(task.size_bytes, 0)) return;
  if (stat.allocated_bytes < stat.size_bytes / mostly_holes) return;
  if (decision.verdict == Verdict::send) {
    decision.wants = {{0, piece_count(task.size_bytes)}};
  } else if (decision.wants.empty()) {
    return;
  }
  decision.verdict = Verdict::compare;
  decision.older = std::move(older);
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

// What an earlier run left: pieces of this version, read back; other versions of the path go. In place nothing staged is of use.
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
    const bool verify = session_.policy_.has(session::option_verify);
    if (task.size_bytes != size_unknown && !task.in_place) decision.present = read_back(root_, task, *session_.owner_, verify);
    if (decision.present.empty()) stale.push_back(task.ledger_file());
  }
  for (const Ledger::File& file : stale) remove_staged(root_, staged_name(file.key, file.version));
  if (const auto removed = root_.ledger->remove(stale); !removed) {
    fatal_ = removed.error();
    return;
  }
  if (decision.present.empty()) return;
  decision.verdict = Verdict::pieces;
  decision.wants = missing_ranges(decision.present, piece_count(task.size_bytes));
}

}  // namespace ccixfer::recv
