// From wanted files to segments in buffers: packs of small files, pieces of large ones, ahead of the credit and bounded by the
// pool.
#include <algorithm>

#include "app/send/source_machine.h"
#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::send {

using session::SourceOutcome;

namespace {

uint64_t bytes_in_pack(const Entry& entry) { return entry.listed.size_bytes + session::pack_record_bytes; }

}  // namespace

// It ended while it waited, and its slot may be another's by now.
bool Source::Impl::is_stale(const Queued& queued) {
  const Entry& entry = entries_.at(queued.slot);
  return entry.index != queued.index || entry.phase != EntryPhase::queued;
}

// Queues are purged of what ended while it waited when they grow past what can wait.
void Source::Impl::drop_stale(RingBuffer<Queued>& queue) {
  if (queue.size() < 2 * size_t{session::entries_outstanding_max}) return;
  queue.erase_if([this](const Queued& queued) { return is_stale(queued); });
}

void Source::Impl::want_small(Entry& entry) {
  entries_.move(entry, EntryPhase::queued);
  drop_stale(small_);
  small_.push_back({entries_.slot_of(entry), entry.index});
  small_bytes_ += bytes_in_pack(entry);
  ++small_count_;
}

void Source::Impl::want_large(Entry& entry) {
  entries_.move(entry, EntryPhase::queued);
  entry.large->phase = LargeFile::Phase::waiting;
  drop_stale(large_);
  large_.push_back({entries_.slot_of(entry), entry.index});
}

// While there may be more entries: they bring the next files.
bool Source::Impl::keep_one() const { return (!walk_over_ || !listings_.empty()) && sender_.entries_segments() == 0; }

// A pack goes when it is full; a smaller one only when it would keep nobody waiting for more: when a lane idles, or all is
// answered.
bool Source::Impl::pack_is_due() const {
  if (small_count_ == 0) return false;
  if (small_bytes_ >= session::piece_bytes || small_count_ >= session::pack_files_max) return true;
  if (packs_reading_ > 0) return false;
  const bool all_known = end_posted_ && answered_ == next_index_;
  return all_known || (reading_jobs_ == 0 && sender_.data_ready() == 0 && sender_.lanes().has_idle_credit());
}

void Source::Impl::read_on() {
  if (option(session::option_dry_run)) return;
  start_opens();
  stream_on();
  const size_t ahead = segments_ahead_max + 2 * sender_.lanes().live();
  while (reading_jobs_ < reading_jobs_max && reading_jobs_ + sender_.data_ready() < ahead) {
    // By turns, so that neither a large file nor many small ones keep the other waiting.
    const bool started = piece_next_ ? start_piece() || start_pack() : start_pack() || start_piece();
    if (!started) return;
    piece_next_ = !piece_next_;
  }
}

bool Source::Impl::start_pack() {
  if (!pack_is_due() || !buffers_.may_lend(keep_one())) return false;
  auto data = std::make_unique<PackData>();
  data->walk = walk_;
  Pack& pack = data->pack;
  while (!small_.empty() && pack.items.size() < session::pack_files_max) {
    const Queued queued = small_.front();
    Entry& entry = entries_.at(queued.slot);
    const bool stale = is_stale(queued);
    if (!stale && pack.planned_bytes + bytes_in_pack(entry) > session::piece_bytes) break;
    small_.drop_front();
    if (stale) continue;
    entries_.move(entry, EntryPhase::reading);
    ++entry.jobs;
    small_bytes_ -= bytes_in_pack(entry);
    --small_count_;
    const SourcePlace place = (*walk_)->place(entry.source, entry.path);
    PackItem item;
    item.index = entry.index;
    item.slot = queued.slot;
    item.directory = place.directory;
    item.follow = place.follow;
    item.name_at = static_cast<uint32_t>(pack.names.size());
    item.name_bytes = static_cast<uint32_t>(place.name.size());
    item.listed = entry.listed;
    pack.names.append(place.name);
    pack.planned_bytes += bytes_in_pack(entry);
    pack.items.push_back(item);
    data->resend = data->resend || entry.resend;
  }
  if (pack.items.empty()) return false;
  data->buffer = buffers_.lend();
  ++reading_jobs_;
  ++packs_reading_;
  submit(
      std::move(data), [](ports::FileSystem& files, PackData& job, Jobs&) { read_pack(files, job.pack, job.buffer.bytes()); },
      &Impl::pack_read);
  return true;
}

