#include "core/reliability/bbr.h"

#include <algorithm>

#include "core/reliability/send_ledger.h"

namespace ccixfer::reliability {
namespace {

// One connection stands here for the many that movers of bulk data open over TCP, of which each begins with ten packets (RFC 6928).
// On a long path it begins with more of them: it doubles only once in a round trip, and what is sent in the first one is paced.
constexpr uint64_t first_window_datagrams = 64;
constexpr uint64_t first_window_datagrams_max = 256;
constexpr uint64_t first_bytes_per_s = 25'000'000 / 8;

// Percent of the bandwidth that each phase paces.
constexpr uint64_t pace_startup = 277;  // 4 ln 2: doubles the rate each round
constexpr uint64_t pace_drain = 36;     // its reciprocal
constexpr uint64_t pace_up = 125;
constexpr uint64_t pace_down = 75;
constexpr uint64_t pace_margin = 99;  // a little less than measured, so that a queue does not stay

// Percent of the product that may be in flight.
constexpr uint64_t window_startup = 225;
constexpr uint64_t window_usual = 200;
constexpr uint64_t window_probe_round_trip = 50;
constexpr uint64_t window_min_datagrams = 4;
constexpr uint64_t window_spare_datagrams = 3;  // for acknowledgements that are kept back
// For packets that wait to leave or to be taken together, in batches: what the path carries in a millisecond, and at most three
// batches of 64. Without it a short path with batches longer than its round trip goes stop and go.
constexpr uint64_t batches_datagrams_max = 3 * 64;
constexpr uint64_t batches_per_s = 1000;

// The first rounds' samples of the rate are too low, as little was on its way before them. So the window doubles by itself there,
// until that many first windows were delivered, or a round trip shows a queue.
constexpr uint64_t first_windows_doubled = 3;
constexpr int queue_begins = 125;           // percent of the least round trip
constexpr uint64_t queue_stands = 150;      // percent of the product in flight: the path is full, whatever more there is to send
constexpr uint64_t full_growth = 125;       // percent: less growth in a round does not count
constexpr uint64_t full_growth_held = 110;  // where the pace was to grow by a quarter only
constexpr uint32_t rounds_held = 2;         // the one in which it was sent, and the one in which that is acknowledged
constexpr uint32_t full_rounds = 3;
constexpr uint64_t loss_tolerated = 2;        // percent of a round
constexpr uint64_t loss_of_collapse = 10;     // the path is much slower than the model says
constexpr uint64_t loss_spare_datagrams = 2;  // in a round of few packets a share says little
constexpr uint64_t bound_after_loss = 85;     // percent of what was allowed

constexpr int64_t cruise_round_trips = 6;
constexpr int64_t cycle_of_sharing = 8;  // round trips
constexpr int64_t cruise_round_trips_max = 62;
constexpr Duration cruise_after_loss_max = std::chrono::seconds(2);
constexpr Duration probe_round_trip_time = std::chrono::milliseconds(200);

uint64_t bytes_of(std::span<const SentPacket> packets) {
  uint64_t bytes = 0;
  for (const SentPacket& packet : packets) bytes += packet.bytes;
  return bytes;
}

}  // namespace

Bbr::Bbr(uint32_t datagram_bytes, uint64_t seed)
    : datagram_(datagram_bytes), seed_(seed), first_window_(first_window_datagrams * datagram_bytes), window_(first_window_) {
  set_pace();
}

uint64_t Bbr::window_min() const { return window_min_datagrams * datagram_; }

uint64_t Bbr::product_bytes(uint64_t percent) const { return product_bytes(percent, round_trip_.least()); }

uint64_t Bbr::product_bytes(uint64_t percent, Duration round_trip) const {
  if (bandwidth_.most() == 0 || !round_trip_.known()) return first_window_ * percent / 100;
  const auto round_trip_us = static_cast<uint64_t>(std::max<int64_t>(round_trip.count() / 1000, 1));
  return std::max(bandwidth_.most() * round_trip_us / 1'000'000 * percent / 100, datagram_);
}

// While it shares, the shortest round trip of the last seconds may be one of a queue, and the product with it.
uint64_t Bbr::window_of_round_trip_probe() const {
  const bool sharing = phase_ == Phase::sharing || (phase_ == Phase::probe_round_trip && was_sharing_);
  const Duration path = sharing ? std::min(queue_.path(), round_trip_.least()) : round_trip_.least();
  return std::max(product_bytes(window_probe_round_trip, path), window_min());
}

uint64_t Bbr::window_bytes() const {
  uint64_t most = phase_ == Phase::probe_up ? bound_ * pace_up / 100 : bound_;
  if (phase_ == Phase::probe_round_trip) most = std::min(most, window_of_round_trip_probe());
  return std::clamp(window_, window_min(), std::clamp(most, window_min(), in_flight_bytes_max));
}

void Bbr::sent(uint64_t /*bytes*/, uint64_t in_flight_bytes_before, Instant now) {
  // After a pause nothing is in flight, and a faster pace would probe nothing.
  if (in_flight_bytes_before == 0 && (phase_ == Phase::probe_up || phase_ == Phase::probe_down)) {
    begin_cruise(now);
    set_pace();
  }
}

void Bbr::round_trip(Duration latest, Duration smoothed, Instant now) {
  smoothed_ = smoothed;
  queue_.round_trip(latest);
  onset_.round_trip(latest, round_trip_.known() ? round_trip_.least() : latest);
  const bool first = !round_trip_.known();
  round_trip_.add(latest, now);
  careful_.round_trip(latest, round_trip_.least());
  if (careful_.begins()) window_ = std::max(window_, careful_.window_bytes());
  no_queue_ = latest * 100 <= round_trip_.least() * queue_begins;
  if (!first) return;
  if (bandwidth_.most() == 0) {
    const auto round_trip_us = static_cast<uint64_t>(round_trip_.least().count() / 1000);
    const uint64_t wanted = first_bytes_per_s * std::min<uint64_t>(round_trip_us, 1'000'000) / 1'000'000;
    first_window_ = std::max(first_window_, std::min(wanted, first_window_datagrams_max * datagram_));
    window_ = std::max(window_, first_window_);
  }
  pace_ = 0;  // the one before was of an assumed round trip
  set_pace();
}

void Bbr::acked(const AckReport& report) {
  bandwidth_.add(report.rate);
  has_enough_in_flight_ = report.in_flight_bytes >= product_bytes(queue_stands);
  if (rounds_.ends(report.rate, report.delivered_bytes)) end_round(report);
  if (counts_from_ == never) end_silence(report.now);
  advance_phase(report);
  probe_round_trip(report);
  set_pace();
  set_window(report);
}

// The first acknowledgement after a timeout.
void Bbr::end_silence(Instant now) {
  counts_from_ = now;
  recovers_ = true;
  if (phase_ == Phase::cruise || phase_ == Phase::probe_up || phase_ == Phase::probe_down) begin_cruise(now);
}

void Bbr::end_round(const AckReport& report) {
  round_ended_ = true;
  const bool lossy = rounds_.lost_more_than(loss_tolerated, loss_spare_datagrams * datagram_);
  if (full_) look_for_others(report);
  queue_.next_round();
  if (!full_) look_at_first_flight(report);
  if (!full_ && !careful_.is_unproved()) look_for_full_pipe(report);
  if (rounds_held_ > 0) --rounds_held_;
  probe_was_lossy_ = probe_was_lossy_ || (lossy && is_probe_round_);
  if (phase_ == Phase::cruise) is_probe_round_ = false;  // those after it are not
  if (!lossy || phase_ == Phase::sharing) return;
  if (full_) bound_ = std::max(product_bytes(100), std::min(bound_, window_) * bound_after_loss / 100);
  if (phase_ == Phase::cruise && rounds_.lost_more_than(loss_of_collapse, loss_spare_datagrams * datagram_))
    bandwidth_.next_cycle();
}

// What was remembered of the path let more fly than anything has proved. A round in which there was enough to send shows whether it
// passes. Where too much of it is lost, startup judges that round as any other.
void Bbr::look_at_first_flight(const AckReport& report) {
  if (careful_.is_found_again(bandwidth_.most())) full_ = true;
  if (!careful_.is_unproved()) return;
  if (rounds_.lost_more_than(loss_tolerated, loss_spare_datagrams * datagram_)) {
    careful_.give_up();
  } else if (!report.rate.app_limited) {
    careful_.proved();
  }
}

// A sender that has no more to send says nothing of the path, unless a queue stands there already: one that shows, as much in
// flight alone is none where little has been measured yet.
void Bbr::look_for_full_pipe(const AckReport& report) {
  if (recovers_) return;
  if (report.rate.app_limited && (no_queue_ || report.in_flight_bytes < product_bytes(queue_stands))) return;
  if (bandwidth_.most() * 100 >= full_bandwidth_ * (rounds_held_ > 0 ? full_growth_held : full_growth)) {
    full_bandwidth_ = bandwidth_.most();
    rounds_without_more_ = 0;
    return;
  }
  ++rounds_without_more_;
  // Twice as much in flight brings no more: the rest stands in a queue.
  full_ = rounds_without_more_ >= full_rounds || report.in_flight_bytes >= product_bytes(queue_stands) ||
          rounds_.lost_more_than(loss_tolerated, loss_spare_datagrams * datagram_);
}

void Bbr::look_for_others(const AckReport& report) {
  const Duration path = round_trip_.least();
  const bool lost = rounds_.lost_more_than(0, 0);
  if (phase_ != Phase::sharing) {
    // Packets that left in startup or in a probe have seen a queue of our own.
    if (phase_ != Phase::cruise || is_probe_round_) return;
    if (!lost || !queue_.stood_all_round(path)) return;
    begin_sharing(report);
  }
  queue_.round_ended(lost, path, static_cast<uint32_t>(datagram_), report.now);
}

void Bbr::begin_sharing(const AckReport& report) {
  enter(Phase::sharing, report.now);
  recovers_ = false;
  queue_.next_cycle();
  uint64_t begins = report.in_flight_bytes + bytes_of(report.packets);
  // Who had little to send may have what the model allowed: CUBIC would take long to get there.
  if (report.rate.app_limited) begins = std::max(begins, std::min(window_, product_bytes(100)));
  queue_.begin(std::max(begins, window_min()), report.now);
  bound_ = in_flight_bytes_max;
  probe_was_lossy_ = false;
}

void Bbr::enter(Phase phase, Instant now) {
  phase_ = phase;
  phase_since_ = now;
}

void Bbr::begin_cruise(Instant now) {
  enter(Phase::cruise, now);
  seed_ = seed_ * 6364136223846793005 + 1442695040888963407;
  cruise_ = round_trip_.least() * (cruise_round_trips + static_cast<int64_t>((seed_ >> 60) % 3) - 1);
}

void Bbr::begin_probe(Instant now) {
  if (!probe_was_lossy_) bound_ = std::min(bound_ * pace_up / 100, in_flight_bytes_max);
  probe_was_lossy_ = false;
  is_probe_round_ = true;
  recovers_ = false;
  bandwidth_.next_cycle();
  queue_.next_cycle();
  enter(Phase::probe_up, now);
}

void Bbr::advance_phase(const AckReport& report) {
  const Duration elapsed = report.now - phase_since_;
  switch (phase_) {
    case Phase::startup:
      if (full_) enter(Phase::drain, report.now);
      return;
    case Phase::drain:
      if (report.in_flight_bytes <= product_bytes(100)) begin_cruise(report.now);
      return;
    case Phase::cruise: {
      if (recovers_ && elapsed < round_trip_.least() * cruise_round_trips_max) return;
      const Duration longest = std::min(round_trip_.least() * cruise_round_trips_max, cruise_after_loss_max);
      if (elapsed < (probe_was_lossy_ ? std::max(longest, cruise_) : cruise_)) return;
      if (queue_.stood_all_cycle(round_trip_.least())) {
        begin_sharing(report);
      } else {
        begin_probe(report.now);
      }
      return;
    }
    case Phase::probe_up: {
      const bool long_enough = elapsed > round_trip_.least();
      const bool filled = report.in_flight_bytes >= product_bytes(pace_up) || elapsed > 4 * round_trip_.least();
      if (long_enough && (filled || probe_was_lossy_)) enter(Phase::probe_down, report.now);
      return;
    }
    case Phase::probe_down:
      if (elapsed > round_trip_.least() || report.in_flight_bytes <= product_bytes(100)) begin_cruise(report.now);
      return;
    case Phase::sharing:
      if (queue_.is_gone(round_trip_.least(), smoothed_, report.now)) return begin_cruise(report.now);
      if (elapsed < cycle_of_sharing * smoothed_) return;
      bandwidth_.next_cycle();
      phase_since_ = report.now;
      return;
    case Phase::probe_round_trip:
      return;
  }
}

void Bbr::probe_round_trip(const AckReport& report) {
  const uint64_t little = window_of_round_trip_probe();
  if (phase_ != Phase::probe_round_trip) {
    if (!round_trip_.is_stale()) return;
    // With so little in flight the round trip that was just measured had no queue of ours.
    if (report.in_flight_bytes + bytes_of(report.packets) <= little) return round_trip_.refreshed(report.now);
    was_sharing_ = phase_ == Phase::sharing;
    enter(Phase::probe_round_trip, report.now);
    probe_ends_ = never;
  }
  if (probe_ends_ == never && report.in_flight_bytes <= little) {
    probe_ends_ = after(report.now, probe_round_trip_time);
    queue_.next_cycle();
    round_ended_ = false;
  }
  if (probe_ends_ > report.now || !round_ended_) return;
  round_trip_.refreshed(report.now);
  end_probe_of_round_trip(report.now);
}

void Bbr::end_probe_of_round_trip(Instant now) {
  if (!full_) return enter(Phase::startup, now);
  if (was_sharing_ && !queue_.was_own()) {
    enter(Phase::sharing, now);
    bound_ = in_flight_bytes_max;
    return queue_.go_on(now);
  }
  if (was_sharing_) bound_ = std::max(queue_.window_bytes(), window_min());
  begin_cruise(now);
}

void Bbr::set_pace() {
  const bool held = phase_ == Phase::startup && onset_.stands();
  uint64_t percent = 100;
  if (phase_ == Phase::startup) percent = !held ? pace_startup : has_enough_in_flight_ ? 100 : pace_up;
  if (phase_ == Phase::drain) percent = pace_drain;
  if (phase_ == Phase::probe_up) percent = pace_up;
  if (phase_ == Phase::probe_down) percent = pace_down;
  uint64_t bandwidth = bandwidth_.most();
  const bool remembers = careful_.is_unproved();  // then the window says nothing of what was measured
  if (bandwidth == 0) bandwidth = bytes_per_s(remembers ? first_window_ : window_, round_trip_.least());
  // The smallest window in a round trip at least: with one packet a round no sample could show that
  // there is room for more. Where that is too fast, the window holds the sender back.
  const uint64_t floor = std::max(bytes_per_s(window_min(), round_trip_.least()), pace_min_bytes_per_s);
  const uint64_t pace = std::max(bandwidth / 100 * percent / 100 * pace_margin, floor);
  pace_ = full_ || held ? pace : std::max(pace_, pace);
  const uint64_t pace_most = std::max(careful_.pace_most(bandwidth_.most()), floor);
  if (held || (phase_ == Phase::startup && pace_ > pace_most)) {
    pace_ = std::min(pace_, pace_most);
    rounds_held_ = rounds_held;
  }
  if (phase_ == Phase::sharing) pace_ = std::max(bytes_per_s(queue_.window_bytes(), smoothed_) / 100 * pace_up, floor);
  if (remembers) pace_ = std::max(pace_, careful_.bytes_per_s());
  if (doubles_by_itself_ && !remembers) pace_ = std::max(pace_, bytes_per_s(window_, round_trip_.least()) / 200 * pace_startup);
}

void Bbr::set_window(const AckReport& report) {
  const uint64_t acked = bytes_of(report.packets);
  if (phase_ == Phase::sharing) {
    queue_.acked(acked, report.in_flight_bytes + acked, static_cast<uint32_t>(datagram_), smoothed_, report.now);
    window_ = std::clamp(queue_.window_bytes(), window_min(), in_flight_bytes_max);
    return;
  }
  const uint64_t spare = std::min(bandwidth_.most() / batches_per_s, batches_datagrams_max * datagram_);
  const uint64_t target =
      product_bytes(phase_ == Phase::startup ? window_startup : window_usual) + window_spare_datagrams * datagram_ + spare;
  doubles_by_itself_ = !full_ && (report.delivered_bytes < first_window_ ||
                                  (no_queue_ && report.delivered_bytes < first_windows_doubled * first_window_));
  if (full_) {
    window_ = std::min(window_ + acked, target);
  } else if (window_ < target || doubles_by_itself_) {
    window_ += acked;
  }
  window_ = std::clamp(window_, window_min(), in_flight_bytes_max);
  recovers_ = recovers_ && window_ < product_bytes(100);
}

void Bbr::lost(const LossReport& report) {
  for (const SentPacket& packet : report.packets) {
    if (packet.sent_at >= counts_from_) rounds_.lost(packet.bytes);
  }
  careful_.lost();
}

std::optional<KnownPath> Bbr::learned() const {
  if (!full_ || !round_trip_.known()) return std::nullopt;
  return KnownPath{bandwidth_.most(), round_trip_.least()};
}

void Bbr::datagram_length(uint32_t bytes) {
  datagram_ = bytes;
  window_ = std::max(window_, window_min());
}

// The window begins small and grows with what is acknowledged; the model stays.
void Bbr::timed_out() {
  if (phase_ == Phase::sharing) {
    phase_ = Phase::cruise;
    bound_ = std::max(queue_.window_bytes() * bound_after_loss / 100, window_min());
    queue_.next_cycle();
  }
  was_sharing_ = false;
  window_ = window_min();
  careful_.give_up();
  full_bandwidth_ = 0;
  rounds_without_more_ = 0;
  counts_from_ = never;
}

}  // namespace ccixfer::reliability
