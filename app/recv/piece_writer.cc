#include "app/recv/piece_writer.h"

#include <utility>

#include "core/base/check.h"

namespace ccixfer::recv {
namespace {

using session::SegmentHeader;

// What is wrong with a piece that cannot be of that file; nullptr: nothing.
const char* fault_of(const FileInWork& file, const SegmentHeader& header) {
  const uint64_t piece = header.sequence;
  if (header.data_bytes == 0 || piece >= piece_count(file_bytes_max)) return "an impossible piece";
  if (file.is_length_known()) {
    const uint64_t size_bytes = file.task().size_bytes;
    const bool fits = piece < piece_count(size_bytes) && header.content_bytes() == piece_length(size_bytes, piece);
    return fits ? nullptr : "a piece that is not of its file";
  }
  const bool is_far = file.pieces() != nullptr && piece > file.pieces()->table().end() + pieces_ahead_max;
  return is_far ? "a piece too far ahead" : nullptr;
}

}  // namespace

void PieceWriter::receive(ReceivedSegment arrival, const SegmentHeader& header, uint64_t entries_decided) {
  if (is_wanted(header, entries_decided)) {
    write(*files_.find(header.index), std::move(arrival), header);
  } else {
    inbox_.release(arrival);
  }
}

bool PieceWriter::is_wanted(const SegmentHeader& header, uint64_t entries_decided) {
  FileInWork* file = files_.find(header.index);
  if (file == nullptr) {
    if (header.index >= entries_decided) session_.reject("a piece of a file that has no verdict");
    return false;
  }
  if (const char* fault = fault_of(*file, header); fault != nullptr) {
    session_.reject(fault);
    return false;
  }
  if (header.file_version != file->task().version || !file->takes_content()) return false;
  switch (files_.pieces_of(*file).arrive(header.sequence, header.hash)) {
    case FilePieces::Arrived::here:
      return false;
    case FilePieces::Arrived::changed:
      files_.on_failed(*file, changed_at_source());
      return false;
    case FilePieces::Arrived::wanted:
      return true;
  }
  return false;
}

void PieceWriter::write(FileInWork& file, ReceivedSegment arrival, const SegmentHeader& header) {
  file.hold();
  struct Work {
    ReceivedSegment arrival;
    std::shared_ptr<StagedFile> staged;
    SegmentHeader header;
    uint32_t losses = 0;
    PieceWritten outcome;
  };
  auto work = std::make_shared<Work>();
  work->arrival = std::move(arrival);
  work->staged = file.pieces()->staged();
  work->header = header;
  work->losses = file.pieces()->losses();
  jobs_.submit(
      [this, work] {
        // What is compressed needs room for what it is before that.
        const MutableBytes buffer = work->arrival.buffer.bytes();
        const bool is_compressed = work->header.is_compressed();
        const MutableBytes segment = is_compressed ? buffer : buffer.first(static_cast<size_t>(work->arrival.length_bytes));
        work->outcome = write_(work->staged, segment, work->header);
      },
      [this, work] {
        inbox_.release(work->arrival);
        written(work->header.index, work->header.sequence, work->header.content_bytes(), work->losses, work->outcome);
      });
}

void PieceWriter::written(uint64_t index, uint64_t piece, uint64_t data_bytes, uint32_t losses, const PieceWritten& outcome) {
  FileInWork* file = files_.find(index);
  CHECK(file != nullptr);
  file->let_go();
  if (outcome.is_damaged || outcome.is_malformed || outcome.error_number != 0) {
    not_written(*file, piece, outcome);
  } else if (file->pieces()->written(piece, losses)) {
    session_.opened(true);
    files_.on_written(*file, data_bytes);
  } else if (!session_.has_failed() && !file->failure()) {
    session_.ask_for_piece(index, piece);
  }
  files_.on_job_ended(index);
}

void PieceWriter::not_written(FileInWork& file, uint64_t piece, const PieceWritten& outcome) {
  file.pieces()->not_written(piece);
  if (session_.has_failed()) return;  // nobody is there to be asked
  if (outcome.is_malformed) return session_.refuse({ErrorKind::protocol, words_of_malformed});
  if (outcome.is_damaged) {
    counters_.add(Counter::segments_bad);
    session_.opened(false);
    if (session_.has_failed()) return;
    if (!file.failure()) session_.ask_for_piece(file.task().index, piece);
  } else if (is_fatal(outcome.error_number)) {
    session_.fail(fatal_error(outcome.error_number, file.task().path));
  } else if (!file.failure()) {
    files_.on_io_failed(file, outcome.error_number, {piece});
  }
}

}  // namespace ccixfer::recv
