// The control channel's two halves, without connections: session messages numbered from 1, each delivered once and in order.
//
// Sender: a message leaves the queue when its send completed (it is in the event queue of the peer's endpoint, which lives as long
// as the peer's process, and so as long as the session). One whose lane died is next again. Receiver: drops what it had, holds
// what is ahead of order (two lanes overlap for a moment) until the gap closes.
// Bounds: control_messages_queued_max + control_messages_reserve, control_messages_in_flight_max, control_messages_ahead_max.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/session/messages.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::session {

class ControlSender {
 public:
  struct Outgoing {
    uint64_t sequence = 0;
    Bytes bytes;  // until the next non-const call
  };
  [[nodiscard]] bool post(const Message& message);     // false: the queue and its reserve are full
  [[nodiscard]] std::optional<Outgoing> next() const;  // the lowest one that is not under way, within the window
  void sent(uint64_t sequence);                        // is under way
  void ended(uint64_t sequence, bool delivered);       // its send ended; unknown numbers are ignored
  [[nodiscard]] size_t room() const;
  [[nodiscard]] bool drained() const { return queue_.empty(); }

 private:
  enum class State : uint8_t { waiting, under_way, delivered };
  struct Item {
    std::vector<std::byte> bytes;
    State state = State::waiting;
  };
  [[nodiscard]] Item* find(uint64_t sequence);

  RingBuffer<Item> queue_;  // numbers first_ ...; those delivered at the front are gone
  uint64_t first_ = 1;
};

class ControlReceiver {
 public:
  // Appends to `in_order` what may be delivered now. false: further ahead than the sender's window allows.
  [[nodiscard]] bool accept(uint64_t sequence, Message&& message, std::vector<Message>& in_order);

 private:
  uint64_t last_ = 0;
  std::map<uint64_t, Message> ahead_;
};

}  // namespace ccixfer::session
