#include "app/send/large_reads.h"

#include <algorithm>
#include <utility>

#include "app/session/holes.h"
#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::send {

using session::SourceOutcome;

static_assert(session::hole_runs_max <= PieceSet::ranges_max);

LargeReads::LargeReads(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, EntryTable& entries, SegmentSink& sink,
                       ReadHandler& handler, Wrapping wrapping)
    : jobs_(std::move(jobs)),
      walk_(std::move(walk)),
      entries_(entries),
      sink_(sink),
      handler_(handler),
      wrapping_(std::move(wrapping)),
      queue_(entries),
      compared_queue_(entries) {}

void LargeReads::want(Entry& entry) {
  entries_.move(entry, EntryPhase::queued);
  entry.large->phase = LargeFile::Phase::waiting;
  (entry.large->is_compared ? compared_queue_ : queue_).push(entry);
}

void LargeReads::want_compared(Entry& entry, bool leads) {
  LargeFile& large = large_file_of(entry);
  large.tells_holes = leads;
  if (large.wanted.empty()) {
    const bool fits = large.wanted.add(0, pieces_of(entry.listed.size_bytes));
    CHECK(fits);  // it is one range
  }
  large.untold = std::exchange(large.wanted, {});
  large.is_compared = true;
  want(entry);
}

Result<void> LargeReads::compare(Entry& entry, const session::Compare& compare) {
  LargeFile& large = *entry.large;
  for (const session::Want::Range& named : large.told_holes.missing(compare.first, compare.first + compare.count)) {
    if (!large.untold.remove(named.first, named.count)) return fail(ErrorKind::protocol, "pieces to compare that are not wanted");
    if (!large.wanted.add(named.first, named.count)) return fail(ErrorKind::protocol, "too many pieces");
  }
  for (size_t at = 0; at < compare.hashes.size(); ++at) {
    if (large.there.insert_or_assign(compare.first + at, compare.hashes[at]).second) ++there_;
  }
  if (there_ > session::compared_pieces_max) return fail(ErrorKind::protocol, "too many pieces to compare at once");
  return {};
}

bool LargeReads::is_elsewhere(Entry& entry, uint64_t first_piece, uint64_t count) {
  for (const session::Want::Range& there : entry.large->told_holes.missing(first_piece, first_piece + count)) {
    if (!entry.large->untold.remove(there.first, there.count)) return false;
  }
  settle(entry);
  return true;
}

void LargeReads::forget_there(LargeFile& large, uint64_t first_piece, uint64_t count) {
  const auto end = large.there.lower_bound(first_piece + count);
  for (auto at = large.there.lower_bound(first_piece); at != end; --there_) at = large.there.erase(at);
}

Entry* LargeReads::next_to_open() {
  if (open_.size() >= large_files_open_max) return nullptr;
  for (EntryQueue* queue : {&compared_queue_, &queue_}) {  // neither keeps the other one out for ever
    if (queue == &compared_queue_ && compared_open_ >= compared_files_open_max) continue;
    Entry* const next = queue->front();
    if (next == nullptr) continue;
    queue->pop();
    return next;
  }
  return nullptr;
}

void LargeReads::start_opens() {
  while (Entry* const next = next_to_open()) {
    Entry& entry = *next;
    if (entry.large->is_compared) ++compared_open_;
    entries_.move(entry, EntryPhase::reading);
    ++entry.jobs;
    entry.large->phase = LargeFile::Phase::opening;
    auto data = std::make_unique<OpenData>();
    data->walk = walk_;
    data->slot = entries_.slot_of(entry);
    data->listed = entry.listed;
    data->place = (*walk_)->place(entry.source, entry.path);
    data->name = std::string(data->place.name);
    data->file = std::make_shared<OpenFile>(jobs_);
    open_.push_back(data->slot);
    jobs_->submit(
        *this, std::move(data),
        [](ports::FileSystem& files, OpenData& job, Jobs& jobs) {
          job.place.name = job.name;
          const int fd = open_listed(files, job.place, job.listed, job.result, &jobs.steps());
          job.file->set(fd);
          if (fd >= 0) job.holes = session::find_holes(files, fd, job.listed.size_bytes);
        },
        &LargeReads::opened);
  }
}

