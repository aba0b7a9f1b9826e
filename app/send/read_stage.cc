#include "app/send/read_stage.h"

#include "core/base/check.h"

namespace ccixfer::send {

ReadStage::ReadStage(const std::shared_ptr<Jobs>& jobs, const std::shared_ptr<WalkHold>& walk, EntryTable& entries,
                     SegmentSink& sink, ReadHandler& handler, std::atomic<bool>& input_was_read, const Wrapping& wrapping)
    : entries_(entries),
      packs_(jobs, walk, entries, sink, handler, wrapping),
      large_(jobs, walk, entries, sink, handler, wrapping),
      stream_(jobs, entries, sink, handler, input_was_read, wrapping) {}

Result<void> ReadStage::want_whole(Entry& entry) {
  if (entry.stream) return stream_.want(entry);
  entry.large.reset();
  if (is_small(entry.listed.size_bytes)) {
    packs_.want(entry);
    return {};
  }
  const bool fits = large_file_of(entry).wanted.add(0, pieces_of(entry.listed.size_bytes));
  CHECK(fits);  // it is one range
  large_.want(entry);
  return {};
}

void ReadStage::want_pieces(Entry& entry) {
  static_cast<void>(large_file_of(entry));
  large_.want(entry);
}

bool ReadStage::want_again(Entry& entry, uint64_t first_piece, uint64_t count) {
  if (entry.phase == EntryPhase::announced || entry.phase == EntryPhase::refused) return true;
  if (entry.stream) {
    stream_.cannot_repeat(entry);
  } else if (!entry.large) {
    if (entry.phase != EntryPhase::sent) return true;  // it is on its way
    entry.resend = true;
    packs_.want(entry);
  } else {
    LargeFile& large = *entry.large;
    if (!large.wanted.add(first_piece, count) || !large.again.add(first_piece, count)) return false;
    large_.forget_there(large, first_piece, count);
    if (entry.phase == EntryPhase::sent) large_.want(entry);
  }
  return true;
}

void ReadStage::entry_ends(Entry& entry) {
  if (entry.stream) {
    stream_.entry_ends();
  } else if (entry.large) {
    large_.entry_ends(entry);
  } else {
    packs_.entry_ends(entry);
  }
}

void ReadStage::piece_placed(uint64_t index) {
  Entry* entry = entries_.find(index);
  if (entry != nullptr && entry->stream) stream_.placed(*entry);
}

void ReadStage::start_reads(const ReadPace& pace, BufferShare& buffers) {
  large_.start_opens();
  stream_.start(pace, buffers);
  for (uint32_t reading = packs_.reading() + large_.reading();
       reading < reading_jobs_max && reading + pace.segments_ready < pace.segments_ahead; ++reading) {
    const auto start_pack = [&] { return packs_.start(pace, reading, buffers); };
    const auto start_piece = [&] { return large_.start_piece(pace, buffers); };
    const bool started = piece_next_ ? start_piece() || start_pack() : start_pack() || start_piece();
    if (!started) return;
    piece_next_ = !piece_next_;
  }
}

}  // namespace ccixfer::send
