#include "app/send/pack_reads.h"

#include "app/session/limits.h"

namespace ccixfer::send {

using session::SourceOutcome;

namespace {

uint64_t bytes_in_pack(const Entry& entry) { return entry.listed.size_bytes + session::pack_record_bytes; }

}  // namespace

PackReads::PackReads(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, EntryTable& entries, SegmentSink& sink,
                     ReadHandler& handler, Wrapping wrapping)
    : jobs_(std::move(jobs)),
      walk_(std::move(walk)),
      entries_(entries),
      sink_(sink),
      handler_(handler),
      wrapping_(std::move(wrapping)),
      queue_(entries) {}

void PackReads::want(Entry& entry) {
  entries_.move(entry, EntryPhase::queued);
  queue_.push(entry);
  wanted_bytes_ += bytes_in_pack(entry);
  ++wanted_count_;
}

void PackReads::entry_ends(Entry& entry) {
  if (entry.phase != EntryPhase::queued) return;
  wanted_bytes_ -= bytes_in_pack(entry);
  --wanted_count_;
}

// A pack that is not full goes only when it keeps nobody waiting for more.
bool PackReads::is_due(const ReadPace& pace, uint32_t reading) const {
  if (wanted_count_ == 0) return false;
  if (wanted_bytes_ >= session::piece_bytes || wanted_count_ >= session::pack_files_max) return true;
  if (reading_ > 0) return false;
  return pace.all_is_wanted || (reading == 0 && pace.segments_ready == 0 && pace.lane_is_idle);
}

bool PackReads::start(const ReadPace& pace, uint32_t reading, BufferShare& buffers) {
  if (!is_due(pace, reading) || !buffers.may_lend(pace.keep_one)) return false;
  auto data = std::make_unique<PackData>();
  for (Entry* entry = queue_.front(); entry != nullptr; entry = queue_.front()) {
    if (data->pack.items.size() >= session::pack_files_max) break;
    if (data->pack.planned_bytes + bytes_in_pack(*entry) > session::piece_bytes) break;
    queue_.pop();
    add_item(*data, *entry);
  }
  if (data->pack.items.empty()) return false;
  data->walk = walk_;
  data->wrapping = wrapping_;
  data->buffer = buffers.lend();
  ++reading_;
  jobs_->submit(
      *this, std::move(data),
      [](ports::FileSystem& files, PackData& job, Jobs& jobs) {
        read_pack(files, job.pack, job.buffer.bytes(), &jobs.steps());
        job.wrapped = wrap(job.wrapping, job.buffer.loan(), job.pack.data_bytes);
      },
      &PackReads::pack_read);
  return true;
}

void PackReads::add_item(PackData& data, Entry& entry) {
  entries_.move(entry, EntryPhase::reading);
  ++entry.jobs;
  wanted_bytes_ -= bytes_in_pack(entry);
  --wanted_count_;
  SourcePlace place = (*walk_)->place(entry.source, entry.path);
  Pack& pack = data.pack;
  PackItem item;
  item.index = entry.index;
  item.slot = entries_.slot_of(entry);
  item.directory = place.directory;
  item.follow = place.follow;
  item.others = std::move(place.others);
  item.name_at = static_cast<uint32_t>(pack.names.size());
  item.name_bytes = static_cast<uint32_t>(place.name.size());
  item.listed = entry.listed;
  pack.names.append(place.name);
  pack.planned_bytes += bytes_in_pack(entry);
  pack.items.push_back(item);
  data.resend = data.resend || entry.resend;
}

void PackReads::pack_read(PackData& data) {
  --reading_;
  FilledSegment segment;
  segment.files.reserve(data.pack.items.size());
  for (const PackItem& item : data.pack.items) {
    const bool read = item.result.outcome == SourceOutcome::ok;
    if (read) segment.files.push_back(item.index);
    Entry& entry = entries_.at(item.slot);
    if (!entries_.job_ended(entry)) continue;
    if (read) {
      entry.outcome = item.result;
      entries_.move(entry, EntryPhase::sent);
    } else {
      refuse(entries_, entry, item.result, handler_);
    }
  }
  if (data.pack.count == 0) return;
  segment.buffer = std::move(data.buffer);
  segment.header.kind = session::SegmentKind::pack;
  put_into(data.wrapped, segment.header);
  segment.header.count = data.pack.count;
  segment.header.hash = data.pack.hash;
  segment.payload_bytes = data.pack.content_bytes;
  segment.resend = data.resend;
  sink_.add(std::move(segment));
}

}  // namespace ccixfer::send