void LargeReads::opened(OpenData& data) {
  Entry& entry = entries_.at(data.slot);
  if (!entries_.job_ended(entry)) return;
  LargeFile& large = *entry.large;
  large.phase = LargeFile::Phase::open;
  large.file = std::move(data.file);
  entry.outcome = data.result;
  const uint64_t pieces = pieces_of(entry.listed.size_bytes);
  if (!large.has_digest && large.wanted.count() + large.untold.count() == pieces && pieces <= digest_pieces_max) {
    large.hashes.assign(pieces, Hash128{});
    large.hashed = 0;
  }
  leave_out_holes(entry, data.holes);
  settle(entry);
}

void LargeReads::leave_out_holes(Entry& entry, const std::vector<session::Want::Range>& holes) {
  LargeFile& large = *entry.large;
  if (large.is_compared && !large.tells_holes) return;
  session::Holes told;
  told.index = entry.index;
  uint64_t bytes = 0;
  const auto leave_out = [&](const session::Want::Range& cut) {
    if (large.is_compared) {
      const bool fits = large.told_holes.add(cut.first, cut.count);
      CHECK(fits);  // there are no more of them than hole_runs_max
    }
    static_cast<void>(large.again.remove_range(cut.first, cut.first + cut.count));
    const uint64_t end_bytes = std::min((cut.first + cut.count) * session::piece_bytes, entry.listed.size_bytes);
    bytes += end_bytes - cut.first * session::piece_bytes;
    for (uint64_t piece = cut.first; piece < cut.first + cut.count && piece < large.hashes.size(); ++piece) {
      large.hashes[piece] =
          session::hash_of_zeros(std::min<uint64_t>(session::piece_bytes, entry.listed.size_bytes - piece * session::piece_bytes));
      ++large.hashed;
    }
    told.ranges.push_back(cut);
  };
  for (const session::Want::Range& hole : holes) {
    for (const session::Want::Range& cut : large.wanted.remove_range(hole.first, hole.first + hole.count)) leave_out(cut);
    if (!large.is_compared) continue;
    for (const session::Want::Range& cut : large.untold.remove_range(hole.first, hole.first + hole.count)) leave_out(cut);
  }
  if (!told.ranges.empty()) handler_.on_holes(std::move(told), bytes);
}

bool LargeReads::start_piece(const ReadPace& pace, BufferShare& buffers) {
  for (const uint32_t slot : open_) {
    Entry& entry = entries_.at(slot);
    LargeFile& large = *entry.large;
    if (large.phase != LargeFile::Phase::open || large.wanted.empty() || entry.outcome.outcome != SourceOutcome::ok) continue;
    if (!buffers.may_lend(pace.keep_one)) return false;
    auto data = std::make_unique<PieceData>();
    data->slot = slot;
    data->piece = large.wanted.take();
    data->size_bytes = entry.listed.size_bytes;
    data->file = large.file;
    if (routes_ != nullptr && large.is_compared) data->route = routes_->route_of(entry.index);
    data->wrapping = data->route ? data->route->wrapping : wrapping_;
    data->buffer = buffers.lend();
    data->resend = large.again.remove(data->piece);
    if (const auto there = large.there.find(data->piece); there != large.there.end()) {
      data->there = there->second;
      large.there.erase(there);
      --there_;
    }
    ++entry.jobs;
    ++large.reading;
    ++reading_;
    jobs_->submit(
        *this, std::move(data), [](ports::FileSystem& files, PieceData& job, Jobs&) { read(files, job); }, &LargeReads::piece_read);
    return true;
  }
  return false;
}

void LargeReads::read(ports::FileSystem& files, PieceData& job) {
  const int fd = job.file->fd();
  session::DataSealer* const sealer = job.wrapping.sealer.get();
  // A file that is shown cannot be sealed in its place; but whether it is the same can be seen there.
  const bool is_shown = sealer == nullptr || job.there;
  if (is_shown) job.read = show_or_read_piece(files, fd, job.piece, job.size_bytes, job.buffer.loan());
  if (is_shown && job.read.result.outcome != SourceOutcome::ok) return;
  job.same = job.there && job.read.hash == *job.there;
  if (job.same) return;
  if (sealer != nullptr) {
    job.buffer.loan().hide();
    session::DataSealer* const at_once = job.wrapping.compressor ? nullptr : sealer;
    job.read = read_piece(files, fd, job.piece, job.size_bytes, job.buffer.bytes(), at_once);
    job.wrapped.mark = job.read.mark;
  }
  job.wrapped.data_bytes = job.read.data_bytes;
  if (!job.wrapping.compressor || job.read.result.outcome != SourceOutcome::ok) return;
  job.wrapped = wrap(job.wrapping, job.buffer.loan(), job.read.data_bytes);
}

