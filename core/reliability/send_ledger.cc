#include "core/reliability/send_ledger.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ccixfer::reliability {
namespace {

Duration loss_delay(const RttEstimator& rtt) { return std::max(std::max(rtt.smoothed(), rtt.latest()) * 9 / 8, clock_granularity); }

}  // namespace

void SendLedger::Outcome::clear() {
  acked.clear();
  lost.clear();
  rate = {};
  round_trip.reset();
  probe = false;
  timed_out = false;
}

uint64_t SendLedger::sent(Instant now, uint32_t bytes, bool eliciting, bool limited, std::vector<Carried> carried) {
  const uint64_t number = next_++;
  while (skipped_.skips(next_)) ++next_;
  if (!eliciting) return number;
  packets_.push_back({number, now, bytes, limited, rate_.sent(now, in_flight_bytes_), std::move(carried)});
  in_flight_bytes_ += bytes;
  last_sent_at_ = now;
  return number;
}

// Takes every packet up to the largest that the ack names from the front, and puts back those few
// that are neither told nor overtaken. Ranges are descending, packets ascending.
void SendLedger::walk(const Ack& ack, Outcome& out) {
  std::array<SentPacket, packet_threshold> kept;
  size_t kept_count = 0;
  size_t range = ack.count;
  while (!packets_.empty() && packets_.front().number <= ack.largest()) {
    ++steps_;
    SentPacket& packet = packets_.front();
    for (; ack.list[range - 1].last < packet.number; ++steps_) --range;
    const bool told = ack.list[range - 1].first <= packet.number;
    if (!told && packet.number + packet_threshold + skipped_.between(packet.number, largest_acked_) > largest_acked_) {
      kept[kept_count++] = std::move(packet);
    } else {
      in_flight_bytes_ -= packet.bytes;
      (told ? out.acked : out.lost).push_back(std::move(packet));
    }
    packets_.drop_front();
  }
  while (kept_count > 0) packets_.push_front(std::move(kept[--kept_count]));
}

bool SendLedger::acknowledge(const Ack& ack, Instant now, RttEstimator& rtt, Outcome& out) {
  if (ack.largest() >= next_ || skipped_.is_named_by(ack)) return false;
  largest_acked_ = std::max(largest_acked_, ack.largest());
  any_acked_ = true;
  const size_t before = out.acked.size();
  walk(ack, out);
  const std::span<const SentPacket> acked = std::span(out.acked).subspan(before);
  if (!acked.empty()) {
    const SentPacket& newest = acked.back();
    if (newest.number == ack.largest()) {
      out.round_trip = now - newest.sent_at;
      rtt.sample(*out.round_trip, ack.delay);
    }
    probes_ = 0;
  }
  out.rate = rate_.acked(acked, now, rtt.known() ? rtt.least() : Duration{0});
  detect(now, rtt, out);
  return true;
}

// Of those older than the newest one acknowledged only such are left as time alone can declare lost.
void SendLedger::detect(Instant now, const RttEstimator& rtt, Outcome& out) {
  loss_at_ = never;
  if (!any_acked_) return;
  const Duration delay = loss_delay(rtt);
  while (!packets_.empty() && packets_.front().number < largest_acked_) {
    SentPacket& oldest = packets_.front();
    if (after(oldest.sent_at, delay) > now) {
      loss_at_ = after(oldest.sent_at, delay);
      return;
    }
    in_flight_bytes_ -= oldest.bytes;
    out.lost.push_back(std::move(oldest));
    packets_.drop_front();
  }
}

Instant SendLedger::probe_at(const RttEstimator& rtt) const {
  if (packets_.empty()) return never;
  Duration wait = rtt.timeout();
  for (uint32_t i = 0; i < probes_ && wait < rto_max; ++i) wait *= 2;
  return after(last_sent_at_, std::min(wait, rto_max));
}

Instant SendLedger::deadline(const RttEstimator& rtt) const { return std::min(loss_at_, probe_at(rtt)); }

void SendLedger::timer(Instant now, const RttEstimator& rtt, Outcome& out) {
  if (loss_at_ <= now) return detect(now, rtt, out);
  if (probe_at(rtt) > now) return;
  ++probes_;
  last_sent_at_ = now;  // the probe that the owner sends; also if it has none to send
  out.probe = true;
  if (probes_ % probes_max != 0) return;
  out.timed_out = true;
  lose_all(out);
}

void SendLedger::abandon(Outcome& out) {
  probes_ = 0;
  lose_all(out);
}

void SendLedger::lose_all(Outcome& out) {
  for (SentPacket& packet : packets_) out.lost.push_back(std::move(packet));
  packets_.clear();
  in_flight_bytes_ = 0;
  loss_at_ = never;
}

}  // namespace ccixfer::reliability