bool Source::Impl::job_ended(Entry& entry) {
  if (entry.phase == EntryPhase::ended && entry.jobs == 1) close_large(entry);
  return entries_.job_ended(entry);
}

void Source::Impl::pack_read(PackData& data) {
  --reading_jobs_;
  --packs_reading_;
  std::vector<uint64_t> read;
  read.reserve(data.pack.items.size());
  for (const PackItem& item : data.pack.items) {
    if (item.result.outcome == SourceOutcome::ok) read.push_back(item.index);
    Entry& entry = entries_.at(item.slot);
    if (!entries_.job_ended(entry)) continue;
    entry.outcome = item.result;
    if (item.result.outcome != SourceOutcome::ok) {
      refuse(entry);
    } else {
      entries_.move(entry, EntryPhase::sent);
    }
  }
  if (data.pack.count == 0) return;
  session::SegmentHeader header;
  header.kind = session::SegmentKind::pack;
  header.data_bytes = data.pack.data_bytes;
  header.count = data.pack.count;
  header.hash = data.pack.hash;
  sender_.add({std::move(data.buffer), header, std::move(read), data.pack.content_bytes, data.resend});
}

void Source::Impl::start_opens() {
  while (open_large_.size() < large_files_open_max && !large_.empty()) {
    const Queued queued = large_.front();
    large_.drop_front();
    if (is_stale(queued)) continue;
    Entry& entry = entries_.at(queued.slot);
    entries_.move(entry, EntryPhase::reading);
    ++entry.jobs;
    entry.large->phase = LargeFile::Phase::opening;
    open_large_.push_back(queued.slot);
    auto data = std::make_unique<OpenData>();
    data->walk = walk_;
    data->slot = queued.slot;
    data->listed = entry.listed;
    data->place = (*walk_)->place(entry.source, entry.path);
    data->name = std::string(data->place.name);
    data->file = std::make_shared<OpenFile>(jobs_);
    submit(
        std::move(data),
        [](ports::FileSystem& files, OpenData& job, Jobs&) {
          job.place.name = job.name;
          job.file->set(open_listed(files, job.place, job.listed, job.result));
        },
        &Impl::opened);
  }
}

void Source::Impl::opened(OpenData& data) {
  Entry& entry = entries_.at(data.slot);
  if (!job_ended(entry)) return;
  LargeFile& large = *entry.large;
  large.phase = LargeFile::Phase::open;
  large.file = std::move(data.file);
  entry.outcome = data.result;
  const uint64_t pieces = pieces_of(entry.listed.size_bytes);
  if (!large.has_digest && large.wanted.count() == pieces && pieces <= digest_pieces_max) {
    large.hashes.assign(pieces, Hash128{});
    large.hashed = 0;
  }
  settle(entry);
}

bool Source::Impl::start_piece() {
  for (const uint32_t slot : open_large_) {
    Entry& entry = entries_.at(slot);
    LargeFile& large = *entry.large;
    if (large.phase != LargeFile::Phase::open || large.wanted.empty() || entry.outcome.outcome != SourceOutcome::ok) continue;
    if (entry.phase == EntryPhase::ended) continue;
    if (!buffers_.may_lend(keep_one())) return false;
    auto data = std::make_unique<PieceData>();
    data->slot = slot;
    data->piece = large.wanted.take();
    data->size_bytes = entry.listed.size_bytes;
    data->file = large.file;
    data->buffer = buffers_.lend();
    data->resend = large.again.remove(data->piece);
    ++entry.jobs;
    ++large.reading;
    ++reading_jobs_;
    submit(
        std::move(data),
        [](ports::FileSystem& files, PieceData& job, Jobs&) {
          job.read = show_or_read_piece(files, job.file->fd(), job.piece, job.size_bytes, job.buffer.loan());
        },
        &Impl::piece_read);
    return true;
  }
  return false;
}

