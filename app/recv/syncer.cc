#include "app/recv/syncer.h"

#include <memory>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::recv {

void Syncer::add(uint64_t index, uint64_t bytes) {
  waiting_bytes_ += bytes;
  if (waiting_.empty() || waiting_.back() != index) waiting_.push_back(index);
}

void Syncer::turn(Instant now, bool at_once) {
  if (since_ == never && !waiting_.empty()) since_ = now;  // written since the last turn
  if (is_running_ || waiting_.empty()) return;
  if (!at_once && waiting_bytes_ < sync_bytes_max && now < since_ + sync_interval) return;
  auto batch = std::make_shared<std::vector<SyncFile>>(take_batch());
  if (batch->empty()) return;
  is_running_ = true;
  auto failure = std::make_shared<std::optional<Error>>();
  jobs_.submit([this, batch, failure] { *failure = sync_(*batch); }, [this, batch, failure] { synced(*batch, *failure); });
}

std::vector<SyncFile> Syncer::take_batch() {
  std::vector<SyncFile> batch;
  for (const uint64_t index : std::exchange(waiting_, {})) {
    FileInWork* file = files_.find(index);
    if (file == nullptr || !file->wants_sync()) continue;
    SyncFile sync;
    sync.task = file->task_ref();
    sync.staged = file->pieces()->staged();
    sync.pieces = file->pieces()->take_unsynced();
    sync.let_go = !file->is_held();
    file->hold();
    batch.push_back(std::move(sync));
  }
  waiting_bytes_ = 0;
  since_ = never;
  return batch;
}

void Syncer::synced(const std::vector<SyncFile>& batch, const std::optional<Error>& failure) {
  is_running_ = false;
  if (!failure) session_.made_progress();
  if (failure) session_.fail(*failure);
  for (const SyncFile& sync : batch) {
    FileInWork* file = files_.find(sync.task->index);
    CHECK(file != nullptr);
    file->let_go();
    synced_one(*file, sync, !failure);
    files_.on_job_ended(sync.task->index);
  }
}

void Syncer::synced_one(FileInWork& file, const SyncFile& sync, bool are_in_ledger) {
  FilePieces& pieces = *file.pieces();
  if (sync.error_number != 0) {
    std::vector<uint64_t> lost = pieces.sync_failed(sync.pieces);
    pieces.damaged(sync.damaged);
    lost.insert(lost.end(), sync.damaged.begin(), sync.damaged.end());
    if (is_fatal(sync.error_number)) {
      session_.fail(fatal_error(sync.error_number, sync.task->path));
    } else if (!file.failure()) {
      files_.on_io_failed(file, sync.error_number, lost);
    }
    return;
  }
  if (are_in_ledger) {
    pieces.synced(sync.pieces);
    count(file, sync);
  }
  if (!sync.damaged.empty()) {
    pieces.damaged(sync.damaged);
    if (!file.failure()) files_.on_damaged_at_rest(file, sync.damaged);
  }
}

void Syncer::count(FileInWork& file, const SyncFile& sync) {
  if (!file.is_length_known()) return;  // such a file counts when it is committed
  uint64_t bytes = 0;
  for (const Ledger::Piece& piece : sync.pieces) bytes += piece_length(sync.task->size_bytes, piece.number);
  files_.on_durable(file, bytes);
}

}  // namespace ccixfer::recv
