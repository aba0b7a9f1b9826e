// Symbolic links are placed at once: they have no data.
#include <cerrno>

#include "app/recv/entry_job.h"

namespace ccixfer::recv {

using session::Entry;
using session::Verdict;

// `stat`: of one that was there. In a setgid directory a new one has the directory's group.
void EntryDecider::Job::finish_symlink(const Entry& entry, std::string_view name, const ports::FileStat* stat) {
  const Policy& policy = session_.policy_;
  const bool has_owner = stat != nullptr && stat->uid == entry.uid && stat->gid == entry.gid;
  const bool has_time = stat != nullptr && stat->mtime == entry.mtime;
  if (policy.has(session::option_owner) && policy.uid == 0 && !has_owner)
    files_.set_link_owner_at(parent_->fd(), name, entry.uid, entry.gid);
  if (policy.has(session::option_times) && !has_time) files_.set_link_mtime_at(parent_->fd(), name, entry.mtime);
}

// Under another name first, then renamed: a link that was there is replaced at once or not at all.
int EntryDecider::Job::place_symlink(const Entry& entry, const std::string& path) {
  const std::string temporary = staged_beside_name(path_key(path));
  files_.unlink_at(parent_->fd(), temporary, false);
  if (const int error = files_.symlink_at(entry.target, parent_->fd(), temporary); error < 0) return error;
  finish_symlink(entry, temporary, nullptr);
  const int error = replace_by(temporary, path);
  if (error < 0) files_.unlink_at(parent_->fd(), temporary, false);
  return error;
}

// What has no content is placed at once: all that comes before that, for symbolic links and specials. True: there is nothing to
// place, as it became a link to something like it, or failed, or the run is a dry one. `there`: `stat`, where that is of its kind.
bool EntryDecider::Job::is_settled(const Entry& entry, int found, const ports::FileStat& stat, const ports::FileStat* there,
                                   Decision& decision) {
  if (!dry() && !claim(decision.path)) {
    failed(decision, -EBUSY);
    return true;
  }
  if (found == 0 && stat.type == ports::FileType::directory) {
    if (const int error = make_room(decision.path, split_path(decision.path).name); error < 0) {
      failed(decision, error);
      return true;
    }
  }
  if (link_at_once(entry, there, found < 0, decision)) {
    if (!dry()) directories_.forget(decision.path);
    return true;
  }
  const auto older = found == -ENOENT ? find_older(entry, decision.path) : std::nullopt;
  if (older && take_from_older(entry, *older, nullptr, decision)) return true;
  decision.items = there != nullptr ? items_of(done_to(entry), entry, there) : items_of_new(done_to(entry), entry, older);
  if (!dry()) return false;
  if (!would_fail(found == 0 ? &stat : nullptr, decision)) decision.verdict = Verdict::make;
  return true;
}

void EntryDecider::Job::decide_symlink(const Entry& entry, Decision& decision) {
  const std::string_view name = split_path(decision.path).name;
  ports::FileStat stat;
  const int found = files_.stat_at(parent_->fd(), name, stat, false);
  if (found < 0 && found != -ENOENT) {
    failed(decision, found);
    return;
  }
  const bool was_link = found == 0 && stat.type == ports::FileType::symlink;
  std::string target;
  const bool is_same = was_link && files_.readlink_at(parent_->fd(), name, target) >= 0 && target == entry.target;
  stays_ = found == 0 && stays(entry, stat);
  is_sources_ = is_same;
  if (stays_) return;
  if (is_same && entry.linked_to.empty() && !is_others_too(entry, stat)) {
    decision.items = items_of(0, entry, &stat);
    if (!dry()) finish_symlink(entry, name, &stat);
    if (dry() && differs(entry, stat)) decision.verdict = Verdict::change;
    return;
  }
  if (is_settled(entry, found, stat, was_link ? &stat : nullptr, decision)) return;
  if (const int error = place_symlink(entry, decision.path); error < 0) {
    failed_or_fatal(decision, error);
    return;
  }
  directories_.forget(decision.path);
}

}  // namespace ccixfer::recv
