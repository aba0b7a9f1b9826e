// Messages of one connection over packets that get lost: what is sent and not yet with the peer's endpoint, and what came. Pure
// machines: they know numbers, windows, flights and deadlines, no network and no clock.
// Guarantees (sender): each message ends once; reliable ordered in order of issue; nothing is accepted as acknowledged that was
// never sent; after receiver_not_ready all that is not delivered goes out again in a new flight after a pause, until its send
// timeout: then it ends as receiver_not_ready, and can no longer be delivered. Unreliable: ends when it goes out, and goes out
// once. Guarantees (receiver): reliable ordered: each once, in order; unordered: each once; unreliable: as they come. What comes
// before its turn is held within held_bytes_of_one_max, and held_bytes_max of all connections; for more there is no room (and it
// comes again). The first that is missing always has room. A message that is longer than what fits a packet goes in parts; those
// of one flight make it whole again, in any order. Source: CCI §III.B, §IV.C.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/reliability/message_window.h"
#include "core/reliability/send_ledger.h"
#include "transports/datagram/frames.h"

namespace ccixfer::datagram {

using reliability::MessageOwner;

class OutMessages {
 public:
  using Ended = std::function<void(const MessageOwner&, Status)>;

  // Of a machine with nothing in its queue: the number of the next message, and its flight. Another one goes on there.
  struct Numbers {
    uint64_t next = 0;
    uint32_t flight = 0;
  };

  void open(uint32_t window, ports::Attribute attribute);
  void go_on(Numbers from) {
    base_ = from.next;
    flight_ = from.flight;
  }
  [[nodiscard]] bool is_quiet() const { return queue_.empty() && !peer_leaving_; }
  [[nodiscard]] Numbers numbers() const { return {base_, flight_}; }  // is_quiet() only
  void fit(uint32_t message_bytes) { fits_bytes_ = message_bytes; }   // in one packet, from now on
  [[nodiscard]] uint32_t window() const { return window_; }  // for the application's; RMAs' messages are bounded by their slots
  [[nodiscard]] uint32_t in_queue() const { return application_count_; }  // of the application, not ended
  void push(MessageOwner owner, std::vector<std::byte> bytes, Duration timeout);
  void stamp(Instant now);  // deadlines run from the first turn after push

  [[nodiscard]] bool sendable();
  [[nodiscard]] size_t next_frame_bytes();  // only if sendable
  // Writes its frame; an unreliable message ends here. The answer names it for lost().
  reliability::Carried take(wire::Writer& out, uint8_t carried_kind, const Ended& ended);
  void lost(uint64_t sequence, uint32_t flight, uint32_t part = 0);  // part: from 1 on; 0: the whole message
  [[nodiscard]] bool acknowledge(const MessageAckFrame& frame, Instant now, const Ended& ended);  // false: the peer's fault
  void timer(Instant now, const Ended& ended);
  [[nodiscard]] Instant deadline() const;
  void fail_all(Status status, const Ended& ended);

  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] bool peer_leaving() const { return peer_leaving_; }
  [[nodiscard]] uint64_t issued() const { return issued_; }  // the application's messages, for fences
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  struct Entry {
    MessageOwner owner;
    std::vector<std::byte> bytes;
    Duration timeout = forever;
    Instant deadline = never;
    uint32_t parts_due = 0;  // that have to go out; 0: none has yet in this flight, or all have
    bool stamped = false;
    bool again = false;     // its packet was lost
    bool done = false;      // delivered
    bool reported = false;  // its end was told; it is still here because its number may yet arrive
    bool empty = false;     // given up: only its number goes out
  };
  [[nodiscard]] Entry& next_entry() { return again_.empty() ? queue_[next_] : queue_[again_.front() - base_]; }
  [[nodiscard]] bool in_parts(Entry& entry) const;
  void end(Entry& entry, Status status, const Ended& ended);
  void delivered(size_t index, const Ended& ended);
  void pop_done();
  void go_back(Instant now);
  [[nodiscard]] Instant given_up_at(const Entry& entry) const;
  void give_up_refused(Instant now, const Ended& ended);
  void erase_unsent(size_t index);

