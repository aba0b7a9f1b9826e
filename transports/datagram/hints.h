// Hints that a mailbox has a buffer again: each is told to the peer's user once, though the packets that carry it may be lost, or
// only taken for lost and sent again. Private to this room.
#pragma once
#include <cstdint>
#include <optional>
#include <set>

#include "core/base/ring_buffer.h"
#include "transports/datagram/frames.h"

namespace ccixfer::datagram {

class HintsOut {
 public:
  HintsOut() = default;
  explicit HintsOut(uint64_t next) : first_(next) {}  // goes on where another one was
  [[nodiscard]] bool is_quiet() const { return unacked_.empty() && due_.empty(); }
  [[nodiscard]] uint64_t next() const { return first_; }  // is_quiet() only
  // Dropped when hints_outstanding_max are not acknowledged: a hint is a kindness, its peer's own try is what counts.
  void push(uint64_t mailbox, uint64_t epoch);
  [[nodiscard]] bool due() const { return !due_.empty(); }
  MailboxHintFrame take();  // due() only
  void acked(uint64_t number);
  void lost(uint64_t number);  // due again, if no other packet has brought it

 private:
  [[nodiscard]] std::optional<MailboxHintFrame>* find(uint64_t number);

  RingBuffer<std::optional<MailboxHintFrame>> unacked_;  // from number first_ on; nullopt: acknowledged
  uint64_t first_ = 0;
  RingBuffer<uint64_t> due_;
};

class HintsIn {
 public:
  HintsIn() = default;
  explicit HintsIn(uint64_t next) : first_missing_(next) {}
  [[nodiscard]] bool is_quiet() const { return beyond_.empty(); }
  [[nodiscard]] uint64_t next() const { return first_missing_; }  // is_quiet() only
  // false: it came before, or is further ahead than any peer of ours sends.
  [[nodiscard]] bool arrived(uint64_t number);

 private:
  uint64_t first_missing_ = 0;
  std::set<uint64_t> beyond_;  // hints_outstanding_max at most
};

}  // namespace ccixfer::datagram
