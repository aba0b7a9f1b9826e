// From written to durable to done: syncs, commits, directories' own modes and times, the results and the end.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "app/recv/machine.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::TransferRecord;

void Destination::Impl::pump_sync() {
  if (dirty_since == never && !dirty.empty()) dirty_since = now;  // what was written since the last turn
  if (sync_running || dirty.empty()) return;
  const bool is_due = error || bye || dirty_bytes >= sync_bytes_max || now >= dirty_since + sync_interval;
  if (!is_due) return;
  auto batch = std::make_shared<std::vector<SyncFile>>();
  for (const uint64_t index : dirty) {
    FileState* file = find(index);
    if (file == nullptr) continue;
    file->pieces->listed = false;
    const bool is_worthless = file->doom && file->doom->discard;
    if (file->committing || is_worthless || file->pieces->unsynced.empty()) continue;
    SyncFile sync;
    sync.task = file->task;
    sync.staged = file->pieces->staged;
    for (const uint64_t piece : file->pieces->unsynced) sync.pieces.push_back({piece, file->pieces->table.hash(piece)});
    sync.let_go = file->jobs == 0;
    file->pieces->unsynced.clear();
    ++file->jobs;
    batch->push_back(std::move(sync));
  }
  dirty.clear();
  dirty_bytes = 0;
  dirty_since = never;
  if (batch->empty()) return;
  sync_running = true;
  auto failure = std::make_shared<std::optional<Error>>();
  submit([batch, failure, shared_root = &root, holder = owner] { *failure = sync_pieces(*shared_root, *holder, *batch); },
         [this, batch, failure] { synced(*batch, *failure); });
}

void Destination::Impl::synced(const std::vector<SyncFile>& batch, const std::optional<Error>& failure) {
  sync_running = false;
  progress = progress || !failure;
  if (failure) end_with(*failure, true);
  for (const SyncFile& sync : batch) {
    FileState& file = *find(sync.task->index);
    --file.jobs;
    Pieces& pieces = *file.pieces;
    if (sync.error_number != 0) {
      // What was written while the sync ran was dropped with the rest, and the next sync would say that it is durable.
      for (const Ledger::Piece& piece : sync.pieces) pieces.unsynced.push_back(piece.number);
      const std::vector<uint64_t> lost = lose_unsynced(pieces);
      if (is_fatal(sync.error_number)) {
        end_with(fatal_error(sync.error_number, file.task->path), true);
      } else if (!file.doom) {
        io_failed(file, sync.error_number, lost);
      }
    } else if (!failure) {
      for (const Ledger::Piece& piece : sync.pieces) {
        pieces.table.set_state(piece.number, PieceState::durable);
        // A file of unknown length counts when it is committed.
        if (file.task->size_bytes == size_unknown) continue;
        count_durable(file, piece_length(file.task->size_bytes, piece.number));
      }
    }
    go_on_with(sync.task->index);
  }
}

// After a job of a file: with the failure of its second write or sync it may have ended, and is no more.
void Destination::Impl::go_on_with(uint64_t index) {
  FileState* file = find(index);
  if (file == nullptr) return;
  if (file->doom) {
    settle(*file);
  } else {
    try_complete(*file);
  }
}

// All pieces are here and the source vouches for the file: it goes to the committer, which makes durable what is not yet.
void Destination::Impl::try_complete(FileState& file) {
  if (error || !file.end || file.doom || file.jobs > 0 || file.committing || file.by_pack) return;
  const uint64_t size_bytes = file.size_bytes();
  const uint64_t count = piece_count(size_bytes);
  if (!file.pieces) {
    if (count > 0) return;
    file.pieces = std::make_unique<Pieces>();
    file.pieces->staged = std::make_shared<StagedFile>(root, *file.task, false);
  }
  const PieceTable& table = file.pieces->table;
  if (table.end() > count) {
    doom(file, {ErrorKind::vanished, 0, true, "it is shorter than what was sent of it"});
    return;
  }
  if (table.written() < count) return;
  if (file.end->has_digest || file.task->has_digest) {
    const Hash128 digest = table.digest(count);
    const bool differs =
        (file.end->has_digest && digest != file.end->digest) || (file.task->has_digest && digest != file.task->digest);
    if (differs) {
      doom(file, {ErrorKind::integrity, 0, true, "its content is not what its digest says"});
      return;
    }
  }
  file.committing = true;
  ++file.jobs;
  CommitItem item;
  item.task = file.task;
  item.file = file.pieces->staged;
  item.staged = item.file->name();
  item.size_bytes = size_bytes;
  commit_queue.push_back(std::move(item));
  wake = true;
}