  RingBuffer<Entry> queue_;
  RingBuffer<uint64_t> again_;
  uint64_t base_ = 0;     // number of the first in the queue
  size_t next_ = 0;       // index of the next to go out in this flight
  size_t numbered_ = 0;   // this many from the front went out at least once
  size_t unstamped_ = 0;  // at the end of the queue
  size_t timed_ = 0;      // entries with a send timeout
  uint32_t flight_ = 0;
  uint32_t window_ = 0;
  uint32_t fits_bytes_ = UINT32_MAX;
  uint32_t application_count_ = 0;
  uint64_t issued_ = 0;
  uint64_t ended_ = 0;
  ports::Attribute attribute_ = ports::Attribute::reliable_ordered;
  bool paused_ = false;
  bool peer_leaving_ = false;
  Instant retry_at_{};  // if paused_
  Duration pause_{0};   // not 0: refused, and nothing was delivered since
};

// What became of a message that came, or of a part of one.
enum class Arrival : uint8_t {
  taken,    // or late, or refused: it need not come again as it is
  no_room,  // it would have to be held: nothing was done, and it must come again
  fault,    // the peer's
};

class InMessages {
 public:
  // Gives a message to the endpoint; false: no receive buffer.
  using Deliver = std::function<bool(Bytes)>;

  InMessages() = default;
  InMessages(const InMessages&) = delete;
  InMessages& operator=(const InMessages&) = delete;
  ~InMessages() { forget_held(); }

  // Unreliable messages of which parts are missing: what is lost does not come again.
  static constexpr size_t unreliable_in_parts_max = 4;

  // The message that is expected next, and in which flight. Another machine goes on there.
  struct Numbers {
    uint64_t expected = 0;
    uint32_t flight = 0;
  };

  void open(uint32_t window, ports::Attribute attribute, size_t& held_bytes_total);
  void go_on(Numbers from) {
    expected_ = from.expected;
    flight_ = from.flight;
  }
  // Nothing is to be told, and nothing is missing that will come.
  [[nodiscard]] bool is_quiet() const;
  [[nodiscard]] Numbers numbers() const { return {expected_, flight_}; }
  [[nodiscard]] Arrival arrived(const MessageFrame& frame, const Deliver& deliver);
  [[nodiscard]] Arrival part_arrived(const MessagePartFrame& frame, const Deliver& deliver);
  [[nodiscard]] bool due() const { return due_; }
  [[nodiscard]] size_t frame_bytes() const;
  reliability::Carried take(wire::Writer& out, uint8_t carried_kind);
  void lost(uint64_t version) { due_ = due_ || version == version_; }  // of what take() told
  void leave();  // our application disconnected: what comes from now on is answered `disconnected`
  [[nodiscard]] size_t held() const { return held_ == nullptr ? 0 : held_->size(); }

 private:
  void hold(const MessageFrame& frame);
  [[nodiscard]] bool has_room(uint64_t sequence, size_t bytes) const;  // of one that is not late
  void holds(size_t bytes);
  void holds_no_more(size_t bytes);
  void refuse();
  void forget_held();
  [[nodiscard]] bool is_late(uint64_t sequence, uint32_t flight) const;
  void forget_parts(uint64_t sequence);
  [[nodiscard]] uint8_t words() const;

  struct Held {
    bool empty = false;
    std::vector<std::byte> bytes;
  };
  struct InParts {
    std::vector<std::byte> bytes;
    uint32_t here = 0;  // a bit for each part
  };
  std::unique_ptr<std::map<uint64_t, InParts>> in_parts_;  // from the first one on; within the window
  // From the first one on that comes before its turn.
  std::unique_ptr<std::map<uint64_t, Held>> held_;  // ordered
  std::unique_ptr<std::set<uint64_t>> delivered_;   // unordered: above expected_
  size_t* held_bytes_total_ = nullptr;              // of all connections
  size_t held_bytes_ = 0;                           // of this one
  uint64_t expected_ = 0;                           // all below were delivered
  uint64_t version_ = 0;                            // counts what was told
  uint32_t flight_ = 0;                             // the one that we take
  uint32_t window_ = 0;
  ports::Attribute attribute_ = ports::Attribute::reliable_ordered;
  bool refusing_ = false;  // tell that the flight before was refused
  bool leaving_ = false;
  bool due_ = false;
};

}  // namespace ccixfer::datagram
