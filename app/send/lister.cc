#include "app/send/lister.h"

#include <algorithm>

#include "app/send/reader.h"

namespace ccixfer::send {
namespace {

bool is_file(const WalkRecord& record) { return record.kind == WalkRecord::Kind::entry && record.type == session::EntryType::file; }

}  // namespace

Lister::Lister(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, bool digests, ListerHandler& handler)
    : jobs_(std::move(jobs)), walk_(std::move(walk)), digests_(digests), handler_(handler) {}

void Lister::select() {
  auto data = std::make_unique<SelectData>();
  data->walk = walk_;
  jobs_->submit(
      *this, std::move(data),
      [](ports::FileSystem& files, SelectData& job, Jobs&) {
        const Result<void> selected = (*job.walk)->select(files);
        if (!selected) job.error = selected.error();
      },
      &Lister::selected);
}

void Lister::selected(SelectData& data) {
  if (data.error) return handler_.on_selection_failed(*data.error);
  selected_ = true;
}

void Lister::release_roots(const EntryTable& entries) {
  for (; sources_released_ < listings_.sources_announced(); ++sources_released_) {
    if ((*walk_)->is_directory(sources_released_)) open_roots_.push_back(sources_released_);
  }
  const auto is_over = [&](uint32_t source) {
    if (entries.has_entries_of(source)) return false;
    if (const int fd = (*walk_)->take_root(source); fd >= 0) jobs_->release(fd);
    return true;
  };
  open_roots_.erase(std::remove_if(open_roots_.begin(), open_roots_.end(), is_over), open_roots_.end());
}

void Lister::advance_walk() {
  const size_t ahead = digests_ ? batches_ahead_max + digest_jobs_max : batches_ahead_max;
  if (!selected_ || walk_over_ || walking_ || listings_.batches() >= ahead) return;
  const bool may_open_root = open_roots_.size() + 1 < roots_open_max;
  if (wants_root_ && !may_open_root) return;
  walking_ = true;
  auto data = std::make_unique<WalkData>();
  data->walk = walk_;
  data->batch = std::make_shared<WalkBatch>();
  data->may_open_root = may_open_root;
  jobs_->submit(
      *this, std::move(data),
      [](ports::FileSystem& files, WalkData& walk, Jobs&) { (*walk.walk)->step(files, *walk.batch, walk.may_open_root); },
      &Lister::walked);
}

void Lister::walked(WalkData& data) {
  walking_ = false;
  walk_over_ = data.batch->done;
  if (data.batch->error) return handler_.on_selection_failed(*data.batch->error);
  wants_root_ = data.batch->wants_root;
  const std::vector<WalkRecord>& records = data.batch->records;
  uint64_t bytes = 0;
  for (const WalkRecord& record : records) {
    if (is_file(record) && !(*walk_)->is_stream(record.source)) bytes += record.stat.size_bytes;
  }
  handler_.on_listed(bytes);
  const bool needs_digests = digests_ && std::any_of(records.begin(), records.end(), is_file);
  listings_.add(std::move(data.batch), needs_digests);
}

void Lister::start_digests(BufferShare& buffers, bool keep_one) {
  while (digest_jobs_ < digest_jobs_max) {
    const std::optional<uint64_t> number = listings_.next_without_digests();
    if (!number || !buffers.may_lend(keep_one)) return;
    auto data = std::make_unique<DigestData>();
    data->walk = walk_;
    data->batch = listings_.start_digests(*number);
    data->number = *number;
    data->buffer = buffers.lend();
    ++digest_jobs_;
    jobs_->submit(*this, std::move(data), &Lister::read_digests, &Lister::digested);
  }
}

void Lister::read_digests(ports::FileSystem& files, DigestData& data, Jobs& jobs) {
  WalkBatch& batch = *data.batch;
  for (WalkRecord& record : batch.records) {
    if (!is_file(record) || (*data.walk)->is_stream(record.source)) continue;
    const Listed listed{record.stat.size_bytes, record.stat.mtime, version_of(record.stat)};
    const SourcePlace place = (*data.walk)->place(record.source, batch.path(record));
    record.has_digest = digest_file(files, place, listed, data.buffer.bytes(), record.digest, jobs.steps());
  }
}

void Lister::digested(DigestData& data) {
  --digest_jobs_;
  listings_.digested(data.number);
}

}  // namespace ccixfer::send