void LargeReads::piece_read(PieceData& data) {
  --reading_;
  Entry& entry = entries_.at(data.slot);
  --entry.large->reading;
  if (!entries_.job_ended(entry)) return;
  LargeFile& large = *entry.large;
  if (data.read.result.outcome != SourceOutcome::ok) {
    if (entry.outcome.outcome == SourceOutcome::ok) entry.outcome = data.read.result;
  } else if (entry.outcome.outcome == SourceOutcome::ok) {
    if (!data.same && data.route && data.route->is_closed) {
      read_again(entry, data);
      return settle(entry);
    }
    if (data.piece < large.hashes.size() && !data.resend) {
      large.hashes[data.piece] = data.read.hash;
      ++large.hashed;
    }
    if (data.same) {
      same_bytes_ += data.read.data_bytes;
      handler_.on_same(entry, data.piece);
      return settle(entry);
    }
    FilledSegment segment;
    segment.header.kind = session::SegmentKind::piece;
    segment.header.index = data.route ? data.route->index : entry.index;
    segment.header.sequence = data.piece;
    segment.header.file_version = entry.listed.version;
    segment.header.hash = data.read.hash;
    put_into(data.wrapped, segment.header);
    segment.buffer = std::move(data.buffer);
    segment.payload_bytes = data.read.data_bytes;
    segment.resend = data.resend;
    SegmentSink& sink = data.route ? *data.route->sink : sink_;
    sink.add(std::move(segment));
  }
  settle(entry);
}

// It was wrapped for a session that is gone meanwhile.
void LargeReads::read_again(Entry& entry, const PieceData& data) {
  LargeFile& large = *entry.large;
  const bool fits = large.wanted.add(data.piece, 1) && (!data.resend || large.again.add(data.piece, 1));
  if (!fits) entry.outcome.outcome = SourceOutcome::unreadable;
}

// What a large file needs next, if it needs anything. Called whenever something of the file ended.
void LargeReads::settle(Entry& entry) {
  if (entry.phase != EntryPhase::reading) return;
  LargeFile& large = *entry.large;
  if (large.phase != LargeFile::Phase::open || large.reading > 0) return;
  if (entry.outcome.outcome != SourceOutcome::ok) {
    close(entry);
    return refuse(entries_, entry, entry.outcome, handler_);
  }
  if (!large.wanted.empty() || !large.untold.empty()) return;
  large.phase = LargeFile::Phase::checking;
  ++entry.jobs;
  auto data = std::make_unique<OpenData>();
  data->slot = entries_.slot_of(entry);
  data->listed = entry.listed;
  data->file = large.file;
  jobs_->submit(
      *this, std::move(data),
      [](ports::FileSystem& files, OpenData& job, Jobs&) { job.result = check_listed(files, job.file->fd(), job.listed); },
      &LargeReads::checked);
}

void LargeReads::checked(OpenData& data) {
  Entry& entry = entries_.at(data.slot);
  if (!entries_.job_ended(entry)) return;
  LargeFile& large = *entry.large;
  large.phase = LargeFile::Phase::open;
  entry.outcome = data.result;
  if (entry.outcome.outcome != SourceOutcome::ok || !large.wanted.empty()) return settle(entry);
  if (!large.hashes.empty() && large.hashed == large.hashes.size()) {
    large.digest = session::file_digest(large.hashes);
    large.has_digest = true;
  }
  close(entry);
  entries_.move(entry, EntryPhase::sent);
  session::FileEnd end;
  end.index = entry.index;
  end.has_digest = large.has_digest;
  end.digest = large.digest;
  handler_.on_file_end(end);
}

void LargeReads::entry_ends(Entry& entry) {
  if (routes_ != nullptr) routes_->file_ended(entry.index);
  there_ -= std::exchange(entry.large->there, {}).size();
  if (entry.phase == EntryPhase::reading) close(entry);  // jobs that still read it hold the file
}

void LargeReads::close(Entry& entry) {
  LargeFile& large = *entry.large;
  large.phase = LargeFile::Phase::idle;
  large.file.reset();
  large.hashes = {};
  const bool was_open = std::erase(open_, entries_.slot_of(entry)) > 0;
  if (was_open && large.is_compared) --compared_open_;
}

}  // namespace ccixfer::send
