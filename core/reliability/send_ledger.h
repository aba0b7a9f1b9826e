// What the sender knows of its packets: numbers that are never used twice, what each carried, which were acknowledged, which are
// lost, when to probe. Pure: told what was sent, what the peer acknowledged and what time it is; says what became of each packet.
// The owner sends the content of a lost packet again, under a new number, if it still matters.
//
// Guarantees: every packet that asks for an ack ends exactly once, acked or lost (a late ack of a lost one is of no consequence);
// an ack of a number that was never sent is a violation and changes nothing. Loss: packet_threshold newer ones were acked, or 9/8
// of a round trip has passed since (RFC 9002 §6.1). Tail loss: after a timeout (RFC 6298) without an ack the owner sends a probe,
// the content of the oldest packet once more; the timeout doubles up to rto_max; after probes_max in a row all that is in flight is
// lost. Bounds: records of packets that ask for an ack only: in_flight_bytes_max, and the owner's window below it.
#pragma once
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/reliability/ack.h"
#include "core/reliability/rtt.h"

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
  std::vector<Carried> carried;
};

class SendLedger {
 public:
  struct Outcome {
    std::vector<SentPacket> acked;
    std::vector<SentPacket> lost;
    bool probe = false;      // send one packet that asks for an ack, whatever the window
    bool timed_out = false;  // all that was in flight is lost
    void clear();
  };

  [[nodiscard]] uint64_t next_number() const { return next_; }
  // Takes the next number. Not eliciting: nothing is remembered of it.
  uint64_t sent(Instant now, uint32_t bytes, bool eliciting, bool limited, std::vector<Carried> carried);
  // false: it acknowledges what was never sent.
  [[nodiscard]] bool acknowledge(const Ack& ack, Instant now, RttEstimator& rtt, Outcome& out);
  void timer(Instant now, const RttEstimator& rtt, Outcome& out);
  [[nodiscard]] Instant deadline(const RttEstimator& rtt) const;

  [[nodiscard]] uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  [[nodiscard]] const SentPacket* oldest() const { return packets_.empty() ? nullptr : &packets_.front(); }
  [[nodiscard]] size_t packets() const { return packets_.size(); }
  [[nodiscard]] uint32_t probes() const { return probes_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }  // packets looked at by acknowledge() so far

 private:
  void detect(Instant now, const RttEstimator& rtt, Outcome& out);
  [[nodiscard]] Instant probe_at(const RttEstimator& rtt) const;

  RingBuffer<SentPacket> packets_;  // in flight, by number
  uint64_t next_ = 0;
  uint64_t largest_acked_ = 0;
  bool any_acked_ = false;
  uint64_t in_flight_bytes_ = 0;
  Instant last_sent_at_{};
  Instant loss_at_ = never;  // a packet older than the largest acked one becomes lost by time
  uint32_t probes_ = 0;      // since the last ack
  uint64_t steps_ = 0;
};

}  // namespace ccixfer::reliability
