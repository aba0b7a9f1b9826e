// What the older trees of --link-dest have like an entry, and the hard links that are made of it.
#include <cerrno>

#include "app/recv/entry_job.h"

namespace ccixfer::recv {

using session::Entry;
using session::EntryType;
using session::Verdict;

namespace {

bool is_of_type(const Entry& entry, const ports::FileStat& stat) {
  switch (entry.type) {
    case EntryType::file:
      return stat.type == ports::FileType::regular;
    case EntryType::directory:
      return stat.type == ports::FileType::directory;
    case EntryType::symlink:
      return stat.type == ports::FileType::symlink;
    case EntryType::device:
    case EntryType::special:
      return is_special_of_kind(entry, stat);
    case EntryType::leave:
      return false;
  }
  return false;
}

}  // namespace

std::optional<Likeness> EntryDecider::Job::likeness(const Entry& entry, const OlderTrees::Candidate& candidate) {
  if (!is_of_type(entry, candidate.stat)) return std::nullopt;
  bool has_same = true;
  if (entry.type == EntryType::file) {
    has_same = is_unchanged(entry, candidate.directory->fd(), candidate.name, candidate.stat);
  } else if (entry.type == EntryType::symlink) {
    std::string target;
    has_same = files_.readlink_at(candidate.directory->fd(), candidate.name, target) >= 0 && target == entry.target;
  }
  if (is_special(entry.type)) has_same = is_same_special(entry, candidate.stat);
  if (!has_same) return Likeness::kind;
  return differs(entry, candidate.stat, {candidate.directory->fd(), candidate.name}) ? Likeness::content : Likeness::all;
}

std::optional<OlderTrees::Match> EntryDecider::Job::find_older(const Entry& entry, const std::string& path) {
  if (session_.older_ == nullptr) return std::nullopt;
  return session_.older_->find(below_base(path, session_.base_, entry.type == EntryType::directory),
                               [&](const OlderTrees::Candidate& candidate) { return likeness(entry, candidate); });
}

// As rsync tells them: of what an older tree has too only the differences, and of a directory that is like the older one nothing.
session::Items EntryDecider::Job::items_of_new(session::Items done, const Entry& entry,
                                               const std::optional<OlderTrees::Match>& older) {
  if (!older) return items_of(done, entry, nullptr);
  if (older->likeness == Likeness::all && entry.type == EntryType::directory) return done;
  if (older->likeness >= Likeness::content && entry.type == EntryType::file)
    done &= static_cast<session::Items>(~session::item_content);
  return items_of(done, entry, &older->candidate.stat, {older->candidate.directory->fd(), older->candidate.name});
}

// True: the older tree's file or link is the new one's too. `there`: what stands at the path.
bool EntryDecider::Job::take_from_older(const Entry& entry, const OlderTrees::Match& older, const ports::FileStat* there,
                                        Decision& decision) {
  if (older.likeness != Likeness::all) return false;
  const ports::FileStat& stat = older.candidate.stat;
  if (there != nullptr && there->device == stat.device && there->inode == stat.inode) return false;  // it was linked before
  if (!dry() && !claim(decision.path)) return false;                                                 // whoever comes next is told
  if (!dry() && link_name(older.candidate.directory->fd(), older.candidate.name, decision.path, there == nullptr) < 0) return false;
  decision.verdict = entry.type == EntryType::file ? Verdict::unchanged : dry() ? Verdict::make : Verdict::done;
  decision.items = session::item_made | session::item_linked;
  return true;
}

// It has another name, which may be in an older tree, and would get other attributes: that name would get them too. The new one is
// written anew.
bool EntryDecider::Job::is_others_too(const Entry& entry, const ports::FileStat& stat) {
  return session_.older_ != nullptr && stat.links > 1 && differs(entry, stat);
}

// In place of whatever is no directory with content. 0, or -errno: then the entry comes from the source.
int EntryDecider::Job::link_name(int from_directory, std::string_view from, const std::string& path, bool is_new) {
  const std::string_view name = split_path(path).name;
  if (is_new) {
    const int error = files_.link_at(from_directory, from, parent_->fd(), name);
    if (error != -EEXIST) return error;
  }
  const std::string temporary = staged_beside_name(path_key(path));
  files_.unlink_at(parent_->fd(), temporary, false);
  if (const int error = files_.link_at(from_directory, from, parent_->fd(), temporary); error < 0) return error;
  const int error = replace_by(temporary, path);
  files_.unlink_at(parent_->fd(), temporary, false);  // also when it and the name were one file: then rename(2) leaves both
  if (error >= 0) directories_.forget(path);
  return error;
}

}  // namespace ccixfer::recv
