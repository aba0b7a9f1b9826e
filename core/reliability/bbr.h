// Congestion control by a model of the path: the rate at which the bottleneck delivers and the
// round trip without a queue. The connection sends at that rate and keeps about twice their product
// in flight, so it neither needs a full queue to be fast nor takes a single loss for congestion.
//
// Phases: `startup` raises the pace each round until the rate grows no more (in three rounds, or in
// one where half a product stands in a queue already); `drain` empties the queue that startup built;
// then `cruise` at the measured rate, with a `probe_up` now and then (a quarter faster, to find out
// whether there is more) and a `probe_down` after it. When no short round trip has been seen for ten
// seconds, `probe_round_trip` keeps little in flight for 200 ms.
//
// Where others keep a queue standing, so that what this connection leaves free is theirs at once, it is in the phase `sharing` and
// takes what CUBIC would (shared_queue.h), until the queue is gone.
//
// On a path that an earlier connection knew, startup begins with half of what that one found, and goes on step by step where that
// is found again (careful_start.h). As soon as startup sees a queue begin it grows by a quarter in a round only (queue_onset.h):
// what it sends in the round trip until it knows that the path is full would overflow the queue.
//
// Losses: a round that loses more than 2 % bounds what is in flight (never below the product). If
// it was a round of a probe, the next probe waits longer: the one who probes too far makes way for
// those who do not, and for those who halve their window at a loss. A round that loses more than 10
// % in cruise shortens the memory of the rate.
//
// After a timeout the window begins small and doubles in a round, and the model stays: packets that were lost in the silence do not
// count, and no probe begins a new cycle of the rate, until the window holds a product again (62 round trips at most).
// Source: draft-cardwell-iccrg-bbr-congestion-control-00 and -02; Cardwell et al., "BBR:
// Congestion-Based Congestion Control", ACM Queue 14(5), 2016. Deviation: one bound in flight
// instead of BBRv2's three, no refill phase, and, in place of an estimate of extra acknowledgements,
// a fixed addition to the window for batches: what the path carries in a millisecond; the first window
// grows with the round trip, and doubles by itself for the first rounds; the phase `sharing` is our own.
#pragma once
#include "core/reliability/careful_start.h"
#include "core/reliability/congestion.h"
#include "core/reliability/path_model.h"
#include "core/reliability/queue_onset.h"
#include "core/reliability/shared_queue.h"

namespace ccixfer::reliability {

class Bbr final : public CongestionControl {
 public:
  enum class Phase : uint8_t { startup, drain, cruise, probe_up, probe_down, probe_round_trip, sharing };

  Bbr(uint32_t datagram_bytes, uint64_t seed);
  void sent(uint64_t bytes, uint64_t in_flight_bytes_before, Instant now) override;
  void acked(const AckReport& report) override;
  void round_trip(Duration latest, Duration smoothed, Instant now) override;
  void lost(const LossReport& report) override;
  void recall(const KnownPath& path) override { careful_.recall(path); }
  void timed_out() override;
  void datagram_length(uint32_t bytes) override;
  [[nodiscard]] uint64_t window_bytes() const override;
  [[nodiscard]] uint64_t pace_bytes_per_s() const override { return pace_; }
  [[nodiscard]] std::optional<KnownPath> learned() const override;

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] uint64_t bandwidth_bytes_per_s() const { return bandwidth_.most(); }
  [[nodiscard]] Duration round_trip_least() const { return round_trip_.least(); }

 private:
  void end_round(const AckReport& report);
  void look_at_first_flight(const AckReport& report);
  void look_for_full_pipe(const AckReport& report);
  void advance_phase(const AckReport& report);
  void probe_round_trip(const AckReport& report);
  void end_silence(Instant now);
  void enter(Phase phase, Instant now);
  void begin_cruise(Instant now);
  void begin_probe(Instant now);
  void look_for_others(const AckReport& report);
  void begin_sharing(const AckReport& report);
  void end_probe_of_round_trip(Instant now);
  void set_pace();
  void set_window(const AckReport& report);
  [[nodiscard]] uint64_t product_bytes(uint64_t percent) const;  // of bandwidth and round trip; the first window while unknown
  [[nodiscard]] uint64_t product_bytes(uint64_t percent, Duration round_trip) const;
  [[nodiscard]] uint64_t window_of_round_trip_probe() const;
  [[nodiscard]] uint64_t window_min() const;

  uint64_t datagram_;
  uint64_t seed_;
  Phase phase_ = Phase::startup;
  BandwidthFilter bandwidth_;
  RoundTripFilter round_trip_;
  RoundCounter rounds_;
  uint64_t first_window_;  // while the bandwidth is unknown
  uint64_t window_;
  uint64_t bound_ = in_flight_bytes_max;  // of what may be in flight, because of losses
  uint64_t pace_ = 0;
  uint64_t full_bandwidth_ = 0;  // startup: what the next round must exceed by a quarter
  uint32_t rounds_without_more_ = 0;
  bool has_enough_in_flight_ = false;  // so much is in flight that a queue which begins will grow without more
  uint32_t rounds_held_ = 0;           // startup: rounds to come in which less growth is enough, as the pace was held back
  CarefulStart careful_;
  SharedQueue queue_;
  QueueOnset onset_;
  Duration smoothed_ = RoundTripFilter::assumed;  // round trip
  bool was_sharing_ = false;                      // before the probe of the round trip
  bool no_queue_ = true;                          // as the latest round trip shows
  bool doubles_by_itself_ = false;  // in startup's first rounds the window doubles, whatever the samples of the rate say
  bool full_ = false;               // startup has found the rate
  bool probe_was_lossy_ = false;    // a round of the last probe has lost too much
  bool is_probe_round_ = true;      // what the present round loses may be a probe's
  Instant phase_since_{};
  Duration cruise_{0};        // how long the present one lasts
  bool round_ended_ = false;  // since the round trip's probe had little in flight
  Instant probe_ends_ = never;
  Instant counts_from_{};  // losses of packets that left before say nothing of the rate; never: since a timeout nothing has come
  bool recovers_ = false;  // after a timeout the window is still small, and what is measured is the window and not the path
};

}  // namespace ccixfer::reliability
