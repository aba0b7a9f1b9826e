// The two halves of the control channel, without connections. Session messages are numbered from 1,
// and each is delivered once and in order.
//
// A message leaves the sender's queue when its send has completed. It is then in the event queue of
// the peer's endpoint, which lives as long as the session. A message whose lane died is sent again
// first. The receiver drops a message that it has had, and holds one that is ahead of its turn until
// the gap closes, because two lanes may overlap for a moment.
// Bounds: control_messages_queued_max and control_messages_reserve, control_messages_in_flight_max,
// control_messages_ahead_max.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/session/messages.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::session {

class LinkSeal;

inline constexpr size_t early_overhead_bytes = 2;  // of each message in a Hello

class ControlSender {
 public:
  struct Outgoing {
    uint64_t sequence = 0;
    Bytes bytes;  // valid until the next call that is not const
  };
  void set_seal(LinkSeal* seal) { seal_ = seal; }      // of all that is posted from now on
  [[nodiscard]] bool post(const Message& message);     // false: the queue and its reserve are full
  [[nodiscard]] std::optional<Outgoing> next() const;  // the lowest one within the window that is not under way
  void sent(uint64_t sequence);                        // it is under way now
  void ended(uint64_t sequence, bool delivered);       // its send ended; unknown numbers are ignored
  // The first messages as far as they fit, if none is under way yet: what is sent of them now goes again when it is its turn.
  [[nodiscard]] std::vector<std::vector<std::byte>> early(size_t bytes_max) const;
  [[nodiscard]] size_t room() const;
  [[nodiscard]] bool all_delivered() const { return queue_.empty(); }
  [[nodiscard]] bool all_sent() const;                                                     // each is under way at least
  [[nodiscard]] uint64_t posted() const { return first_ + queue_.size() - 1; }             // the last number
  [[nodiscard]] bool was_delivered(uint64_t sequence) const { return sequence < first_; }  // with all before it

 private:
  enum class State : uint8_t { waiting, under_way, delivered };
  struct Item {
    std::vector<std::byte> bytes;
    State state = State::waiting;
  };
  [[nodiscard]] Item* find(uint64_t sequence);

  RingBuffer<Item> queue_;  // numbers first_ ...; those delivered at the front are gone
  uint64_t first_ = 1;
  LinkSeal* seal_ = nullptr;
};

class ControlReceiver {
 public:
  // Appends to `in_order` what may be delivered now. False: the message is further ahead than the
  // sender's window allows.
  [[nodiscard]] bool accept(uint64_t sequence, Message&& message, std::vector<Message>& in_order);
  // Whether a session message of that number was delivered already.
  [[nodiscard]] bool had(uint64_t sequence) const { return sequence != 0 && sequence <= last_; }
  [[nodiscard]] uint64_t next() const { return last_ + 1; }  // the number that may be delivered next

 private:
  uint64_t last_ = 0;
  std::map<uint64_t, Message> ahead_;
};

}  // namespace ccixfer::session
