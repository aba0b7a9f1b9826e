#include "app/send/announcer.h"

#include <algorithm>

#include "app/session/extended.h"
#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::send {

using session::EntryType;

Announcer::Announcer(const Walk& walk, EntryTable& entries, SegmentSink& sink, AnnouncerHandler& handler,
                     std::shared_ptr<session::DataSealer> sealer, bool keeps_targets, session::TweaksRef tweaks)
    : walk_(walk),
      entries_(entries),
      sink_(sink),
      handler_(handler),
      sealer_(std::move(sealer)),
      keeps_targets_(keeps_targets),
      tweaks_(std::move(tweaks)) {}

session::FirstEntries Announcer::first_entries(Listings& listings, size_t bytes_max) {
  CHECK(next_sequence_ == 0);
  session::FirstEntries first;
  first.bytes.resize(bytes_max);
  session::EntryEncoder encoder(first.bytes);
  // What is no entry is told once the session is open.
  for (const WalkRecord* record = listings.front(); record != nullptr && record->kind == WalkRecord::Kind::entry;
       record = listings.front()) {
    describe(listings);
    if (!encoder.add(entry_)) break;
    add_to_table(*record);
    listings.pop();
  }
  first.count = encoder.count();
  first.bytes.resize(encoder.size_bytes());
  if (first.count > 0) ++next_sequence_;
  return first;
}

void Announcer::announce(Listings& listings, BufferShare& buffers, uint32_t in_buffers) {
  if (copies_wanted_again_ && !announce_again(buffers, in_buffers)) return;
  if (paused_ && entries_.used() <= entries_resume_at) paused_ = false;
  const uint32_t in_buffers_max = std::max<uint32_t>(1, std::min<uint32_t>(entries_segments_max, buffers.pool_buffers() / 2));
  while (!paused_ && has_room() && listings.front() != nullptr && in_buffers < in_buffers_max) {
    FilledSegment segment;
    segment.buffer = buffers.lend_for_entries(false);
    if (!segment.buffer) return;
    if (!fill(listings, segment.buffer.bytes().first(session::entries_segment_bytes), segment.header)) continue;
    const Bytes data = segment.buffer.bytes().first(segment.header.data_bytes);
    segment.header.hash = xxh3_128(data);
    copies_.push_back({segment.header, {data.begin(), data.end()}, false});
    copied_bytes_ += data.size() + session::segment_trailer_bytes;
    ++in_buffers;
    seal(segment);
    sink_.add(std::move(segment));
  }
}

void Announcer::seal(FilledSegment& segment) const {
  session::SealingPass pass(sealer_.get());
  pass.update(segment.buffer.bytes().first(segment.header.data_bytes));
  segment.header.mark = pass.finish();
}

bool Announcer::announce_again(BufferShare& buffers, uint32_t& in_buffers) {
  for (Copy& copy : copies_) {
    if (!copy.wanted_again) continue;
    FilledSegment segment;
    segment.buffer = buffers.lend_for_entries(true);
    if (!segment.buffer) return false;
    std::copy(copy.data.begin(), copy.data.end(), segment.buffer.bytes().begin());
    copy.wanted_again = false;
    segment.header = copy.header;
    segment.resend = true;
    ++in_buffers;
    seal(segment);
    sink_.add(std::move(segment));
  }
  copies_wanted_again_ = false;
  return true;
}

bool Announcer::fill(Listings& listings, MutableBytes into, session::SegmentHeader& header) {
  session::EntryEncoder encoder(into);
  header.kind = session::SegmentKind::entries;
  header.index = next_index_;
  for (const WalkRecord* record = listings.front(); record != nullptr; record = listings.front()) {
    if (record->kind != WalkRecord::Kind::entry) {
      const std::string_view path = record->path_bytes > 0 ? listings.front_path() : walk_.given(record->source);
      handler_.on_not_listed(record->kind, path, listings.front_more());
    } else {
      paused_ = entries_.used() >= session::entries_outstanding_max;
      if (paused_) break;
      describe(listings);
      if (!encoder.add(entry_)) break;
      add_to_table(*record);
    }
    listings.pop();
  }
  header.data_bytes = encoder.size_bytes();
  header.count = encoder.count();
  if (encoder.count() > 0) header.sequence = next_sequence_++;
  return encoder.count() > 0;
}

