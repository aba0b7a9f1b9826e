#include "app/recv/entry_queue.h"

#include <memory>
#include <utility>

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
      [this, work, first_index = next_index_] { work->result = judge_(work->segment.bytes, work->segment.header, first_index); },
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
  ++next_sequence_;
  const uint64_t first_index = next_index_;
  next_index_ += result.decisions->size();
  handler_.on_decided(first_index, std::move(*result.decisions));
}

}  // namespace ccixfer::recv
