// Whether a connection's peer is at another address than it was: a packet in its name came from there. Both addresses are asked,
// each for a number of its own that only who receives there can know. The peer has moved when the new address has answered and the
// one of before has not in the time that it takes: somebody who sends copies of its packets from elsewhere, and faster than they
// travel, moves nobody who still receives where he was.
// Pure: `now` is an argument. Guarantees: at most unproved_bytes_factor times what came from the new address is to be sent there;
// an end is reached after path_challenges_max challenges at the latest; after one that is no move there is a pause, in which
// nothing is asked. Single-threaded. Source: RFC 9000, 8.2 and 9.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/limits.h"

namespace ccixfer::datagram {

class PathCheck {
 public:
  struct Tokens {
    uint64_t there = 0;
    uint64_t here = 0;
  };
  enum class Step : uint8_t {
    wait,
    ask,     // both addresses are to be asked now
    moved,   // the peer is there
    stayed,  // it is where it was, or nobody answers: the pause begins
    over,    // so is the pause
  };

  // `answer_time`: what an answer from the address of before takes at the longest.
  PathCheck(const Address& there, Tokens tokens, Instant now, Duration answer_time)
      : there_(there), tokens_(tokens), decided_at_(after(now, answer_time)), next_at_(now) {}

  [[nodiscard]] const Address& there() const { return there_; }
  [[nodiscard]] const Tokens& tokens() const { return tokens_; }
  [[nodiscard]] bool is_pausing() const { return pausing_; }
  // A packet of the connection came from there, or is to go there before it is proved.
  void arrived(size_t bytes) { arrived_bytes_ += bytes; }
  [[nodiscard]] bool may_send(size_t bytes) const { return sent_bytes_ + bytes <= unproved_bytes_factor * arrived_bytes_; }
  void sent(size_t bytes) { sent_bytes_ += bytes; }

  [[nodiscard]] Instant deadline() const { return answered_ ? decided_at_ : next_at_; }
  // The deadline has come, or something else has happened.
  [[nodiscard]] Step step(Instant now);
  void answered() { answered_ = true; }  // from there
  void stay(Instant now);                // the peer is where it was

 private:
  Address there_;
  Tokens tokens_;
  uint64_t arrived_bytes_ = 0;
  uint64_t sent_bytes_ = 0;
  Instant decided_at_;
  Instant next_at_;  // of the next challenge, or of the end of the pause
  Duration pause_ = hello_pause_first;
  uint32_t asked_ = 0;
  bool answered_ = false;
  bool pausing_ = false;
};

}  // namespace ccixfer::datagram
