#include "app/recv/files_in_work.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

FileFailure failure_of_errno(int error_number) {
  // Its content is whole and may be wanted once what is in the way is gone (an immutable file, a
  // full directory).
  return {ErrorKind::file_io, error_number, false, describe_errno(error_number)};
}

}  // namespace

FileInWork* FilesInWork::find(uint64_t index) {
  const auto at = files_.find(index);
  return at == files_.end() ? nullptr : &at->second;
}

bool FilesInWork::has_any(uint64_t first, uint64_t end) const {
  const auto at = files_.lower_bound(first);
  return at != files_.end() && at->first < end;
}

void FilesInWork::add(const Decision& decision) {
  FileInWork& file = files_.try_emplace(decision.task->index, decision.task).first->second;
  if (decision.verdict == session::Verdict::link) return add_link(file);
  uint64_t present_bytes = 0;
  if (!decision.present.empty()) {
    FilePieces& pieces = file.begin_pieces(make_staged_(file.task(), true));
    for (const Ledger::Piece& piece : decision.present) {
      pieces.found(piece);
      present_bytes += piece_length(file.task().size_bytes, piece.number);
    }
  }
  file.share() = results_.wanted(file.task(), present_bytes);
}

void FilesInWork::add_link(FileInWork& file) {
  file.want_content(false);
  file.wait_for_link();
  file.share() = results_.linked(file.task());
  waiting_[file.task().first_name].push_back(file.task().index);
  link_those_that_wait(file.task().first_name);
}

// Once it is known where the file's first name stands. When that one has failed, the next one takes its place.
void FilesInWork::link_those_that_wait(const std::string& first) {
  const auto waiting = waiting_.find(first);
  if (waiting == waiting_.end()) return;
  const LinkedNames::Found found = linked_.find(first);
  if (found.state == LinkedNames::State::pending) return;
  if (found.state == LinkedNames::State::failed) {
    FileInWork* next = find(waiting->second.front());
    CHECK(next != nullptr);
    waiting->second.erase(waiting->second.begin());
    if (waiting->second.empty()) waiting_.erase(waiting);
    linked_.begin(first, next->task().path);
    return want_after_all(*next, true);
  }
  const std::vector<uint64_t> ready = std::move(waiting->second);
  waiting_.erase(waiting);
  for (const uint64_t index : ready) {
    FileInWork* file = find(index);
    CHECK(file != nullptr);
    CommitItem item;
    item.task = file->task_ref();
    item.link_to = found.path.empty() ? item.task->path_of_first : found.path;
    file->begin_commit();
    steps_.commit(std::move(item));
  }
}

// A further name gets content of its own.
void FilesInWork::want_after_all(FileInWork& file, bool leads) {
  file.want_content(leads);
  results_.not_linked(file.share());
  file.share() = results_.wanted(file.task(), 0);
  steps_.wanted_after_all(file.task());
  if (!session_.has_failed()) session_.ask_for_piece(file.task().index, session::Resend::whole);
}

// The content arrives all the same: where the file system has no such links, or no more of them, this is told.
void FilesInWork::on_not_linked(FileInWork& file, const CommitItem& item) {
  if (is_fatal(item.error_number)) return session_.fail(fatal_error(item.error_number, item.task->path));
  const int error = item.error_number;
  if (error == EPERM || error == EMLINK || error == ENOTSUP || error == ENOSYS || error == EXDEV) results_.attributes_refused();
  want_after_all(file, false);
}

FilePieces& FilesInWork::pieces_of(FileInWork& file) {
  FilePieces* pieces = file.pieces();
  return pieces != nullptr ? *pieces : file.begin_pieces(make_staged_(file.task(), false));
}

bool FilesInWork::on_end(const session::FileEnd& end) {
  FileInWork* file = find(end.index);
  if (file == nullptr) return false;
  if (!file->takes_content()) return true;  // its content was complete: too late to matter
  switch (end.outcome) {
    case session::SourceOutcome::ok:
      file->set_end(end);
      if (file->size_bytes() > file_bytes_max) {
        session_.fail({ErrorKind::protocol, "the end of a file of unknown length without its length"});
      } else {
        go_on(*file);
      }
      break;
    case session::SourceOutcome::changed:
      on_failed(*file, changed_at_source());
      break;
    case session::SourceOutcome::vanished:
      on_failed(*file, {ErrorKind::vanished, 0, true, "it vanished at the source"});
      break;
    case session::SourceOutcome::unreadable:
      on_failed(*file, {ErrorKind::partial, 0, false, "it cannot be read at the source"});
      break;
  }
  return true;
}