void Announcer::describe(const Listings& listings) {
  const WalkRecord& record = *listings.front();
  const bool file = record.type == EntryType::file;
  const bool is_one_thing = record.type != EntryType::directory && record.type != EntryType::leave;
  const bool may_go_into_a_directory = is_one_thing && record.path_bytes == 0 && !walk_.is_stream(record.source);
  entry_.type = record.type;
  entry_.path.assign(listings.front_path());
  entry_.name = may_go_into_a_directory ? Walk::own_name(walk_.given(record.source)) : std::string();
  entry_.mode = record.stat.mode;
  entry_.uid = record.stat.uid;
  entry_.gid = record.stat.gid;
  entry_.size_bytes = file ? record.stat.size_bytes : 0;
  entry_.mtime = record.stat.mtime;
  entry_.version = file ? version_of(record.stat) : 0;
  const bool is_leave = record.type == EntryType::leave;
  entry_.target.assign(is_leave ? std::string_view{} : listings.front_more());
  entry_.is_whole = is_leave && record.is_whole;
  entry_.left_out.clear();
  for (std::string_view names = is_leave ? listings.front_more() : std::string_view{}; !names.empty();) {
    const size_t end = names.find('\0');
    entry_.left_out.emplace_back(names.substr(0, end));
    names.remove_prefix(end + 1);
  }
  entry_.is_linked = record.is_linked;
  const WalkBatch& batch = listings.front_batch();
  entry_.linked_to.assign(batch.linked_to(record));
  const bool is_special = record.type == EntryType::device || record.type == EntryType::special;
  entry_.special = is_special ? record.stat.special : ports::SpecialKind::none;
  entry_.special_device = is_special ? record.stat.special_device : 0;
  entry_.user.assign(batch.user(record));
  entry_.group.assign(batch.group(record));
  entry_.has_extended = record.has_extended;
  const bool is_list = session::decode_extended(as_bytes(batch.extended(record)), entry_.extended);
  CHECK(is_list || !record.has_extended);  // the walk has encoded it
  entry_.has_digest = record.has_digest;
  entry_.digest = record.digest;
  if (tweaks_) session::apply(*tweaks_, entry_);
}

void Announcer::add_to_table(const WalkRecord& record) {
  Entry& entry = entries_.at(entries_.add(next_index_++, record.source));
  entry.type = entry_.type;
  entry.stream = record.type == EntryType::file && walk_.is_stream(record.source);
  entry.listed = {entry.stream ? 0 : entry_.size_bytes, entry_.mtime, entry_.version};
  entry.mode = static_cast<uint16_t>(entry_.mode & 07777u);
  entry.path.assign(entry_.path);
  entry.is_further_name = !entry_.linked_to.empty();
  if (keeps_targets_) entry.target.assign(entry_.target);
  if (keeps_targets_) entry.linked_to.assign(entry_.linked_to);
  if (entry.type == EntryType::file) entry.counted_bytes = entry.listed.size_bytes;
}

bool Announcer::has_room() const {
  return copied_bytes_ + session::entries_segment_bytes + session::segment_trailer_bytes <= session::entries_unanswered_bytes_max;
}

void Announcer::answered_before(uint64_t index) {
  while (!copies_.empty() && copies_.front().header.index + copies_.front().header.count <= index) {
    copied_bytes_ -= copies_.front().data.size() + session::segment_trailer_bytes;
    copies_.drop_front();
  }
}

void Announcer::want_again(uint64_t sequence) {
  for (Copy& copy : copies_) {
    if (copy.header.sequence == sequence) copy.wanted_again = copies_wanted_again_ = true;
  }
}

}  // namespace ccixfer::send
