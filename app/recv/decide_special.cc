// Devices, FIFOs and sockets are placed at once, as symbolic links are.
#include <cerrno>

#include "app/recv/entry_job.h"
#include "app/session/receiver_words.h"

namespace ccixfer::recv {

using session::Entry;
using session::EntryType;
using session::Verdict;

bool is_special(EntryType type) { return type == EntryType::device || type == EntryType::special; }

bool is_same_special(const Entry& entry, const ports::FileStat& stat) {
  return stat.type == ports::FileType::other && stat.special == entry.special && stat.special_device == entry.special_device;
}

bool is_special_of_kind(const Entry& entry, const ports::FileStat& stat) {
  if (stat.type != ports::FileType::other) return false;
  const bool is_device = stat.special == ports::SpecialKind::character || stat.special == ports::SpecialKind::block;
  return is_device == (entry.type == EntryType::device);
}

// Owner before mode, which loses set-ID bits with it, and the time last. 0, -errno or attributes_refused.
int EntryDecider::Job::finish_special(const Entry& entry, std::string_view name) {
  const Policy& policy = session_.policy_;
  ports::FileStat stat;
  if (const int error = files_.stat_at(parent_->fd(), name, stat, false); error < 0) return error;
  int refused = 0;
  Current current{stat.mode, stat.uid, stat.gid};
  bool is_mode_known = true;
  if (policy.has(session::option_owner) && policy.uid == 0 && (stat.uid != entry.uid || stat.gid != entry.gid)) {
    if (files_.set_link_owner_at(parent_->fd(), name, entry.uid, entry.gid) >= 0) {
      is_mode_known = false;  // chown(2) clears set-ID bits
      current.uid = entry.uid;
      current.gid = entry.gid;
    }
  }
  if (policy.has(session::option_permissions)) {
    const uint32_t mode = wanted_mode(policy, current, attributes_of(entry));
    if ((mode != stat.mode || !is_mode_known) && files_.set_mode_at(parent_->fd(), name, mode) < 0) refused = attributes_refused;
  }
  if (policy.has(session::option_times) && stat.mtime != entry.mtime &&
      files_.set_link_mtime_at(parent_->fd(), name, entry.mtime) < 0)
    refused = attributes_refused;
  return refused;
}

// Made in staging: what is made in a directory gets the access control list that the directory gives, as no file of ours does.
// Where another file system is mounted there, it cannot come from staging.
int EntryDecider::Job::make_special(const Entry& entry, std::string_view temporary) {
  const uint32_t mode = entry.mode & 0777u;
  files_.unlink_at(parent_->fd(), temporary, false);
  files_.unlink_at(root_.staging, temporary, false);
  int error = files_.make_special_at(root_.staging, temporary, entry.special, entry.special_device, mode);
  if (error < 0) return error;
  error = files_.rename_at(root_.staging, temporary, parent_->fd(), temporary);
  if (error < 0) files_.unlink_at(root_.staging, temporary, false);
  if (error != -EXDEV) return error;
  return files_.make_special_at(parent_->fd(), temporary, entry.special, entry.special_device, mode);
}

// Under another name first, then renamed: what was there is replaced at once or not at all.
int EntryDecider::Job::place_special(const Entry& entry, const std::string& path) {
  const std::string temporary = staged_beside_name(path_key(path));
  if (const int error = make_special(entry, temporary); error < 0) return error;
  const int finished = finish_special(entry, temporary);
  const int error = finished < 0 ? finished : replace_by(temporary, path);
  if (error < 0) files_.unlink_at(parent_->fd(), temporary, false);
  return error < 0 ? error : finished;
}

// Whatever stands there, and wherever it would be made.
bool EntryDecider::Job::may_not_be_made(const Entry& entry, Decision& decision) {
  const Policy& policy = session_.policy_;
  if (!is_special(entry.type)) return false;
  if (!policy.has(session::option_specials)) {
    failed(decision, -EPERM);
  } else if (!policy.devices) {
    failed(decision, -session::errno_of_no_devices);
  } else if (entry.type == EntryType::device && policy.uid != 0) {  // as rsync does
    decision.verdict = Verdict::left_out;
  } else {
    return false;
  }
  return true;
}

void EntryDecider::Job::decide_special(const Entry& entry, Decision& decision) {
  if (may_not_be_made(entry, decision)) return;
  const std::string_view name = split_path(decision.path).name;
  ports::FileStat stat;
  const int found = files_.stat_at(parent_->fd(), name, stat, false);
  if (found < 0 && found != -ENOENT) {
    failed(decision, found);
    return;
  }
  stays_ = found == 0 && stays(entry, stat);
  if (stays_) return;
  if (found == 0 && is_same_special(entry, stat) && entry.linked_to.empty() && !is_others_too(entry, stat)) {
    decision.items = items_of(0, entry, &stat);
    if (!dry()) decision.attributes_refused = finish_special(entry, name) == attributes_refused;
    if (dry() && differs(entry, stat)) decision.verdict = Verdict::change;
    return;
  }
  const ports::FileStat* const there = found == 0 && is_special_of_kind(entry, stat) ? &stat : nullptr;
  if (is_settled(entry, found, stat, there, decision)) return;
  const int placed = place_special(entry, decision.path);
  if (placed < 0) {
    failed_or_fatal(decision, placed);
    return;
  }
  decision.attributes_refused = placed == attributes_refused;
  directories_.forget(decision.path);
}

}  // namespace ccixfer::recv
