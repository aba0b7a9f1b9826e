// What the sender knows of its packets: numbers that are never used twice, what each carried, which were acknowledged, which are
// lost, when to probe. Pure: told what was sent, what the peer acknowledged and what time it is; says what became of each packet.
// The owner sends the content of a lost packet again, under a new number, if it still matters.
//
// Guarantees: every packet that asks for an ack ends exactly once, acked or lost (a late ack of a lost one is of no consequence);
// an ack of a number that was never sent is a violation and changes nothing; some numbers are left out, so that a receiver which
// acknowledges what it did not get is found (skipped_numbers.h). Loss: packet_threshold newer ones were acked, or 9/8
// of a round trip has passed since (RFC 9002 §6.1). Tail loss: after a timeout (RFC 6298) without an ack the owner sends a probe,
// the content of the oldest packet once more or a ping; the timeout doubles up to rto_max; after probes_max in a row all that is in
// flight is lost. Bounds: records of packets that ask for an ack only: in_flight_bytes_max, and the owner's window below it.
//
// Cost: an acknowledgement looks at its ranges, at the packets that it ends, and at packet_threshold
// more at most, however many are in flight. The oldest packets stand in front. A packet that is older
// than the newest acknowledged one ends with that acknowledgement, as acked or as lost, unless its
// number is less than packet_threshold away. So nothing is searched, and nothing behind is moved.
#pragma once
#include <optional>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/reliability/ack.h"
#include "core/reliability/delivery_rate.h"
#include "core/reliability/rtt.h"
#include "core/reliability/skipped_numbers.h"

namespace ccixfer::reliability {

inline constexpr uint64_t packet_threshold = 3;
inline constexpr uint32_t probes_max = 3;

// One thing in a packet, in the owner's words.
struct Carried {
  uint8_t kind = 0;
  uint32_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
};

struct SentPacket {
  uint64_t number = 0;
  Instant sent_at{};
  uint32_t bytes = 0;
  bool limited = false;  // the window kept the sender back
  DeliveryMark mark;
  std::vector<Carried> carried;
};

class SendLedger {
 public:
  struct Outcome {
    std::vector<SentPacket> acked;  // ascending by number, as are those lost
    std::vector<SentPacket> lost;
    RateSample rate;                     // of the packets acked
    std::optional<Duration> round_trip;  // as measured, if the newest packet of the ack is new
    bool probe = false;                  // send one packet that asks for an ack, whatever the window
    bool timed_out = false;              // all that was in flight is lost
    void clear();
  };

  [[nodiscard]] uint64_t next_number() const { return next_; }
  // Of a new ledger: it goes on with the numbers of an earlier ledger of the same connection, which had nothing in flight.
  void go_on(uint64_t next_number) { next_ = next_number; }
  void leave_out_numbers(uint64_t secret) { skipped_.begin(secret); }
  // Takes the next number. Not eliciting: nothing is remembered of it.
  uint64_t sent(Instant now, uint32_t bytes, bool eliciting, bool limited, std::vector<Carried> carried);
  // false: it acknowledges what was never sent.
  [[nodiscard]] bool acknowledge(const Ack& ack, Instant now, RttEstimator& rtt, Outcome& out);
  void timer(Instant now, const RttEstimator& rtt, Outcome& out);
  // The packets in flight went where nobody is any more: all of them are lost.
  void abandon(Outcome& out);
  // The application has nothing more to send, though the window and the pace would let it.
  void app_limited() { rate_.app_limited(in_flight_bytes_); }
  [[nodiscard]] Instant deadline(const RttEstimator& rtt) const;

  [[nodiscard]] uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  [[nodiscard]] uint64_t delivered_bytes() const { return rate_.delivered_bytes(); }  // acked in all
  [[nodiscard]] const SentPacket* oldest() const { return packets_.empty() ? nullptr : &packets_.front(); }
  [[nodiscard]] size_t packets() const { return packets_.size(); }
  [[nodiscard]] uint32_t probes() const { return probes_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }  // packets and ranges that acknowledge() has looked at so far

 private:
  void walk(const Ack& ack, Outcome& out);
  void detect(Instant now, const RttEstimator& rtt, Outcome& out);
  void lose_all(Outcome& out);
  [[nodiscard]] Instant probe_at(const RttEstimator& rtt) const;

  RingBuffer<SentPacket> packets_;  // in flight, by number
  SkippedNumbers skipped_;
  uint64_t next_ = 0;
  uint64_t largest_acked_ = 0;
  uint64_t in_flight_bytes_ = 0;
  Instant last_sent_at_{};
  Instant loss_at_ = never;  // a packet older than the largest acked one becomes lost by time
  uint32_t probes_ = 0;      // since the last ack
  bool any_acked_ = false;
  uint64_t steps_ = 0;
  DeliveryRate rate_;
};

}  // namespace ccixfer::reliability
