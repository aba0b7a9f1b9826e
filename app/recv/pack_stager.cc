#include "app/recv/pack_stager.h"

#include <memory>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::recv {

// The files of the pack that still want their content. Without a seal the list is read before its
// hash was checked: it only finds our own records, and the job checks before it writes. False: the
// list is damaged, and no file was taken.
bool PackStager::take_wanted(const ReceivedSegment& arrival, const session::SegmentHeader& header, std::vector<PackItem>& items) {
  items.reserve(header.count);
  Bytes rest = Bytes(arrival.buffer.bytes()).first(header.data_bytes);
  session::PackRecord record;
  for (uint32_t i = 0; i < header.count; ++i) {
    const bool is_read = session::next_pack_record(rest, record);
    FileInWork* file = is_read ? files_.find(record.index) : nullptr;
    // A record says what its file's entry said, or it is damaged: limits go by what was announced.
    const bool is_as_announced =
        file == nullptr || file->task().size_bytes == size_unknown || file->task().size_bytes == record.content.size();
    if (!is_read || !is_as_announced) {
      for (const PackItem& item : items) {
        FileInWork& taken = *files_.find(item.task->index);
        taken.drop_pack();
        taken.let_go();
      }
      return false;
    }
    if (file == nullptr || !file->begin_pack()) continue;  // it has ended, or its content is here already
    file->hold();
    PackItem item;
    item.task = file->task_ref();
    item.content = record.content;
    items.push_back(std::move(item));
  }
  return true;
}

void PackStager::receive(ReceivedSegment arrival, const session::SegmentHeader& header) {
  auto work = std::make_shared<Work>();
  work->arrival = std::move(arrival);
  work->header = header;
  if (!is_sealed_ && !header.is_compressed()) return take(work);
  jobs_.submit([this, work] { open(*work); },
               [this, work] {
                 if (work->is_damaged) return damaged(*work);
                 if (work->is_malformed) {
                   inbox_.release(work->arrival);
                   return session_.refuse({ErrorKind::protocol, words_of_malformed});
                 }
                 session_.has_failed() ? inbox_.release(work->arrival) : take(work);
               });
}

void PackStager::open(Work& work) const {
  if (work.header.is_compressed()) {
    const session::Decompressed outcome = steps_.decompress(work.arrival.buffer.bytes(), work.header);
    work.is_open = outcome == session::Decompressed::ok;
    work.is_damaged = outcome == session::Decompressed::damaged;
    work.is_malformed = outcome == session::Decompressed::malformed;
    return;
  }
  const MutableBytes segment = work.arrival.buffer.bytes().first(static_cast<size_t>(work.arrival.length_bytes));
  work.is_open = steps_.open(segment, work.header);
  work.is_damaged = !work.is_open;
}

void PackStager::damaged(Work& work) {
  inbox_.release(work.arrival);
  session_.ask_for_put(work.arrival.lane_session, work.arrival.n);
}

// Where nothing is to be written the data are checked all the same: it may be that a damaged number named no file that waits.
void PackStager::take(const std::shared_ptr<Work>& work) {
  if (!take_wanted(work->arrival, work->header, work->items)) return damaged(*work);
  jobs_.submit(
      [this, work] {
        if (!work->is_open) open(*work);
        if (work->is_open) steps_.stage(work->items);
      },
      [this, work] {
        if (work->is_damaged) {
          damaged(*work);
        } else {
          session_.opened(true);
          inbox_.release(work->arrival);
        }
        staged(work->items, work->is_damaged);
      });
}

void PackStager::staged(std::vector<PackItem>& items, bool is_damaged) {
  for (PackItem& item : items) {
    FileInWork* file = files_.find(item.task->index);
    CHECK(file != nullptr);
    file->let_go();
    staged_one(*file, item, is_damaged);
  }
}

void PackStager::staged_one(FileInWork& file, PackItem& item, bool is_damaged) {
  if (!item.staged.empty()) {
    CommitItem commit;
    commit.task = file.task_ref();
    commit.staged = std::move(item.staged);
    commit.size_bytes = item.content.size();
    commit.mark = item.mark;
    commit.hash = item.hash;
    commit.verified = item.verified;
    commit.attributes_refused = item.attributes_refused;
    files_.on_staged(file, std::move(commit));
  } else if (session_.has_failed()) {
    return;
  } else if (is_damaged) {
    file.drop_pack();
  } else if (is_fatal(item.error_number)) {
    session_.fail(fatal_error(item.error_number, item.task->path));
  } else if (item.digest_differs) {
    files_.on_failed(file, {ErrorKind::integrity, 0, true, "its content is not what its digest says"});
  } else {
    file.drop_pack();  // without an error it was not tried: the session ended in the middle of the pack
    if (item.damaged) return files_.on_damaged_at_rest(file, {session::Resend::whole});
    if (item.error_number != 0) files_.on_io_failed(file, item.error_number, {});
  }
}

}  // namespace ccixfer::recv
