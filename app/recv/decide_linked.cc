// Further names of a file that was listed before (--hard-links).
#include <cerrno>

#include "app/recv/entry_job.h"

namespace ccixfer::recv {

using session::Entry;
using session::Verdict;

namespace {

constexpr session::Items done_to_further_name = session::item_made | session::item_linked | session::item_named;

const std::string& first_name_of(const Entry& entry) { return entry.linked_to.empty() ? entry.path : entry.linked_to; }

}  // namespace

std::string EntryDecider::Job::path_of_first(const Entry& entry, const LinkedNames::Found& found) const {
  return found.path.empty() ? join_path(session_.base_, entry.linked_to) : found.path;
}

// 0 and its status; -errno: no such thing stands there as this entry is.
int EntryDecider::Job::look_at_first(const std::string& path, HeldDirectoryRef& directory, ports::FileStat& stat) {
  if (is_reserved_path(path)) return -EPERM;
  const SplitPath split = split_path(path);
  if (const int error = directories_.open(split.parent, directory); error < 0) return error;
  return files_.stat_at(directory->fd(), split.name, stat, false);
}

// A name of a file that has several: the first one leads, and further ones become links to it.
void EntryDecider::Job::decide_linked(const Entry& entry, uint64_t index, Decision& decision) {
  const std::string& first = first_name_of(entry);
  const bool is_first = entry.linked_to.empty();
  if (!is_first && becomes_link(entry, index, decision)) return;
  leads_ = first;
  decide_file(entry, index, decision);
  leads_.clear();
  note_leader(entry, decision);
}

void EntryDecider::Job::note_leader(const Entry& entry, const Decision& decision) {
  const std::string& first = first_name_of(entry);
  if (decision.verdict == Verdict::failed || stays_) {
    session_.linked_.fail(first);
  } else if (decision.task || decision.verdict == Verdict::send) {
    session_.linked_.begin(first, decision.path);
  } else {
    session_.linked_.place(first, decision.path, entry.linked_to.empty());
  }
}

// False: it is to be decided like a file of its own, and leads.
bool EntryDecider::Job::becomes_link(const Entry& entry, uint64_t index, Decision& decision) {
  const LinkedNames::Found leader = session_.linked_.find(entry.linked_to);
  if (leader.state == LinkedNames::State::failed || is_reserved_path(entry.linked_to)) return false;
  const std::string_view name = split_path(decision.path).name;
  ports::FileStat stat, leader_stat;
  const int found = look_for(decision.path, name, stat);
  if (found < 0 && found != -ENOENT) {
    failed(decision, found);
    return true;
  }
  stays_ = found == 0 && session_.policy_.has(session::option_ignore_existing);
  if (stays_) {
    is_sources_ = is_what_source_has(entry, decision.path, stat);
    decision.verdict = Verdict::unchanged;
    return true;
  }
  if (found == 0 && stat.type == ports::FileType::directory) {
    if (const int error = make_room(decision.path, name); error < 0) {
      failed(decision, error == -ENOTEMPTY ? -EISDIR : error);
      return true;
    }
  }
  HeldDirectoryRef directory;
  bool is_old_link = false;  // of an older tree, which is no news
  if (leader.state == LinkedNames::State::placed) {
    const int looked = look_at_first(path_of_first(entry, leader), directory, leader_stat);
    const bool is_it = looked == 0 && leader_stat.type == ports::FileType::regular && leader_stat.size_bytes == entry.size_bytes;
    if (!is_it && !(dry() && looked < 0)) return false;
    const auto is_leader = [&](const ports::FileStat& other) {
      return looked == 0 && other.device == leader_stat.device && other.inode == leader_stat.inode;
    };
    if (found == 0 && is_leader(stat)) {
      decision.verdict = Verdict::unchanged;
      return true;
    }
    const auto older = found == -ENOENT ? find_older(entry, decision.path) : std::nullopt;
    is_old_link = older && older->likeness == Likeness::all && (looked < 0 || is_leader(older->candidate.stat));
  }
  const bool replaces_file = found == 0 && stat.type == ports::FileType::regular;
  decision.items = is_old_link ? session::item_made | session::item_linked
                               : items_of(done_to_further_name, entry, replaces_file ? &stat : nullptr);
  if (session_.policy_.has(session::option_itemize)) decision.target = entry.linked_to;
  if (dry()) {
    if (!would_fail(found == 0 ? &stat : nullptr, decision)) decision.verdict = Verdict::make;
    return true;
  }
  leads_ = entry.linked_to;
  begin_task(entry, index, nullptr, decision);
  leads_.clear();
  if (decision.verdict != Verdict::failed) decision.verdict = Verdict::link;
  return true;
}

// In a directory that a dry run has not made.
bool EntryDecider::Job::would_become_link(const Entry& entry, Decision& decision) {
  if (entry.linked_to.empty() || session_.linked_.find(entry.linked_to).state == LinkedNames::State::failed) return false;
  decision.verdict = Verdict::make;
  decision.items = items_of(done_to_further_name, entry, nullptr);
  if (session_.policy_.has(session::option_itemize)) decision.target = entry.linked_to;
  return true;
}

// A further name of something without content, which is placed at once. False: it is placed like one of its own. `there`: of its
// own kind, else nullptr.
bool EntryDecider::Job::link_at_once(const Entry& entry, const ports::FileStat* there, bool is_new, Decision& decision) {
  if (entry.linked_to.empty()) return false;
  const std::string path = join_path(session_.base_, entry.linked_to);
  HeldDirectoryRef directory;
  ports::FileStat leader;
  const int looked = look_at_first(path, directory, leader);
  if (looked < 0 && !dry()) return false;
  if (looked == 0 && !is_first_like(entry, *directory, split_path(path).name, leader)) return false;
  if (looked == 0 && there != nullptr && there->device == leader.device && there->inode == leader.inode) return true;
  if (!dry() && link_name(directory->fd(), split_path(path).name, decision.path, is_new) < 0) return false;
  decision.verdict = dry() ? Verdict::make : Verdict::done;
  decision.items = items_of(done_to_further_name, entry, there);
  if (session_.policy_.has(session::option_itemize)) decision.target = entry.linked_to;
  return true;
}

bool EntryDecider::Job::is_first_like(const Entry& entry, const HeldDirectory& directory, std::string_view name,
                                      const ports::FileStat& stat) {
  std::string target;
  if (is_special(entry.type)) return is_same_special(entry, stat);
  return entry.type == session::EntryType::symlink && stat.type == ports::FileType::symlink &&
         files_.readlink_at(directory.fd(), name, target) >= 0 && target == entry.target;
}

}  // namespace ccixfer::recv