bool FilesInWork::on_holes(const session::Holes& holes) {
  FileInWork* file = find(holes.index);
  if (file == nullptr) return true;  // it has ended, or will never be wanted
  if (!file->is_length_known()) return false;
  const uint64_t count = piece_count(file->task().size_bytes);
  for (const session::Want::Range& range : holes.ranges) {
    if (range.first >= count || range.count > count - range.first) return false;
  }
  if (!file->takes_content()) return true;
  file->hold();
  steps_.make_holes(file->task_ref(), pieces_of(*file).staged(), holes);
  return true;
}

// They need no row in the ledger: a source that has them tells of them again.
void FilesInWork::holes_made(const session::Holes& holes, int error_number) {
  FileInWork* file = find(holes.index);
  CHECK(file != nullptr);
  file->let_go();
  const uint64_t size_bytes = file->task().size_bytes;
  uint64_t bytes = 0;
  bool has_changed = false;
  for (const session::Want::Range& range : holes.ranges) {
    if (error_number != 0) break;
    const FilePieces::Holes found = file->pieces()->holes(range, size_bytes);
    bytes += found.bytes;
    has_changed = has_changed || found.has_changed;
  }
  if (bytes > 0 && !file->failure()) on_durable(*file, bytes);
  if (is_fatal(error_number)) return session_.fail(fatal_error(error_number, file->task().path));
  if (error_number != 0) return on_failed(*file, failure_of_errno(error_number));
  if (has_changed) return on_failed(*file, changed_at_source());
  go_on(*file);
}

void FilesInWork::on_written(FileInWork& file, uint64_t bytes) { steps_.sync_soon(file.task().index, bytes); }

void FilesInWork::on_durable(FileInWork& file, uint64_t bytes) { results_.durable(file.share(), bytes); }

void FilesInWork::on_staged(FileInWork& file, CommitItem item) {
  file.begin_commit();
  steps_.commit(std::move(item));
}

void FilesInWork::on_failed(FileInWork& file, FileFailure why) {
  if (file.fail(std::move(why))) go_on(file);
}

// Once it is asked for again, and never simply synced again: the next sync would say that what was
// lost is durable.
void FilesInWork::on_io_failed(FileInWork& file, int error_number, const std::vector<uint64_t>& lost_pieces) {
  if (session_.has_failed()) return;
  if (!file.may_come_again()) {
    if (error_number == EIO) {
      disk_fails(file);
    } else {
      on_failed(file, failure_of_errno(error_number));
    }
    return;
  }
  const uint64_t index = file.task().index;
  session_.warn(fmt::format("{}: {}: asked for again", printable(file.task().path), describe_errno(error_number)));
  if (file.pieces() == nullptr) session_.ask_for_piece(index, session::Resend::whole);
  if (file.pieces() == nullptr) return;
  for (const uint64_t piece : lost_pieces) session_.ask_for_piece(index, piece);
}

// The failure is not this file's fault, and the next one would fare no better.
void FilesInWork::disk_fails(const FileInWork& file) {
  session_.fail({ErrorKind::file_io, fmt::format("the receiver's disk fails: {}", fatal_error(EIO, file.task().path).message)});
}

// A disk that damages the same place twice would do so for ever.
void FilesInWork::on_damaged_at_rest(FileInWork& file, const std::vector<uint64_t>& pieces) {
  if (session_.has_failed()) return;
  const std::string& path = file.task().path;
  for (const uint64_t piece : pieces) {
    if (!file.may_be_damaged(piece) || ++damaged_at_rest_ > damaged_at_rest_max) {
      session_.fail({ErrorKind::integrity,
                     fmt::format("the receiver's disk damages what is written to it: {}: read back, it is not what was written: "
                                 "check the disk and run again to resume",
                                 printable(path))});
      return;
    }
  }
  session_.warn(fmt::format("{}: read back from the disk, it is not what was written: asked for again", printable(path)));
  for (const uint64_t piece : pieces) session_.ask_for_piece(file.task().index, piece);
}

void FilesInWork::on_job_ended(uint64_t index) {
  FileInWork* file = find(index);  // with its second failure it may have ended before
  if (file != nullptr) go_on(*file);
}

void FilesInWork::go_on(FileInWork& file) {
  if (session_.has_failed()) return;
  switch (file.next()) {
    case NextStep::none:
      return;
    case NextStep::commit:
      return begin_commit(file);
    case NextStep::sync:  // comes back here afterwards
      return steps_.sync_soon(file.task().index, 0);
    case NextStep::discard:
      file.hold();
      return steps_.discard(file.task_ref(), file.pieces()->staged());
    case NextStep::end:
      return end_failed(file);
  }
}

