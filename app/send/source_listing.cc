// Walk, digests for --checksum, and the entries segments made of them.
#include <algorithm>

#include "app/send/source_machine.h"
#include "app/session/limits.h"
#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::send {

using session::EntryType;

void Source::Impl::selected(SelectData& data) {
  if (data.error) return fail_session(data.error->kind, data.error->message);
  selected_ = true;
}

void Source::Impl::walk_on() {
  const bool checksum = option(session::option_checksum);
  const size_t ahead = checksum ? batches_ahead_max + digest_jobs_max : batches_ahead_max;
  if (!selected_ || walk_over_ || walking_ || listings_.size() >= ahead) return;
  const bool may_open_root = open_roots_.size() + 1 < roots_open_max;
  if (wants_root_ && !may_open_root) return;
  walking_ = true;
  auto data = std::make_unique<WalkData>();
  data->walk = walk_;
  data->batch = std::make_shared<WalkBatch>();
  data->may_open_root = may_open_root;
  submit(
      std::move(data),
      [](ports::FileSystem& files, WalkData& walk, Jobs&) { (*walk.walk)->step(files, *walk.batch, walk.may_open_root); },
      &Impl::walked);
}

void Source::Impl::walked(WalkData& data) {
  walking_ = false;
  walk_over_ = data.batch->done;
  wants_root_ = data.batch->wants_root;
  const auto is_file = [](const WalkRecord& record) {
    return record.kind == WalkRecord::Kind::entry && record.type == EntryType::file;
  };
  Listing listing;
  listing.batch = std::move(data.batch);
  const std::vector<WalkRecord>& records = listing.batch->records;
  listing.ready = !option(session::option_checksum) || std::none_of(records.begin(), records.end(), is_file);
  for (const WalkRecord& record : records) {
    if (is_file(record) && !(*walk_)->is_stream(record.source)) totals_.bytes_total += record.stat.size_bytes;
  }
  listings_.push_back(std::move(listing));
}

void Source::Impl::digest_on() {
  for (size_t i = 0; i < listings_.size() && digest_jobs_ < digest_jobs_max; ++i) {
    Listing& listing = listings_[i];
    if (listing.ready || listing.started) continue;
    if (!buffers_.may_lend(keep_one())) return;
    auto data = std::make_unique<DigestData>();
    data->walk = walk_;
    data->batch = listing.batch;
    data->number = first_listing_ + i;
    data->buffer = buffers_.lend();
    listing.started = true;
    ++digest_jobs_;
    submit(
        std::move(data),
        [](ports::FileSystem& files, DigestData& digest, Jobs& jobs) {
          WalkBatch& batch = *digest.batch;
          for (WalkRecord& record : batch.records) {
            if (record.kind != WalkRecord::Kind::entry || record.type != EntryType::file) continue;
            if ((*digest.walk)->is_stream(record.source)) continue;
            const Listed listed{record.stat.size_bytes, record.stat.mtime, version_of(record.stat)};
            const SourcePlace place = (*digest.walk)->place(record.source, batch.path(record));
            record.has_digest = digest_file(files, place, listed, digest.buffer.bytes(), record.digest, jobs.steps());
          }
        },
        &Impl::digested);
  }
}

void Source::Impl::digested(DigestData& data) {
  --digest_jobs_;
  CHECK(data.number >= first_listing_ && data.number - first_listing_ < listings_.size());
  listings_[data.number - first_listing_].ready = true;
}

void Source::Impl::tell_record(const WalkBatch& batch, const WalkRecord& record) {
  const std::string_view path = record.path_bytes > 0 ? batch.path(record) : std::string_view((*walk_)->given(record.source));
  observer_.on_warning(printable(path) + ": " + std::string(batch.more(record)));
  if (record.kind == WalkRecord::Kind::warning) return observer_.on_file(path, 0, "skipped", batch.more(record));
  const bool vanished = record.kind == WalkRecord::Kind::vanished;
  ++(vanished ? totals_.files_vanished : totals_.files_failed);
  ++(vanished ? unlisted_vanished_ : unlisted_failed_);
  const std::string_view reason = vanished ? std::string_view("vanished") : batch.more(record);
  if (record_->say(session::TransferRecord::name(path, 0), session::TransferRecord::Said::failed))
    observer_.on_file(path, 0, "failed", reason);
  // Whoever pulls has no other way to learn the names.
  if (unlisted_vanished_ + unlisted_failed_ > session::unlisted_named_max) return;
  link_.post(session::Unlisted{vanished, std::string(path), std::string(reason)});
}

