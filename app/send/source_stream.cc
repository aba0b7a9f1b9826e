// Standard input: a file whose length nobody knows until its end. Its pieces are read one after the other, and what left its buffer
// is gone: a piece that the destination wants again fails the file.
#include <atomic>
#include <cerrno>

#include "app/send/reader.h"
#include "app/send/source_machine.h"
#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::send {
namespace {

// A session that starts after another one took bytes would send the rest as if it were the whole.
std::atomic<bool> stream_was_read{false};

}  // namespace

bool Source::input_is_spent() const { return stream_was_read.load(); }

void Source::Impl::want_stream(Entry& entry) {
  entries_.move(entry, EntryPhase::queued);
  if (stream_was_read.load()) {
    return fail_session(ErrorKind::network,
                        "standard input was read in part and cannot be read again: give the command its input anew");
  }
  entries_.move(entry, EntryPhase::reading);
  large_file_of(entry).phase = LargeFile::Phase::open;
  stream_.emplace();
  stream_->slot = entries_.slot_of(entry);
  stream_->index = entry.index;
}

void Source::Impl::stream_on() {
  if (!stream_ || stream_->reading || stream_->over || sender_.data_ready() >= segments_ahead_max) return;
  if (!stream_->part && !buffers_.may_lend(keep_one())) return;
  auto data = std::make_unique<StreamData>();
  data->buffer = stream_->part ? std::move(stream_->part) : buffers_.lend();
  data->slot = stream_->slot;
  data->index = stream_->index;
  data->data_bytes = stream_->part_bytes;
  stream_->part_bytes = 0;
  stream_->reading = true;
  Entry& entry = entries_.at(stream_->slot);
  ++entry.jobs;
  ++entry.large->reading;
  submit(
      std::move(data),
      [](ports::FileSystem& files, StreamData& job, Jobs&) {
        at_reader();
        const MutableBytes piece = job.buffer.bytes().first(session::piece_bytes);
        while (job.data_bytes < piece.size() && !job.end && job.error == 0) {
          const int64_t bytes = files.read_stream(stream_fd, piece.subspan(job.data_bytes));
          if (bytes == -EAGAIN) return;  // the rest in a next job: others want this thread too
          if (bytes < 0) job.error = static_cast<int>(-bytes);
          if (bytes == 0) job.end = true;
          if (bytes > 0) job.data_bytes += static_cast<uint32_t>(bytes);
          if (bytes > 0) stream_was_read.store(true);
        }
        job.hash = xxh3_128(piece.first(job.data_bytes));
      },
      &Impl::stream_read);
}

void Source::Impl::stream_read(StreamData& data) {
  Entry& entry = entries_.at(data.slot);
  --entry.large->reading;
  if (stream_) stream_->reading = false;
  if (!job_ended(entry) || !stream_ || entry.phase != EntryPhase::reading) {
    stream_.reset();
    return;
  }
  if (data.error != 0) return refuse_stream(entry, data.error);
  if (data.data_bytes < session::piece_bytes && !data.end) {
    stream_->part = std::move(data.buffer);
    stream_->part_bytes = data.data_bytes;
    return;
  }
  LargeFile& large = *entry.large;
  stream_->over = data.end;
  if (data.data_bytes > 0) {
    session::SegmentHeader header;
    header.kind = session::SegmentKind::piece;
    header.index = entry.index;
    header.sequence = stream_->bytes / session::piece_bytes;
    header.file_version = entry.listed.version;
    header.data_bytes = data.data_bytes;
    header.hash = data.hash;
    if (large.hashes.size() < digest_pieces_max) large.hashes.push_back(data.hash);
    ++large.unplaced;
    stream_->bytes += data.data_bytes;
    totals_.bytes_total += data.data_bytes;
    entry.counted_bytes += data.data_bytes;
    sender_.add({std::move(data.buffer), header, {}, header.data_bytes, false});
  }
  settle_stream(entry);
}

void Source::Impl::settle_stream(Entry& entry) {
  LargeFile& large = *entry.large;
  if (!stream_ || !stream_->over || large.reading > 0 || large.unplaced > 0) return;
  entry.listed.size_bytes = stream_->bytes;
  session::FileEnd end;
  end.index = entry.index;
  end.size_bytes = stream_->bytes;
  end.has_digest = large.hashes.size() == pieces_of(stream_->bytes);
  if (end.has_digest) end.digest = session::file_digest(large.hashes);
  stream_.reset();
  close_large(entry);
  entries_.move(entry, EntryPhase::sent);
  file_ends_.push_back(end);
}

void Source::Impl::refuse_stream(Entry& entry, int error) {
  if (entry.phase != EntryPhase::reading && entry.phase != EntryPhase::sent) return;
  stream_.reset();
  close_large(entry);
  entry.outcome = {session::SourceOutcome::unreadable, error};
  refuse(entry);
}

}  // namespace ccixfer::send
