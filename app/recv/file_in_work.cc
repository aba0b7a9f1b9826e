#include "app/recv/file_in_work.h"

#include "core/base/check.h"

namespace ccixfer::recv {

uint64_t FileInWork::size_bytes() const {
  if (is_length_known()) return task_->size_bytes;
  return end_ ? end_->size_bytes : size_unknown;
}

void FileInWork::let_go() {
  CHECK(holders_ > 0);
  --holders_;
}

bool FileInWork::awaits_source() const {
  if (!takes_content()) return false;
  const uint64_t written = pieces_ ? pieces_->table().written() : 0;
  return !end_ || written < piece_count(size_bytes());
}

bool FileInWork::begin_pack() {
  if (by_pack_ || pieces_ || failure_ || waits_for_link_) return false;
  by_pack_ = true;
  return true;
}

FilePieces& FileInWork::begin_pieces(std::shared_ptr<StagedFile> staged) {
  CHECK(!pieces_);
  pieces_ = std::make_unique<FilePieces>(std::move(staged));
  return *pieces_;
}

bool FileInWork::wants_sync() const {
  const bool is_worthless = failure_ && failure_->discard;
  return pieces_ && pieces_->has_unsynced() && !committing_ && !is_worthless;
}

bool FileInWork::fail(FileFailure failure) {
  if (failure_) return false;
  failure_ = std::move(failure);
  return true;
}

NextStep FileInWork::after_failure() const {
  if (!pieces_) return NextStep::end;
  if (failure_->discard) return NextStep::discard;
  return pieces_->has_unsynced() ? NextStep::sync : NextStep::end;
}

std::optional<FileFailure> FileInWork::wrong_content(const PieceTable& table, uint64_t count) const {
  if (!end_->has_digest && !task_->has_digest) return std::nullopt;
  const Hash128 digest = table.digest(count);
  if ((end_->has_digest && digest != end_->digest) || (task_->has_digest && digest != task_->digest)) {
    return FileFailure{ErrorKind::integrity, 0, true, "its content is not what its digest says"};
  }
  return std::nullopt;
}

NextStep FileInWork::next() {
  if (holders_ > 0) return NextStep::none;
  if (failure_) return after_failure();
  if (!end_ || !takes_content()) return NextStep::none;
  static const PieceTable nothing;
  const uint64_t count = piece_count(size_bytes());
  const PieceTable& table = pieces_ ? pieces_->table() : nothing;
  if (table.end() > count) {
    failure_ = {ErrorKind::vanished, 0, true, "it is shorter than what was sent of it"};
    return after_failure();
  }
  if (table.written() < count) return NextStep::none;
  failure_ = wrong_content(table, count);
  return failure_ ? after_failure() : NextStep::commit;
}

void FileInWork::begin_commit() {
  CHECK(!committing_);
  committing_ = true;
  hold();
}

void FileInWork::end_commit() {
  CHECK(committing_);
  let_go();
  committing_ = false;
  by_pack_ = false;
}

}  // namespace ccixfer::recv
