#include "app/send/stream_read.h"

#include <cerrno>

#include "app/send/reader.h"
#include "app/session/limits.h"

namespace ccixfer::send {

StreamRead::StreamRead(std::shared_ptr<Jobs> jobs, EntryTable& entries, SegmentSink& sink, ReadHandler& handler,
                       std::atomic<bool>& was_read, Wrapping wrapping)
    : jobs_(std::move(jobs)),
      entries_(entries),
      sink_(sink),
      handler_(handler),
      was_read_(was_read),
      wrapping_(std::move(wrapping)) {}

Result<void> StreamRead::want(Entry& entry) {
  entries_.move(entry, EntryPhase::queued);
  if (was_read_.load()) {
    return fail(ErrorKind::network, "standard input was read in part and cannot be read again: give the command its input anew");
  }
  entries_.move(entry, EntryPhase::reading);
  stream_.emplace();
  stream_->slot = entries_.slot_of(entry);
  return {};
}

void StreamRead::start(const ReadPace& pace, BufferShare& buffers) {
  if (!stream_ || stream_->reading || stream_->over || pace.segments_ready >= segments_ahead_max) return;
  if (!stream_->part && !buffers.may_lend(pace.keep_one)) return;
  auto data = std::make_unique<StreamData>();
  data->buffer = stream_->part ? std::move(stream_->part) : buffers.lend();
  data->slot = stream_->slot;
  data->was_read = &was_read_;
  data->wrapping = wrapping_;
  data->data_bytes = stream_->part_bytes;
  stream_->part_bytes = 0;
  stream_->reading = true;
  ++entries_.at(stream_->slot).jobs;
  jobs_->submit(*this, std::move(data), &StreamRead::read, &StreamRead::stream_read);
}

void StreamRead::read(ports::FileSystem& files, StreamData& data, Jobs& /*jobs*/) {
  at_reader();
  const MutableBytes piece = data.buffer.bytes().first(session::piece_bytes);
  while (data.data_bytes < piece.size() && !data.end && data.error == 0) {
    const int64_t bytes = files.read_stream(stream_fd, piece.subspan(data.data_bytes));
    if (bytes == -EAGAIN) return;  // the rest in a next job: others want this thread too
    if (bytes < 0) data.error = static_cast<int>(-bytes);
    if (bytes == 0) data.end = true;
    if (bytes > 0) data.data_bytes += static_cast<uint32_t>(bytes);
    if (bytes > 0) data.was_read->store(true);
  }
  const MutableBytes whole = piece.first(data.data_bytes);
  data.hash = xxh3_128(whole);
  if (data.error != 0) return;
  data.wrapped = wrap(data.wrapping, data.buffer.loan(), data.data_bytes);
}

void StreamRead::stream_read(StreamData& data) {
  Entry& entry = entries_.at(data.slot);
  if (stream_) stream_->reading = false;
  if (!entries_.job_ended(entry) || !stream_ || entry.phase != EntryPhase::reading) {
    stream_.reset();
    return;
  }
  if (data.error != 0) return give_up(entry, data.error);
  if (data.data_bytes < session::piece_bytes && !data.end) {
    stream_->part = std::move(data.buffer);
    stream_->part_bytes = data.data_bytes;
    return;
  }
  stream_->over = data.end;
  if (data.data_bytes > 0) add_piece(entry, data);
  settle(entry);
}

void StreamRead::add_piece(Entry& entry, StreamData& data) {
  FilledSegment segment;
  segment.header.kind = session::SegmentKind::piece;
  segment.header.index = entry.index;
  segment.header.sequence = stream_->bytes / session::piece_bytes;
  segment.header.file_version = entry.listed.version;
  segment.header.hash = data.hash;
  put_into(data.wrapped, segment.header);
  segment.payload_bytes = data.data_bytes;
  segment.buffer = std::move(data.buffer);
  if (stream_->hashes.size() < digest_pieces_max) stream_->hashes.push_back(data.hash);
  ++stream_->unplaced;
  stream_->bytes += data.data_bytes;
  handler_.on_grown(entry, data.data_bytes);
  sink_.add(std::move(segment));
}

void StreamRead::placed(Entry& entry) {
  if (!stream_) return;
  --stream_->unplaced;
  if (entry.phase == EntryPhase::reading) settle(entry);
}

void StreamRead::settle(Entry& entry) {
  if (!stream_->over || stream_->reading || stream_->unplaced > 0) return;
  entry.listed.size_bytes = stream_->bytes;
  session::FileEnd end;
  end.index = entry.index;
  end.size_bytes = stream_->bytes;
  end.has_digest = stream_->hashes.size() == pieces_of(stream_->bytes);
  if (end.has_digest) end.digest = session::file_digest(stream_->hashes);
  stream_.reset();
  entries_.move(entry, EntryPhase::sent);
  handler_.on_file_end(end);
}

void StreamRead::cannot_repeat(Entry& entry) { give_up(entry, ESPIPE); }

void StreamRead::give_up(Entry& entry, int error) {
  if (entry.phase != EntryPhase::reading && entry.phase != EntryPhase::sent) return;
  stream_.reset();
  refuse(entries_, entry, {session::SourceOutcome::unreadable, error}, handler_);
}

}  // namespace ccixfer::send