void Source::Impl::piece_read(PieceData& data) {
  --reading_jobs_;
  Entry& entry = entries_.at(data.slot);
  --entry.large->reading;
  if (!job_ended(entry)) return;
  LargeFile& large = *entry.large;
  if (data.read.result.outcome != SourceOutcome::ok) {
    if (entry.outcome.outcome == SourceOutcome::ok) entry.outcome = data.read.result;
  } else if (entry.outcome.outcome == SourceOutcome::ok) {
    if (data.piece < large.hashes.size() && !data.resend) {
      large.hashes[data.piece] = data.read.hash;
      ++large.hashed;
    }
    session::SegmentHeader header;
    header.kind = session::SegmentKind::piece;
    header.index = entry.index;
    header.sequence = data.piece;
    header.file_version = entry.listed.version;
    header.data_bytes = data.read.data_bytes;
    header.hash = data.read.hash;
    ++large.unplaced;
    sender_.add({std::move(data.buffer), header, {}, data.read.data_bytes, data.resend});
  }
  settle(entry);
}

void Source::Impl::piece_placed(uint64_t index) {
  Entry* entry = entries_.find(index);
  if (entry == nullptr || !entry->large) return;
  --entry->large->unplaced;
  settle(*entry);
}

// What a large file needs next, if it needs anything: called whenever something of it ended.
void Source::Impl::settle(Entry& entry) {
  if (!entry.large || entry.phase != EntryPhase::reading) return;
  LargeFile& large = *entry.large;
  if (entry.stream) return settle_stream(entry);
  if (large.phase != LargeFile::Phase::open || large.reading > 0) return;
  if (entry.outcome.outcome != SourceOutcome::ok) {
    close_large(entry);
    return refuse(entry);
  }
  if (!large.wanted.empty() || large.unplaced > 0) return;
  large.phase = LargeFile::Phase::checking;
  ++entry.jobs;
  auto data = std::make_unique<OpenData>();
  data->slot = entries_.slot_of(entry);
  data->listed = entry.listed;
  data->file = large.file;
  submit(
      std::move(data),
      [](ports::FileSystem& files, OpenData& job, Jobs&) { job.result = check_listed(files, job.file->fd(), job.listed); },
      &Impl::checked);
}

void Source::Impl::checked(OpenData& data) {
  Entry& entry = entries_.at(data.slot);
  if (!job_ended(entry)) return;
  LargeFile& large = *entry.large;
  large.phase = LargeFile::Phase::open;
  entry.outcome = data.result;
  if (entry.outcome.outcome != SourceOutcome::ok || !large.wanted.empty()) return settle(entry);
  if (!large.hashes.empty() && large.hashed == large.hashes.size()) {
    large.digest = session::file_digest(large.hashes);
    large.has_digest = true;
  }
  close_large(entry);
  entries_.move(entry, EntryPhase::sent);
  session::FileEnd end;
  end.index = entry.index;
  end.has_digest = large.has_digest;
  end.digest = large.digest;
  file_ends_.push_back(end);
}

void Source::Impl::close_large(Entry& entry) {
  LargeFile& large = *entry.large;
  large.phase = LargeFile::Phase::idle;
  large.file.reset();
  large.hashes = {};
  open_large_.erase(std::remove(open_large_.begin(), open_large_.end(), entries_.slot_of(entry)), open_large_.end());
}

}  // namespace ccixfer::send
