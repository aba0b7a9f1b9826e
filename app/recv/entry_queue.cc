#include "app/recv/entry_queue.h"

#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/base/hash.h"

namespace ccixfer::recv {

bool EntryQueue::is_here(uint64_t sequence) const {
  return sequence < next_sequence_ || held_.contains(sequence) || (is_running_ && sequence == next_sequence_);
}

bool EntryQueue::has_room(uint64_t sequence, size_t bytes) const {
  return bytes <= entries_segment_bytes_max && sequence - next_sequence_ <= session::entries_outstanding_max &&
         held_bytes_ + bytes <= entries_held_bytes_max;
}

void EntryQueue::receive(Bytes segment, const session::SegmentHeader& header) {
  if (is_here(header.sequence)) return;
  if (!has_room(header.sequence, segment.size())) {
    session_.refuse({ErrorKind::protocol, "entries beyond what may be outstanding"});
    return;
  }
  held_bytes_ += segment.size();
  held_.emplace(header.sequence, Segment{{segment.begin(), segment.end()}, header});
}

void EntryQueue::receive_first(const session::FirstEntries& first) {
  if (first.count == 0) return;
  CHECK(next_sequence_ == 0 && held_.empty());
  session::SegmentHeader header;
  header.kind = session::SegmentKind::entries;
  header.count = first.count;
  header.data_bytes = static_cast<uint32_t>(first.bytes.size());
  header.hash = xxh3_128(first.bytes);
  held_bytes_ += first.bytes.size();
  held_.emplace(0, Segment{first.bytes, header, false});
}

void EntryQueue::turn() {
  if (is_running_) return;
  const auto due = held_.find(next_sequence_);
  if (due == held_.end()) return;
  struct Work {
    Segment segment;
    JudgedSegment result;
  };
  auto work = std::make_shared<Work>();
  work->segment = std::move(due->second);
  held_bytes_ -= work->segment.bytes.size();
  held_.erase(due);
  is_running_ = true;
  jobs_.submit(
      [this, work, first_index = next_index_] {
        Segment& segment = work->segment;
        work->result = judge_(segment.bytes, segment.header, first_index, segment.may_be_sealed);
      },
      [this, work] { judged(work->segment, std::move(work->result)); });
}

void EntryQueue::judged(const Segment& segment, JudgedSegment result) {
  is_running_ = false;
  if (session_.has_failed()) return;
  if (result.is_damaged) {
    session_.ask_for_put(segment.header.lane_session, segment.header.n);
    return;
  }
  session_.opened(true);
  if (!result.decisions) {
    const ErrorKind kind = result.decisions.error().kind;
    const bool is_fault_of_peer = kind == ErrorKind::protocol || kind == ErrorKind::not_authorised;
    is_fault_of_peer ? session_.refuse(std::move(result.decisions.error())) : session_.fail(std::move(result.decisions.error()));
    return;
  }
  if (!result.warning.empty()) session_.warn(result.warning);
  ++next_sequence_;
  const uint64_t first_index = next_index_;
  next_index_ += result.decisions->size();
  handler_.on_decided(first_index, std::move(*result.decisions));
}

}  // namespace ccixfer::recv