bool Source::Impl::announce_again() {
  for (EntriesCopy& copy : entries_copies_) {
    if (!copy.wanted_again) continue;
    FilledSegment segment;
    segment.buffer = buffers_.lend_for_entries(true);
    if (!segment.buffer) return false;
    std::copy(copy.data.begin(), copy.data.end(), segment.buffer.bytes().begin());
    copy.wanted_again = false;
    segment.header = copy.header;
    segment.resend = true;
    sender_.add(std::move(segment));
  }
  entries_wanted_again_ = false;
  return true;
}

void Source::Impl::announce() {
  if (entries_wanted_again_ && !announce_again()) return;
  if (paused_ && entries_.used() <= entries_resume_at) paused_ = false;
  const uint32_t segments = std::max<uint32_t>(1, std::min<uint32_t>(entries_segments_max, buffers_.pool_buffers() / 2));
  while (!paused_ && !listings_.empty() && listings_.front().ready && sender_.entries_segments() < segments) {
    FilledSegment segment;
    segment.buffer = buffers_.lend_for_entries(false);
    if (!segment.buffer) return;
    session::SegmentHeader& header = segment.header;
    if (!fill_entries(segment.buffer.bytes().first(session::entries_segment_bytes), header)) continue;
    header.hash = xxh3_128(segment.buffer.bytes().first(header.data_bytes));
    const Bytes data = segment.buffer.bytes().first(header.data_bytes);
    entries_copies_.push_back({header, {data.begin(), data.end()}, false});
    sender_.add(std::move(segment));
  }
}

bool Source::Impl::fill_entries(MutableBytes into, session::SegmentHeader& header) {
  session::EntryEncoder encoder(into);
  const uint64_t first_index = next_index_;
  bool full = false;
  while (!full && !listings_.empty() && listings_.front().ready) {
    Listing& listing = listings_.front();
    const WalkBatch& batch = *listing.batch;
    for (; listing.next < batch.records.size(); ++listing.next) {
      const WalkRecord& record = batch.records[listing.next];
      if (record.kind != WalkRecord::Kind::entry) {
        tell_record(batch, record);
        continue;
      }
      paused_ = entries_.used() >= session::entries_outstanding_max;
      entry_.type = record.type;
      entry_.path.assign(batch.path(record));
      const bool is_one_thing = record.type == EntryType::file || record.type == EntryType::symlink;
      const bool may_go_into_a_directory = is_one_thing && record.path_bytes == 0 && !(*walk_)->is_stream(record.source);
      entry_.name = may_go_into_a_directory ? Walk::own_name((*walk_)->given(record.source)) : std::string();
      entry_.mode = record.stat.mode;
      entry_.uid = record.stat.uid;
      entry_.gid = record.stat.gid;
      entry_.size_bytes = record.type == EntryType::file ? record.stat.size_bytes : 0;
      entry_.mtime = record.stat.mtime;
      entry_.version = record.type == EntryType::file ? version_of(record.stat) : 0;
      entry_.target.assign(batch.more(record));
      entry_.has_digest = record.has_digest;
      entry_.digest = record.digest;
      full = paused_ || !encoder.add(entry_);
      if (full) break;
      Entry& entry = entries_.at(entries_.add(next_index_++, record.source));
      entry.type = entry_.type;
      entry.stream = record.type == EntryType::file && (*walk_)->is_stream(record.source);
      entry.listed = {entry.stream ? 0 : entry_.size_bytes, entry_.mtime, entry_.version};
      entry.path.assign(entry_.path);
      if (entry.type == EntryType::file) entry.counted_bytes = entry.listed.size_bytes;
    }
    if (!full) listing_done();
  }
  header.kind = session::SegmentKind::entries;
  header.index = first_index;
  header.data_bytes = encoder.size_bytes();
  header.count = encoder.count();
  if (encoder.count() > 0) header.sequence = next_sequence_++;
  return encoder.count() > 0;
}

void Source::Impl::listing_done() {
  sources_announced_ = listings_.front().batch->sources_walked;
  listings_.drop_front();
  ++first_listing_;
}

// Closes the roots of sources that are announced and have no entries left.
void Source::Impl::release_roots() {
  for (; sources_released_ < sources_announced_; ++sources_released_) {
    if ((*walk_)->is_directory(sources_released_)) open_roots_.push_back(sources_released_);
  }
  const auto is_over = [this](uint32_t source) {
    if (entries_.has_entries_of(source)) return false;
    if (const int fd = (*walk_)->take_root(source); fd >= 0) jobs_->release(fd);
    return true;
  };
  open_roots_.erase(std::remove_if(open_roots_.begin(), open_roots_.end(), is_over), open_roots_.end());
}

void Source::Impl::end_of_listing() {
  if (!walk_over_ || !listings_.empty() || end_posted_) return;
  totals_.walk_done = true;
  end_posted_ = true;
  link_.post(session::End{next_index_, unlisted_failed_, unlisted_vanished_});
}

}  // namespace ccixfer::send
