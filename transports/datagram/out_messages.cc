#include <algorithm>
#include <bit>

#include "core/base/check.h"
#include "transports/datagram/messages.h"

namespace ccixfer::datagram {

using ports::Attribute;

void OutMessages::open(uint32_t window, Attribute attribute) {
  window_ = window;
  attribute_ = attribute;
}

void OutMessages::push(MessageOwner owner, std::vector<std::byte> bytes, Duration timeout) {
  Entry entry;
  entry.owner = owner;
  entry.bytes = std::move(bytes);
  entry.timeout = attribute_ == Attribute::unreliable ? forever : timeout;
  if (entry.timeout != forever) ++timed_;
  queue_.push_back(std::move(entry));
  ++unstamped_;
  if (owner.rma) return;
  ++application_count_;
  ++issued_;
}

void OutMessages::stamp(Instant now) {
  for (; unstamped_ > 0; --unstamped_) {
    Entry& entry = queue_[queue_.size() - unstamped_];
    entry.deadline = after(now, entry.timeout);
    entry.stamped = true;
  }
}

void OutMessages::end(Entry& entry, Status status, const Ended& ended) {
  if (entry.reported) return;
  entry.reported = true;
  if (entry.timeout != forever) --timed_;
  if (!entry.owner.rma) {
    --application_count_;
    ++ended_;
  }
  ended(entry.owner, status);
}

bool OutMessages::sendable() {
  if (paused_) return false;
  while (!again_.empty()) {
    const uint64_t sequence = again_.front();
    if (sequence >= base_ && sequence - base_ < next_ && queue_[sequence - base_].again && !queue_[sequence - base_].done)
      return true;
    again_.drop_front();
  }
  while (next_ < queue_.size() && queue_[next_].done) ++next_;  // delivered in an earlier flight
  return next_ < queue_.size() && next_ < window_;
}

// Once a part is out, the rest follows in parts, whatever would fit by then.
bool OutMessages::in_parts(Entry& entry) const {
  if (entry.parts_due == 0 && !entry.empty && entry.bytes.size() > fits_bytes_)
    entry.parts_due = all_parts(parts_of(static_cast<uint32_t>(entry.bytes.size())));
  return entry.parts_due != 0;
}

size_t OutMessages::next_frame_bytes() {
  CHECK(sendable());
  Entry& entry = next_entry();
  if (!in_parts(entry)) return message_frame_bytes + (entry.empty ? 0 : entry.bytes.size());
  const auto offset = static_cast<size_t>(std::countr_zero(entry.parts_due)) * part_bytes;
  return message_part_frame_bytes + std::min<size_t>(entry.bytes.size() - offset, part_bytes);
}

reliability::Carried OutMessages::take(wire::Writer& out, uint8_t carried_kind, const Ended& ended) {
  CHECK(sendable());
  Entry& entry = next_entry();
  const bool is_again = !again_.empty();
  const auto index = is_again ? static_cast<size_t>(again_.front() - base_) : next_;
  const uint64_t sequence = base_ + index;
  uint32_t part = 0;
  if (in_parts(entry)) {
    const auto bit = static_cast<uint32_t>(std::countr_zero(entry.parts_due));
    const size_t offset = size_t{bit} * part_bytes;
    const Bytes bytes = Bytes(entry.bytes).subspan(offset, std::min<size_t>(entry.bytes.size() - offset, part_bytes));
    encode(out, MessagePartFrame{sequence, flight_, static_cast<uint32_t>(entry.bytes.size()), static_cast<uint8_t>(bit), bytes});
    entry.parts_due &= entry.parts_due - 1;
    part = bit + 1;
  } else {
    encode(out, MessageFrame{sequence, flight_, entry.empty, entry.empty ? Bytes{} : Bytes(entry.bytes)});
  }
  numbered_ = std::max(numbered_, index + 1);
  const reliability::Carried carried{.kind = carried_kind, .a = flight_, .b = sequence, .c = part};
  if (entry.parts_due != 0) return carried;
  if (is_again) {
    again_.drop_front();
    entry.again = false;
  } else {
    ++next_;
  }
  if (attribute_ == Attribute::unreliable) {
    entry.done = true;
    end(entry, Status::success, ended);
    pop_done();
  }
  return carried;
}

void OutMessages::lost(uint64_t sequence, uint32_t flight, uint32_t part) {
  if (attribute_ == Attribute::unreliable || flight != flight_ || sequence < base_ || sequence - base_ >= numbered_) return;
  const auto index = static_cast<size_t>(sequence - base_);
  Entry& entry = queue_[index];
  if (entry.done) return;
  const bool is_under_way = entry.parts_due != 0;
  if (part != 0) {
    if (!is_under_way && entry.again) return;  // it goes out whole
    entry.parts_due |= 1u << (part - 1);
  } else if (is_under_way) {
    entry.parts_due = all_parts(parts_of(static_cast<uint32_t>(entry.bytes.size())));
  }
  if (entry.again || index >= next_) return;
  entry.again = true;
  again_.push_back(sequence);
}

void OutMessages::delivered(size_t index, const Ended& ended) {
  Entry& entry = queue_[index];
  if (entry.done) return;
  entry.done = true;
  if (!entry.empty) pause_ = Duration{0};
  end(entry, Status::success, ended);
}

void OutMessages::pop_done() {
  while (!queue_.empty() && queue_.front().done) {
    CHECK(numbered_ > 0);
    if (!queue_.front().stamped) --unstamped_;
    queue_.drop_front();
    ++base_;
    --numbered_;
    if (next_ > 0) --next_;
  }
}

void OutMessages::go_back(Instant now) {
  ++flight_;
  next_ = 0;
  again_.clear();
  for (Entry& entry : queue_) {
    entry.again = false;
    entry.parts_due = 0;
  }
  paused_ = true;
  pause_ = pause_ == Duration{0} ? retry_pause_first : std::min(pause_ * 2, retry_pause_max);
  retry_at_ = after(now, pause_);
}

bool OutMessages::acknowledge(const MessageAckFrame& frame, Instant now, const Ended& ended) {
  if (attribute_ == Attribute::unreliable || frame.flight > flight_) return false;
  if (frame.next > base_ + numbered_) return false;
  const bool unordered = attribute_ == Attribute::reliable_unordered;
  if (!unordered && frame.words > 0) return false;
  const uint64_t base = base_;
  for (uint64_t sequence = base; sequence < frame.next; ++sequence) delivered(static_cast<size_t>(sequence - base), ended);
  for (unsigned bit = 0; bit < 64u * frame.words; ++bit) {
    if ((frame.bits[bit / 64] >> (bit % 64) & 1) == 0) continue;
    const uint64_t sequence = frame.next + 1 + bit;
    if (sequence >= base + numbered_) return false;
    if (sequence >= base) delivered(static_cast<size_t>(sequence - base), ended);
  }
  pop_done();
  if (frame.status == Status::disconnected) {
    peer_leaving_ = true;
    fail_all(Status::disconnected, ended);
    return true;
  }
  if (frame.status != Status::receiver_not_ready || frame.flight != flight_) return true;  // an old refusal was acted upon
  if (numbered_ == 0) return false;                                                        // it refuses what it did not get
  go_back(now);
  timer(now, ended);  // it may have been the last chance
  return true;
}

void OutMessages::erase_unsent(size_t index) {
  CHECK(index >= numbered_);
  if (!queue_[index].stamped) --unstamped_;
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(index));
}

