// Messages of one connection: what is sent and not yet with the peer's endpoint, and what is expected from the peer. Pure machines:
// they know numbers, windows and deadlines, no network and no clock. The network below keeps the order and loses nothing.
// Guarantees (sender): completions in order of issue, each once; nothing acknowledged that was never sent; after receiver_not_ready
// everything from the refused message on goes out again, in order (go back N), until the front's send timeout: the answer to the
// last try decides. Guarantees (receiver): each number is delivered once, in order. Source: CCI §III.B, §IV.C. Used by
// the stream transport on a connection, by the routing transport from end to end.
#pragma once
#include <array>
#include <functional>
#include <memory>

#include "core/base/bytes.h"
#include "core/base/ring_buffer.h"
#include "core/base/status.h"
#include "core/base/time.h"

namespace ccixfer::reliability {

// receiver_not_ready: sent again after a pause that doubles.
inline constexpr Duration retry_pause_first = std::chrono::milliseconds(1);
inline constexpr Duration retry_pause_max = std::chrono::milliseconds(50);

// A copy of a message's bytes: of a short one in place, of others shared with the batch that is going out, as a message may be
// given up while half of it is sent.
struct MessageBytes {
  static constexpr size_t short_bytes_max = 128;
  std::array<std::byte, short_bytes_max> here;
  std::shared_ptr<const std::byte[]> elsewhere;  // longer than short_bytes_max
  uint32_t size = 0;
  uint32_t check = 0;
  [[nodiscard]] bool is_short() const { return size <= short_bytes_max; }
  [[nodiscard]] Bytes bytes() const { return {is_short() ? here.data() : elsewhere.get(), size}; }
};
[[nodiscard]] MessageBytes copy_message(std::span<const Bytes> parts);

// Whom a message's end concerns: the application (its token) or an RMA whose completion message it is (its slot).
struct MessageOwner {
  bool rma = false;
  uint64_t token = 0;
};

class MessageSender {
 public:
  using Ended = std::function<void(const MessageOwner&, Status)>;
  struct Outgoing {
    MessageBytes bytes;
    uint64_t sequence = 0;
    uint64_t flight = 0;  // give it back to sent()
  };

  void open(uint32_t window, bool unreliable);
  [[nodiscard]] bool full() const { return application_count_ >= window_; }  // of the application's; RMAs' are bounded by slots
  [[nodiscard]] uint32_t window() const { return window_; }
  void push(MessageOwner owner, MessageBytes bytes, Duration timeout);
  // Deadlines run from the first turn after push: a caller outside a turn has no `now`.
  void stamp(Instant now);
  [[nodiscard]] bool sendable() const { return !paused_ && next_ < queue_.size() && next_ < window_; }
  [[nodiscard]] uint32_t next_size() const { return queue_[next_].bytes.size; }
  // The next one to go out. An unreliable one ends here.
  Outgoing take(const Ended& ended);
  void sent(uint64_t flight);  // all its bytes are with the network
  // false: an acknowledgement of what was not sent.
  [[nodiscard]] bool acknowledge(uint64_t next, Status status, Instant now, const Ended& ended);
  void timer(Instant now, const Ended& ended);
  void fail_all(Status status, const Ended& ended);

  [[nodiscard]] Instant deadline() const;
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] uint32_t in_queue() const { return application_count_; }  // of the application, not ended
  [[nodiscard]] bool peer_leaving() const { return peer_leaving_; }
  [[nodiscard]] uint64_t issued() const { return issued_; }  // application's messages, for fences
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  struct Entry {
    MessageOwner owner;
    MessageBytes bytes;
    Duration timeout = forever;
    Instant deadline = never;
  };
  void end(const MessageOwner& owner, Status status, const Ended& ended);
  void pop_delivered(uint64_t count, const Ended& ended);
  void go_back(Instant now);
  [[nodiscard]] Instant given_up_at(const Entry& entry) const;

  RingBuffer<Entry> queue_;
  uint64_t base_ = 0;      // number of the first in the queue
  uint32_t next_ = 0;      // index of the next to go out
  uint32_t sent_ = 0;      // this many from the front are wholly sent, in this flight
  uint32_t reported_ = 0;  // this many from the front have timed out and were reported
  uint32_t stamped_ = 0;
  uint64_t flight_ = 0;  // counts the times we went back
  uint32_t window_ = 0;
  uint32_t application_count_ = 0;
  uint64_t issued_ = 0;
  uint64_t ended_ = 0;
  bool unreliable_ = false;
  bool paused_ = false;
  bool peer_leaving_ = false;
  Instant retry_at_{};  // if paused_
  Duration pause_{0};   // not 0: refused, and nothing was delivered since
};

class MessageReceiver {
 public:
  enum class Verdict : uint8_t { deliver, drop, violation };

  void open(uint32_t window, bool unreliable);
  [[nodiscard]] Verdict arriving(uint64_t sequence) const;
  // What became of it, once all of its bytes were taken off the stream.
  void delivered();
  void refused();  // no buffer for the expected one
  void dropped();  // the verdict was `drop`
  // What to tell the peer now, if anything.
  [[nodiscard]] bool acknowledgement_due() const { return due_; }
  // It tells of one message and of nothing else: then an answer may be near, and more than one make a stream that wants to go on.
  [[nodiscard]] bool acknowledgement_may_wait() const { return due_ && !refusal_due_ && !leaving_ && expected_ - told_ == 1; }
  struct Acknowledgement {
    uint64_t next = 0;
    Status status = Status::success;
  };
  [[nodiscard]] Acknowledgement acknowledgement();
  // The same for a message that goes out now and tells all that there is to tell but a refusal: the number below which all is here.
  [[nodiscard]] uint64_t carried_acknowledgement();
  [[nodiscard]] bool refusal_due() const { return refusal_due_; }
  void leave() { leaving_ = true; }  // our application disconnected: what arrives from now on is answered `disconnected`

 private:
  uint64_t expected_ = 0;
  uint64_t told_ = 0;  // the peer was told of all below
  uint32_t window_ = 0;
  bool unreliable_ = false;
  bool refusing_ = false;
  bool refusal_due_ = false;
  bool due_ = false;
  bool leaving_ = false;
  bool leaving_told_ = false;
};

}  // namespace ccixfer::reliability
