// How long the packets of a connection may be: the discovery of the path's MTU by probes. Pure; `now` is an argument. In: which
// packets arrived and which are lost, by their numbers and lengths, probes apart. Out: the length that content may have now, and
// the length of the probe that is to be sent. All lengths are those of datagrams, without the headers of IP.
//
// A connection begins with the base length. Then it probes: a size that most paths carry first, the longest one next, and after
// that the middle of those that are left of a table of usual sizes. `probes_per_size` lost in a row say that a size does not pass.
// When nothing is left to be tried the search is complete, and begins again from where it stands after `raise_after`.
//
// Guarantees: one probe is on its way at a time. A lost probe changes nothing but the search. A path that carries less than it did
// (a black hole) is noticed when black_hole_losses packets longer than the base are lost, of which none was followed by one that
// arrived, while a shorter one did: then the connection goes back to the base and searches again. What is lost in a silence that
// lasts until its packets are given up says nothing of lengths; a shorter outage may be taken for a black hole, which costs a
// search. Source: RFC 8899, sections 4 and 5. Deviation: there is no error state below the base, as the handshake's first packet
// has the length of the base; no size is confirmed by a timer, as every packet of content confirms it.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::reliability {

inline constexpr uint32_t probes_per_size = 3;                      // MAX_PROBES
inline constexpr uint32_t black_hole_losses = 6;                    // 5 % of random losses do that once in 64 million packets
inline constexpr Duration raise_after = std::chrono::seconds(600);  // PMTU_RAISE_TIMER

class PathMtu {
 public:
  enum class Phase : uint8_t {
    base,       // nothing longer has passed
    searching,  // something longer has, and there is more to be tried
    complete,
  };

  PathMtu(uint32_t base_bytes, uint32_t most_bytes)
      : base_(base_bytes), most_(most_bytes), good_(base_bytes), bad_(most_bytes + 1) {}

  // One that goes on where another one was, which found `good_bytes` and began to search again at `raise_at`.
  void go_on(uint32_t good_bytes, Instant raise_at) {
    good_ = good_bytes;
    raise_at_ = raise_at;
    phase_ = raise_at == never ? (good_ > base_ ? Phase::searching : Phase::base) : Phase::complete;
  }
  [[nodiscard]] Instant raise_at() const { return phase_ == Phase::complete ? raise_at_ : never; }

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] uint32_t base_bytes() const { return base_; }
  [[nodiscard]] uint32_t packet_bytes() const { return good_; }
  // The length of the probe that may leave now; 0: none.
  [[nodiscard]] uint32_t probe_due(Instant now);
  void probe_sent(uint32_t bytes) { probing_ = bytes; }
  void probe_acked(uint32_t bytes);
  void probe_lost(uint32_t bytes);
  void probe_forgotten() { probing_ = 0; }  // lost in a silence

  // Packets that are no probes; those of one acknowledgement that arrived come before those that it shows to be lost.
  void acked(uint64_t number, uint32_t bytes);
  void lost(uint64_t number, uint32_t bytes);

 private:
  [[nodiscard]] uint32_t next_size() const;  // 0: nothing is left
  void begin(Phase phase);

  uint32_t base_;
  uint32_t most_;
  uint32_t good_;         // passes
  uint32_t bad_;          // does not, nor does anything longer
  uint32_t probing_ = 0;  // on its way
  uint32_t lost_probes_ = 0;
  uint32_t lost_in_a_row_ = 0;      // packets longer than the base
  uint64_t newest_long_acked_ = 0;  // one more than its number; 0: none yet
  Instant raise_at_ = never;        // if complete
  Phase phase_ = Phase::base;
};

}  // namespace ccixfer::reliability
