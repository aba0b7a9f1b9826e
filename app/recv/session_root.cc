#include "app/recv/session_root.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "app/recv/shared_place.h"
#include "app/session/segment.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

constexpr size_t staged_files_most = 4096;  // more would only make the batches of commits longer

}  // namespace

SessionRoot::SessionRoot(Root& root, uint32_t options, const Deliveries::Transfer& transfer, const Limits& limits,
                         const std::string& peer, const Aside& aside, session::TweaksRef tweaks)
    : opened_(root.renew()),
      root_(root.opened()),
      directories_(root_->files, root_->fd, root_->staging_identity, root_->held_directories),
      policy_{options, root_->umask, root_->uid, root_->gid, limits.setid, aside.keeps_directory_times(), limits.devices},
      aside_(aside),
      tweaks_(std::move(tweaks)) {
  root_->sessions.fetch_add(1);
  owner_->transfer = transfer;
  owner_->peer = peer;
}

SessionRoot::~SessionRoot() {
  if (root_->sessions.fetch_sub(1) == 1) root_->disk->forget_others();
  root_->claims.release_all(owner_);
  if (has_staged_) root_->may_have_unrecorded.store(true);
}

size_t SessionRoot::staged_files_max() const {
  const size_t all = std::min<size_t>(root_->files.descriptors_max() / 4, staged_files_most);
  return std::max<size_t>(all / std::max<uint32_t>(root_->sessions.load(), 1), 1);
}

Result<void> SessionRoot::begin(const std::string& path, const std::optional<Asked>& asked,
                                std::shared_ptr<session::KeptNames> kept, bool is_new) {
  auto base = normalise_path(path);
  if (!base) return tl::unexpected<Error>(base.error());
  base_ = *base;
  if (!aside_.older.empty()) older_ = std::make_unique<OlderTrees>(*root_, aside_.older);
  if (aside_.backup) backups_ = std::make_unique<Backups>(*root_, policy_, *aside_.backup, *base, *owner_, std::move(kept));
  decider_ = std::make_unique<EntryDecider>(*root_, directories_, policy_, std::move(*base), owner_, linked_);
  decider_->set_aside(older_.get(), backups_.get());
  if (is_new) decider_->set_base_made();
  if (asked) decider_->set_earlier(asked->earlier);
  if (asked) asked_.emplace(*asked);
  return {};
}

void SessionRoot::begin_deletions(const DeleteWish& wish, uint64_t already) {
  const bool has_place = aside_.backup && aside_.backup->directory && !aside_.backup->directory->outside;
  deletions_ = std::make_unique<Deletions>(*root_, directories_, policy_, *owner_, backups_.get(), wish, base_,
                                           has_place ? aside_.backup->directory->path : std::string(), already);
  decider_->set_deletions(deletions_.get());
}

std::shared_ptr<StagedFile> SessionRoot::make_staged(const FileTask& task, bool resumed) {
  has_staged_ = true;
  return std::make_shared<StagedFile>(*root_, task, resumed, &directories_, owner_.get());
}

JudgedSegment SessionRoot::judge(MutableBytes segment, const session::SegmentHeader& header, const session::DataOpener* opener,
                                 uint64_t first_index) {
  JudgedSegment judged;
  if (!session::open_data(segment, header, opener)) {
    judged.is_damaged = true;
    return judged;
  }
  if (header.index != first_index) {
    judged.decisions = fail(ErrorKind::protocol, "entries out of order");
    return judged;
  }
  auto entries = session::decode_entries(segment.first(header.data_bytes), header.count);
  if (!entries) {
    judged.decisions = tl::unexpected<Error>(entries.error());
    // A name that leaves the root: one who pushes is told that he may not; one whom we asked lies.
    if (asked_) judged.decisions = fail(ErrorKind::protocol, entries.error().message);
    return judged;
  }
  if (asked_) {
    if (const auto may = asked_->judge(*entries); !may) {
      judged.decisions = tl::unexpected<Error>(may.error());
      return judged;
    }
  }
  const bool maps_owners = policy_.has(session::option_owner) && !policy_.has(session::option_numeric_ids);
  if (maps_owners) {
    if (auto error = owner_names_.map(root_->files, *entries)) {
      judged.decisions = tl::unexpected<Error>(std::move(*error));
      return judged;
    }
  }
  for (session::Entry& entry : *entries) {
    if (tweaks_) session::apply(*tweaks_, entry);
  }
  DecidedEntries decided = decider_->decide(*entries, first_index);
  if (older_) judged.warning = older_->take_warning();
  if (decided.fatal) {
    judged.decisions = tl::unexpected<Error>(std::move(*decided.fatal));
  } else {
    judged.decisions = std::move(decided.decisions);
  }
  return judged;
}