// Paused: the receiver threw away all of the flight that is not delivered, so what ends now is certain not to arrive.
void OutMessages::give_up_refused(Instant now, const Ended& ended) {
  const auto due = [&](const Entry& entry) { return !entry.reported && entry.deadline <= now; };
  if (attribute_ == Attribute::reliable_ordered) {
    const auto first = std::find_if(queue_.begin(), queue_.end(), [](const Entry& entry) { return !entry.reported; });
    if (first != queue_.end() && due(*first)) fail_all(Status::receiver_not_ready, ended);
    return;
  }
  for (size_t i = 0; i < queue_.size();) {
    Entry& entry = queue_[i];
    if (!due(entry)) {
      ++i;
      continue;
    }
    end(entry, Status::receiver_not_ready, ended);  // what is reported is passed over in the next round
    entry.empty = true;
    entry.bytes = {};
    if (i >= numbered_) erase_unsent(i);
  }
}

// Tried again after a refusal: the answer tells how it ended, and is waited for at most as long again.
Instant OutMessages::given_up_at(const Entry& entry) const {
  return !paused_ && pause_ > Duration{0} ? after(entry.deadline, entry.timeout) : entry.deadline;
}

void OutMessages::timer(Instant now, const Ended& ended) {
  if (paused_) {
    if (timed_ > 0) give_up_refused(now, ended);
    if (retry_at_ <= now) {
      paused_ = false;
    }
    return;
  }
  if (timed_ == 0) return;
  for (size_t i = 0; i < queue_.size();) {
    Entry& entry = queue_[i];
    if (entry.reported || given_up_at(entry) > now) {
      if (!entry.reported && attribute_ == Attribute::reliable_ordered) return;  // those behind it wait for its end
      ++i;
      continue;
    }
    end(entry, Status::timed_out, ended);
    if (i >= numbered_) erase_unsent(i);  // else it may yet arrive: its number is taken
  }
}

Instant OutMessages::deadline() const {
  Instant at = paused_ ? retry_at_ : never;
  if (timed_ == 0) return at;
  for (const Entry& entry : queue_) {
    if (entry.reported) continue;
    at = std::min(at, given_up_at(entry));
    if (attribute_ == Attribute::reliable_ordered) break;
  }
  return at;
}

// Nothing of it can be delivered any more, or the connection is over: numbers that were used may be used again in the next flight.
void OutMessages::fail_all(Status status, const Ended& ended) {
  RingBuffer<Entry> failed = std::move(queue_);
  queue_.clear();
  again_.clear();
  next_ = numbered_ = unstamped_ = 0;
  paused_ = false;
  pause_ = Duration{0};
  for (Entry& entry : failed) end(entry, status, ended);
}

}  // namespace ccixfer::datagram