void Destination::Impl::pump_commit() {
  if (commit_running || commit_queue.empty()) return;
  if (error) {
    for (CommitItem& item : commit_queue) {
      if (!item.file) {
        cleanup.push_back(std::move(item.staged));
        continue;
      }
      // Stays staged for the next run: its pieces go to the ledger with the last sync.
      FileState& file = *find(item.task->index);
      --file.jobs;
      file.committing = false;
      if (!file.pieces->unsynced.empty()) list_dirty(file);
    }
    commit_queue.clear();
    wake = true;
    return;
  }
  auto batch = std::make_shared<std::vector<CommitItem>>(std::move(commit_queue));
  commit_queue.clear();
  commit_running = true;
  submit([batch, shared_root = &root, known = &directories, rules = policy,
          holder = owner] { commit_batch(*shared_root, *known, rules, *holder, *batch); },
         [this, batch] { committed(*batch); });
}

void Destination::Impl::committed(std::vector<CommitItem>& batch) {
  commit_running = false;
  for (CommitItem& item : batch) {
    FileState& file = *find(item.task->index);
    if (item.file) --file.jobs;
    file.committing = false;
    file.by_pack = false;
    if (item.outcome == CommitOutcome::ok) {
      if (item.attributes_refused) ++totals.attributes_refused;
      uint64_t newly_durable = item.size_bytes;
      if (file.pieces && file.task->size_bytes != size_unknown) {
        newly_durable = 0;
        for (const uint64_t piece : file.pieces->unsynced) newly_durable += piece_length(item.size_bytes, piece);
      }
      count_durable(file, newly_durable);
      if (file.task->size_bytes == size_unknown) totals.bytes_total += item.size_bytes;
      end_file(item.task->index, std::nullopt, item.size_bytes);
    } else if (is_fatal(item.error_number)) {
      if (file.pieces && !file.pieces->unsynced.empty()) list_dirty(file);  // its pieces go to the ledger with the last sync
      end_with(fatal_error(item.error_number, item.task->path), true);
    } else if (item.error_number == EIO && item.outcome == CommitOutcome::failed) {
      disk_fails(file);
    } else if (item.outcome == CommitOutcome::failed) {
      // Its content is whole and may be wanted once what is in the way is gone (an immutable file, a full directory).
      doom(file, {ErrorKind::file_io, item.error_number, false, describe_errno(item.error_number)});
    } else {
      std::vector<uint64_t> lost;
      if (file.pieces) lost = lose_unsynced(*file.pieces);
      if (file.pieces && lost.empty()) {
        doom(file, {ErrorKind::file_io, item.error_number, false, describe_errno(item.error_number)});
      } else {
        io_failed(file, item.error_number, lost);
      }
    }
  }
}

void Destination::Impl::list_dirty(FileState& file) {
  if (file.pieces->listed) return;
  file.pieces->listed = true;
  dirty.push_back(file.task->index);
}

// After a failed sync: the kernel may have dropped any byte that is not durable, and calls it clean.
std::vector<uint64_t> Destination::Impl::lose_unsynced(Pieces& pieces) {
  ++pieces.losses;
  std::vector<uint64_t> lost = std::exchange(pieces.unsynced, {});
  for (const uint64_t piece : lost) pieces.table.set_state(piece, PieceState::absent);
  return lost;
}

// A write or a sync of this file failed: once it is asked for again, never simply synced again.
void Destination::Impl::io_failed(FileState& file, int error_number, const std::vector<uint64_t>& lost_pieces) {
  if (error) return;
  if (++file.io_failures > io_failures_max) {
    if (error_number == EIO) return disk_fails(file);
    doom(file, {ErrorKind::file_io, error_number, false, describe_errno(error_number)});
    return;
  }
  observer.on_warning(fmt::format("{}: {}: asked for again", printable(file.task->path), describe_errno(error_number)));
  if (!file.pieces) {
    resend(file, session::Resend::whole);
    return;
  }
  for (const uint64_t piece : lost_pieces) resend(file, piece);
}

// Not this file's fault, and the next one would fare no better.
void Destination::Impl::disk_fails(const FileState& file) {
  end_with({ErrorKind::file_io, fmt::format("the receiver's disk fails: {}", fatal_error(EIO, file.task->path).message)}, true);
}

void Destination::Impl::doom(FileState& file, Doom why) {
  if (file.doom) return;
  file.doom = std::move(why);
  settle(file);
}

// A doomed file ends when no job holds it any more, and after what is staged of it is gone, or kept for the next run.
void Destination::Impl::settle(FileState& file) {
  if (!file.doom || file.jobs > 0 || error) return;
  if (!file.doom->discard && file.pieces && !file.pieces->unsynced.empty()) return list_dirty(file);  // synced() comes back here
  if (!file.pieces || !file.doom->discard) {
    end_file(file.task->index, Doom(*file.doom));
    return;
  }
  ++file.jobs;
  submit(
      [task = file.task, staged = file.pieces->staged, shared_root = &root] {
        staged->remove();
        const auto removed = shared_root->ledger->remove({task->ledger_file()});
        if (!removed) log(LogLevel::warning, "{}", removed.error().message);
      },
      [this, index = file.task->index] {
        FileState& doomed = *find(index);
        --doomed.jobs;
        end_file(index, Doom(*doomed.doom));
      });
}