void FilesInWork::discarded(uint64_t index) {
  FileInWork* file = find(index);
  CHECK(file != nullptr);
  file->let_go();
  end_failed(*file);
}

// What is not durable yet becomes so there.
void FilesInWork::begin_commit(FileInWork& file) {
  CommitItem item;
  item.task = file.task_ref();
  item.file = pieces_of(file).staged();
  item.staged = item.file->name();
  item.size_bytes = file.size_bytes();
  item.unsynced = file.pieces()->unsynced();
  file.begin_commit();
  steps_.commit(std::move(item));
}

void FilesInWork::on_committed(const CommitItem& item) {
  FileInWork* file = find(item.task->index);
  CHECK(file != nullptr);
  file->end_commit();
  if (item.outcome == CommitOutcome::ok) {
    on_placed(*file, item);
  } else if (!item.link_to.empty()) {
    on_not_linked(*file, item);
  } else {
    on_not_placed(*file, item);
  }
}

void FilesInWork::on_placed(FileInWork& file, const CommitItem& item) {
  if (item.attributes_refused) results_.attributes_refused();
  const bool some_was_durable = file.pieces() != nullptr && file.is_length_known();
  results_.durable(file.share(), some_was_durable ? file.pieces()->unsynced_bytes(item.size_bytes) : item.size_bytes);
  if (!file.is_length_known()) results_.grown(item.size_bytes);
  end_delivered(file, item.link_to.empty() ? item.size_bytes : item.task->size_bytes);
}

void FilesInWork::on_not_placed(FileInWork& file, const CommitItem& item) {
  FilePieces* pieces = file.pieces();
  const bool is_lost = item.outcome == CommitOutcome::sync_failed;
  // Before anything else syncs the file once more: the kernel tells only once, and the next sync would succeed.
  const std::vector<uint64_t> lost = is_lost && pieces != nullptr ? pieces->lose_unsynced() : std::vector<uint64_t>{};
  if (is_fatal(item.error_number)) {
    // Its pieces go to the ledger with the last sync.
    if (pieces != nullptr && pieces->has_unsynced()) steps_.sync_soon(item.task->index, 0);
    session_.fail(fatal_error(item.error_number, item.task->path));
    return;
  }
  if (item.outcome == CommitOutcome::damaged) {
    if (pieces == nullptr) return on_damaged_at_rest(file, {session::Resend::whole});
    pieces->damaged(item.damaged);
    if (pieces->has_unsynced()) steps_.sync_soon(item.task->index, 0);
    return on_damaged_at_rest(file, item.damaged);
  }
  if (item.outcome == CommitOutcome::held) {
    return on_failed(file, {ErrorKind::partial, item.error_number, false,
                            "another receiver still writes into it: what is here of it is kept, and the next run ends it"});
  }
  if (item.outcome == CommitOutcome::failed) {
    if (item.error_number == EIO) return disk_fails(file);
    return on_failed(file, failure_of_errno(item.error_number));
  }
  if (pieces != nullptr && lost.empty()) return on_failed(file, failure_of_errno(item.error_number));
  on_io_failed(file, item.error_number, lost);
}

// The session has failed. The file stays staged for the next run: its pieces go to the ledger with
// the last sync.
void FilesInWork::on_commit_cancelled(const CommitItem& item) {
  FileInWork* file = find(item.task->index);
  CHECK(file != nullptr);
  file->end_commit();
  if (!item.link_to.empty()) return;
  if (!item.file) {
    steps_.remove_staged(item.staged);
  } else if (file->pieces()->has_unsynced()) {
    steps_.sync_soon(item.task->index, 0);
  }
}

void FilesInWork::end_delivered(FileInWork& file, uint64_t bytes) {
  results_.delivered(file.task(), bytes);
  end(file, ErrorKind::ok, 0);
}

void FilesInWork::end_failed(FileInWork& file) {
  const FileFailure& why = *file.failure();
  results_.failed(file.task(), file.share(), why);
  end(file, why.kind, why.error_number);
}

void FilesInWork::end(FileInWork& file, ErrorKind kind, int error_number) {
  CHECK(!file.is_held());
  const FileTaskRef task = file.task_ref();
  const bool leads = file.leads();
  files_.erase(task->index);
  steps_.ended(*task, {task->index, kind, error_number});
  if (!leads) return;
  if (kind == ErrorKind::ok) {
    linked_.place(task->first_name, task->path, task->path == task->path_of_first);
  } else {
    linked_.fail(task->first_name);
  }
  link_those_that_wait(task->first_name);
}

}  // namespace ccixfer::recv