void SessionRoot::stage(std::vector<PackItem>& items) const { stage_pack(*root_, policy_, *owner_, items); }

std::optional<Error> SessionRoot::sync(std::vector<SyncFile>& batch) const {
  return sync_pieces(*root_, *owner_, batch, policy_.has(session::option_verify));
}

void SessionRoot::commit(std::vector<CommitItem>& batch) {
  commit_batch(*root_, directories_, policy_, *owner_, batch, backups_.get());
}

std::vector<LeaveOutcome> SessionRoot::apply(const std::vector<Leave>& leaves) {
  return apply_leaves(*root_, directories_, policy_, *owner_, leaves, backups_.get());
}

void SessionRoot::remove_staged(const std::vector<std::string>& names) const {
  for (const std::string& name : names) root_->files.unlink_at(root_->staging, name, false);
}

int SessionRoot::share(StagedFile& staged, const session::SharedPlace& place) const {
  HeldFileRef file;
  const int error = staged.open(file);
  return error < 0 ? error : root_->judged(make_share(root_->files, root_->staging, place));
}
void SessionRoot::discard(const FileTask& task, StagedFile& staged) const {
  staged.remove();
  const auto removed = root_->ledger->remove({task.ledger_file()});
  if (!removed) log(LogLevel::warning, "{}", removed.error().message);
}

void SessionRoot::describe(std::vector<ReceiptItem>& items) const {
  for (ReceiptItem& item : items) {
    receipt::Subject subject;
    subject.type = item.type;
    subject.directory = root_->fd;
    subject.below = item.path;
    subject.step = [this] { owner_->step(); };
    if (item.path.empty()) continue;  // the root itself
    if (item.mode) {
      item.entry.type = item.type;
      item.entry.mode = *item.mode;
    }
    item.is_there = item.mode || receipt::describe(root_->files, subject, item.entry);
    if (item.path != base_) {
      item.entry.path = base_.empty() ? item.path : item.path.substr(base_.size() + 1);
    } else if (item.type != receipt::EntryType::directory) {
      item.entry.path = split_path(item.path).name;
    }
  }
}

std::optional<Error> SessionRoot::sync_all() {
  if (policy_.has(session::option_dry_run)) return std::nullopt;
  if (policy_.has(session::option_directory)) {  // DEST is made, also when nothing came into it
    if (auto problem = decider_->decide({}, 0).fatal) return problem;
  }
  if (const int error = root_->disk->sync_names(); error < 0) {
    const ErrorKind kind = is_no_space(-error) ? ErrorKind::no_space : ErrorKind::file_io;
    return Error{kind, fmt::format("cannot sync {}: {}", printable(root_->path), describe_errno(-error))};
  }
  // The look comes after the sync, so that whatever an administrator did before the sync is seen.
  if (root_->check() < 0) return fatal_error(ESTALE, root_->path);
  std::string path;
  if (const int error = directories_.look_at_all(path); error < 0) return fatal_error(-error, path);
  return std::nullopt;
}

void SessionRoot::forget_deliveries() const { root_->deliveries->forget(owner_->transfer, decider_->taken_over()); }

}  // namespace ccixfer::recv
