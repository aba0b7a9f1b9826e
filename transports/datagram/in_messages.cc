#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "transports/datagram/messages.h"

namespace ccixfer::datagram {

using ports::Attribute;

void InMessages::open(uint32_t window, Attribute attribute, size_t& held_bytes_total) {
  window_ = window;
  attribute_ = attribute;
  held_bytes_total_ = &held_bytes_total;
}

// Of an unreliable message a part that has not come yet will not come.
bool InMessages::is_quiet() const {
  if (due_ || refusing_ || leaving_) return false;
  return attribute_ == Attribute::unreliable ||
         (held() == 0 && in_parts_ == nullptr && (delivered_ == nullptr || delivered_->empty()));
}

// The first that is missing always has room: without it nothing is delivered. Of one that has come in part the whole was counted,
// and that part will not come again.
bool InMessages::has_room(uint64_t sequence, size_t bytes) const {
  if (sequence == expected_) return true;
  const bool is_begun = in_parts_ != nullptr && in_parts_->contains(sequence);
  const size_t counted = is_begun ? in_parts_->at(sequence).bytes.size() : 0;
  if (bytes <= counted) return true;
  const size_t more = bytes - counted;
  return held_bytes_ + more <= held_bytes_of_one_max && *held_bytes_total_ + more <= held_bytes_max;
}

void InMessages::holds(size_t bytes) {
  held_bytes_ += bytes;
  *held_bytes_total_ += bytes;
}

void InMessages::holds_no_more(size_t bytes) {
  held_bytes_ -= bytes;
  *held_bytes_total_ -= bytes;
}

bool InMessages::is_late(uint64_t sequence, uint32_t flight) const {
  return flight < flight_ || sequence < expected_ || (delivered_ != nullptr && delivered_->contains(sequence)) ||
         (held_ != nullptr && held_->contains(sequence));
}

Arrival InMessages::part_arrived(const MessagePartFrame& frame, const Deliver& deliver) {
  if (leaving_) {
    due_ = attribute_ != Attribute::unreliable;
    return Arrival::taken;
  }
  const bool is_reliable = attribute_ != Attribute::unreliable;
  if (is_reliable && frame.flight > flight_) return Arrival::fault;
  if (is_reliable && frame.sequence >= expected_ && frame.sequence - expected_ >= window_) return Arrival::fault;
  if (is_reliable && is_late(frame.sequence, frame.flight)) return Arrival::taken;
  if (is_reliable && !has_room(frame.sequence, frame.total_bytes)) return Arrival::no_room;
  if (in_parts_ == nullptr) in_parts_ = std::make_unique<std::map<uint64_t, InParts>>();
  const auto [place, fresh] = in_parts_->try_emplace(frame.sequence);
  InParts& message = place->second;
  if (fresh) {
    message.bytes.resize(frame.total_bytes);
    holds(frame.total_bytes);
  }
  if (message.bytes.size() != frame.total_bytes) return Arrival::fault;
  std::memcpy(message.bytes.data() + size_t{frame.index} * part_bytes, frame.bytes.data(), frame.bytes.size());
  message.here |= 1u << frame.index;
  if (message.here == all_parts(parts_of(frame.total_bytes))) {
    const std::vector<std::byte> whole = message.bytes;
    return arrived({frame.sequence, frame.flight, false, whole}, deliver);
  }
  if (!is_reliable && in_parts_->size() > unreliable_in_parts_max) forget_parts(in_parts_->begin()->first);
  return Arrival::taken;
}

void InMessages::forget_parts(uint64_t sequence) {
  if (in_parts_ == nullptr) return;
  const auto found = in_parts_->find(sequence);
  if (found == in_parts_->end()) return;
  holds_no_more(found->second.bytes.size());
  in_parts_->erase(found);
  if (in_parts_->empty()) in_parts_.reset();
}

Arrival InMessages::arrived(const MessageFrame& frame, const Deliver& deliver) {
  if (attribute_ == Attribute::unreliable) {
    forget_parts(frame.sequence);
    if (!leaving_) static_cast<void>(deliver(frame.bytes));
    return Arrival::taken;
  }
  if (leaving_) {
    due_ = true;
    return Arrival::taken;
  }
  if (frame.flight > flight_) return Arrival::fault;  // it goes back without having been refused
  if (frame.sequence >= expected_ && frame.sequence - expected_ >= window_) return Arrival::fault;  // beyond the window
  if (is_late(frame.sequence, frame.flight)) return Arrival::taken;
  if (attribute_ == Attribute::reliable_ordered && !has_room(frame.sequence, frame.bytes.size())) return Arrival::no_room;
  forget_parts(frame.sequence);
  if (attribute_ == Attribute::reliable_unordered) {
    if (!frame.empty && !deliver(frame.bytes)) {
      refuse();
      return Arrival::taken;
    }
    refusing_ = false;
    if (frame.sequence > expected_) {
      if (delivered_ == nullptr) delivered_ = std::make_unique<std::set<uint64_t>>();
      delivered_->insert(frame.sequence);
    } else {
      ++expected_;
    }
    while (delivered_ != nullptr && delivered_->erase(expected_) > 0) ++expected_;
    due_ = true;
    return Arrival::taken;
  }
  if (frame.sequence > expected_) {
    hold(frame);
    return Arrival::taken;
  }
  if (!frame.empty && !deliver(frame.bytes)) {
    refuse();
    return Arrival::taken;
  }
  refusing_ = false;
  ++expected_;
  due_ = true;
  while (held() > 0 && held_->begin()->first == expected_) {
    const Held& held = held_->begin()->second;
    if (!held.empty && !deliver(held.bytes)) {
      refuse();
      break;
    }
    holds_no_more(held.bytes.size());
    held_->erase(held_->begin());
    ++expected_;
  }
  return Arrival::taken;
}

void InMessages::hold(const MessageFrame& frame) {
  if (held_ == nullptr) held_ = std::make_unique<std::map<uint64_t, Held>>();
  held_->emplace(frame.sequence, Held{frame.empty, {frame.bytes.begin(), frame.bytes.end()}});
  holds(frame.bytes.size());
}

void InMessages::refuse() {
  ++flight_;
  refusing_ = true;
  due_ = true;
  forget_held();
}

void InMessages::forget_held() {
  if (in_parts_ != nullptr) {
    for (const auto& [sequence, message] : *in_parts_) holds_no_more(message.bytes.size());
    in_parts_.reset();
  }
  if (held_ == nullptr) return;
  for (const auto& [sequence, held] : *held_) holds_no_more(held.bytes.size());
  held_.reset();
}

void InMessages::leave() {
  leaving_ = true;
  forget_held();
}

uint8_t InMessages::words() const {
  if (delivered_ == nullptr || delivered_->empty()) return 0;
  const uint64_t bits = *delivered_->rbegin() - expected_;  // bit i is expected_ + 1 + i
  CHECK(bits <= messages_window_max);
  return static_cast<uint8_t>((bits + 63) / 64);
}

size_t InMessages::frame_bytes() const { return message_ack_frame_bytes(words()); }

reliability::Carried InMessages::take(wire::Writer& out, uint8_t carried_kind) {
  MessageAckFrame frame;
  frame.next = expected_;
  frame.flight = flight_;
  if (leaving_) {
    frame.status = Status::disconnected;
    frame.flight = 0;  // of whatever flight
  } else if (refusing_) {
    frame.status = Status::receiver_not_ready;
    frame.flight = flight_ - 1;
  }
  frame.words = words();
  if (frame.words > 0) {
    for (const uint64_t sequence : *delivered_) {
      const uint64_t bit = sequence - expected_ - 1;
      frame.bits[bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }
  encode(out, frame);
  due_ = false;
  return {.kind = carried_kind, .b = ++version_};
}

}  // namespace ccixfer::datagram