void Destination::Impl::end_file(uint64_t index, const std::optional<Doom>& why, uint64_t bytes) {
  const auto at = files.find(index);
  CHECK(at != files.end() && at->second.jobs == 0);
  const FileState& file = at->second;
  const FileTask& task = *file.task;
  root.release(task.key, owner);
  if (why) {
    totals.bytes -= file.before_bytes + file.durable_bytes;
    totals.bytes_total -= file.counted_bytes;
    session_bytes -= file.durable_bytes;
    ++(why->kind == ErrorKind::vanished ? totals.files_vanished : totals.files_failed);
    tell(task.path, task.version, task.size_bytes != size_unknown ? task.size_bytes : 0, TransferRecord::Said::failed, why->reason);
    results.push_back({index, why->kind, why->error_number});
  } else {
    ++totals.files;
    tell(task.path, task.version, bytes, TransferRecord::Said::ok, "");
    results.push_back({index, ErrorKind::ok, 0});
  }
  files.erase(at);
  leaves_changed = true;
  progress = true;
  wake = true;
}

void Destination::Impl::flush_results() {
  if (results.empty() || messages_unsent > messages_unsent_max) return;
  for (const session::Message& message : session::cut(session::FileResults{std::move(results)})) post(message);
  results.clear();
}

// Directories whose content has ended, in the order in which they were left: those below come first.
void Destination::Impl::pump_leaves() {
  if (leaves_running || !leaves_changed || leaves.empty()) return;
  leaves_changed = false;
  auto due = std::make_shared<std::vector<Leave>>();
  RingBuffer<Leave> waiting;
  for (Leave& leave : leaves) {
    const auto first = files.lower_bound(leave.first_index);
    const bool is_due = first == files.end() || first->first >= leave.leave_index;
    if (is_due) {
      due->push_back(std::move(leave));
    } else {
      waiting.push_back(std::move(leave));
    }
  }
  leaves = std::move(waiting);
  if (due->empty()) return;
  leaves_running = true;
  auto outcomes = std::make_shared<std::vector<LeaveOutcome>>();
  submit([due, outcomes, shared_root = &root, known = &directories, rules = policy,
          holder = owner] { *outcomes = apply_leaves(*shared_root, *known, rules, *holder, *due); },
         [this, outcomes] {
           leaves_running = false;
           leaves_changed = true;
           for (const LeaveOutcome& outcome : *outcomes) {
             if (outcome.attributes_refused) ++totals.attributes_refused;
             if (outcome.error_number == 0) continue;
             if (is_fatal(outcome.error_number)) return end_with(fatal_error(outcome.error_number, outcome.path), true);
             ++totals.files_failed;
             observer.on_warning(
                 fmt::format("{}: cannot set mode or times: {}", printable(outcome.path), describe_errno(outcome.error_number)));
           }
         });
}

void Destination::Impl::pump_cleanup() {
  if (cleanup.empty()) return;
  submit(
      [names = std::move(cleanup), shared_root = &root] {
        for (const std::string& name : names) shared_root->files.unlink_at(shared_root->staging, name, false);
      },
      [] {});
  cleanup.clear();
}

namespace {

// Everything is durable, and stands where its path leads: the second look comes after the sync, so that whatever an administrator
// did before it is seen.
std::optional<Error> sync_and_look(Root::Impl& root, KnownDirectories& directories) {
  if (const int error = root.disk->sync_names(); error < 0) {
    return Error{ErrorKind::file_io, fmt::format("cannot sync {}: {}", printable(root.path), describe_errno(-error))};
  }
  if (root.check() < 0) return fatal_error(ESTALE, root.path);
  std::string path;
  if (const int error = directories.look_at_all(path); error < 0) return fatal_error(-error, path);
  return std::nullopt;
}

}  // namespace

// Everything has ended: one last sync, for directories and links, and then the summary.
void Destination::Impl::pump_end() {
  if (!end || summary_posted || final_running || error) return;
  if (next_index > end->entries) {
    end_with({ErrorKind::protocol, "the source sent more entries than it says"}, true);
    return;
  }
  const bool is_over = next_index == end->entries && files.empty() && !entries_running && leaves.empty() && !leaves_running;
  if (!is_over) return;
  flush_results();
  if (!results.empty()) return;
  final_running = true;
  auto failure = std::make_shared<std::optional<Error>>();
  const bool dry = policy.has(session::option_dry_run);
  submit(
      [failure, dry, shared_root = &root, known = &directories] {
        if (!dry) *failure = sync_and_look(*shared_root, *known);
      },
      [this, failure] {
        final_running = false;
        if (error) return;
        if (*failure) return end_with(std::move(**failure), true);
        if (totals.attributes_refused > 0) {
          observer.on_warning(
              fmt::format("the file system refuses modes or times: {}: {} files and directories have others than at the "
                          "source: send without -a, or to another file system",
                          printable(root.path), totals.attributes_refused));
        }
        const uint64_t not_as_asked = totals.files_failed + totals.files_vanished + totals.attributes_refused;
        post(session::Summary{totals.files, totals.files_unchanged, not_as_asked, session_bytes});
        summary_posted = totals.over = true;
      });
}

}  // namespace ccixfer::recv
