#include "app/session/control.h"

#include <algorithm>

#include "app/session/limits.h"
#include "app/session/link_seal.h"
#include "core/base/check.h"

namespace ccixfer::session {

bool ControlSender::post(const Message& message) {
  if (queue_.size() >= control_messages_queued_max + control_messages_reserve) return false;
  const uint64_t sequence = first_ + queue_.size();
  std::vector<std::byte> bytes = encode(message, sequence);
  if (seal_ != nullptr) bytes = seal_->seal(sequence, bytes);
  queue_.push_back({std::move(bytes), State::waiting});
  return true;
}

std::optional<ControlSender::Outgoing> ControlSender::next() const {
  const size_t window = std::min<size_t>(queue_.size(), control_messages_in_flight_max);
  for (size_t i = 0; i < window; ++i) {
    if (queue_[i].state == State::waiting) return Outgoing{first_ + i, queue_[i].bytes};
  }
  return std::nullopt;
}

bool ControlSender::all_sent() const {
  for (size_t i = 0; i < queue_.size(); ++i) {
    if (queue_[i].state == State::waiting) return false;
  }
  return true;
}

ControlSender::Item* ControlSender::find(uint64_t sequence) {
  if (sequence < first_ || sequence - first_ >= queue_.size()) return nullptr;
  return &queue_[sequence - first_];
}

void ControlSender::sent(uint64_t sequence) {
  Item* item = find(sequence);
  CHECK(item != nullptr && item->state == State::waiting);
  item->state = State::under_way;
}

void ControlSender::ended(uint64_t sequence, bool delivered) {
  Item* item = find(sequence);
  if (item == nullptr || item->state != State::under_way) return;
  item->state = delivered ? State::delivered : State::waiting;
  while (!queue_.empty() && queue_.front().state == State::delivered) {
    queue_.drop_front();
    ++first_;
  }
}

std::vector<std::vector<std::byte>> ControlSender::early(size_t bytes_max) const {
  std::vector<std::vector<std::byte>> first;
  if (first_ != 1) return first;
  for (size_t i = 0; i < queue_.size(); ++i) {
    const size_t bytes = early_overhead_bytes + queue_[i].bytes.size();
    if (queue_[i].state != State::waiting || bytes > bytes_max) break;
    bytes_max -= bytes;
    first.push_back(queue_[i].bytes);
  }
  return first;
}

size_t ControlSender::room() const {
  return queue_.size() >= control_messages_queued_max ? 0 : control_messages_queued_max - queue_.size();
}

bool ControlReceiver::accept(uint64_t sequence, Message&& message, std::vector<Message>& in_order) {
  if (sequence <= last_) return true;  // had it
  if (sequence - last_ > control_messages_ahead_max) return false;
  ahead_.try_emplace(sequence, std::move(message));
  for (auto it = ahead_.begin(); it != ahead_.end() && it->first == last_ + 1; it = ahead_.erase(it)) {
    in_order.push_back(std::move(it->second));
    ++last_;
  }
  return true;
}

}  // namespace ccixfer::session
