// What the receiver knows of packet numbers: which came (the duplicate window), and when to acknowledge. Pure; `now` is an
// argument. Guarantees: a number is fresh at most once, whatever order and however often it comes; what is older than all that is
// remembered counts as a duplicate (its sender takes it for lost and sends its content again under another number). Acks are due at
// once after every second packet that asks for one, and when a number is out of order; else after ack_delay_max. Bounds:
// ranges_max. Source: RFC 9000 §13.2 (the ideas), RFC 5681 §4.2.
//
// Cost: a number that continues the newest range costs one look at it. Any other is searched among at
// most ranges_max ranges, and at most so many are moved, however many packets are in flight.
#pragma once
#include <vector>

#include "core/reliability/ack.h"

namespace ccixfer::reliability {

class ReceiveLedger {
 public:
  static constexpr size_t ranges_max = ack_ranges_max;
  // Ranges below an ack that is known to have arrived are kept for this many numbers more, for packets that come late.
  static constexpr uint64_t late_numbers = 64;

  enum class Verdict : uint8_t { fresh, duplicate, too_old };
  [[nodiscard]] Verdict look(uint64_t number) const;
  [[nodiscard]] bool is_newest(uint64_t number) const { return number >= next_newest(); }
  // A fresh number was taken. `eliciting`: its packet asks for an ack.
  void received(uint64_t number, bool eliciting, Instant now);

  // The number above all that came. A new ledger that goes on from it takes no lower number for fresh: a packet that is that late
  // counts as lost.
  [[nodiscard]] uint64_t next_newest() const { return ranges_.empty() ? floor_ : ranges_.back().last + 1; }
  void go_on(uint64_t next_newest) { floor_ = next_newest; }  // of a new one

  [[nodiscard]] bool anything() const { return !ranges_.empty(); }
  [[nodiscard]] bool ack_wanted() const { return eliciting_ > 0; }  // worth taking along
  [[nodiscard]] Instant ack_deadline() const { return deadline_; }  // never: none is wanted
  // Only if anything(). It counts as sent.
  [[nodiscard]] Ack take_ack(Instant now);
  // The peer may not have heard our acknowledgements, so they are due again at once.
  void tell_again(Instant now);
  // An ack of ours whose largest number was this has reached the peer.
  void ack_arrived(uint64_t largest);
  [[nodiscard]] uint64_t steps() const { return steps_; }  // ranges looked at or moved by received() so far

 private:
  [[nodiscard]] size_t ranges_below(uint64_t number, uint64_t& steps) const;  // that begin at or below it
  void forget(size_t count);                                                  // the oldest ranges
  std::vector<Range> ranges_;                                                 // ascending, apart from one another
  uint64_t floor_ = 0;                                                        // below: forgotten
  uint32_t eliciting_ = 0;                                                    // not yet acknowledged
  Instant deadline_ = never;
  Instant largest_at_{};
  uint64_t steps_ = 0;
};

}  // namespace ccixfer::reliability
