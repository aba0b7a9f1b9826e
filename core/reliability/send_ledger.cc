#include "core/reliability/send_ledger.h"

#include <algorithm>
#include <utility>

namespace ccixfer::reliability {
namespace {

Duration loss_delay(const RttEstimator& rtt) { return std::max(std::max(rtt.smoothed(), rtt.latest()) * 9 / 8, clock_granularity); }

}  // namespace

void SendLedger::Outcome::clear() {
  acked.clear();
  lost.clear();
  probe = false;
  timed_out = false;
}

uint64_t SendLedger::sent(Instant now, uint32_t bytes, bool eliciting, bool limited, std::vector<Carried> carried) {
  const uint64_t number = next_++;
  if (!eliciting) return number;
  packets_.push_back({number, now, bytes, limited, std::move(carried)});
  in_flight_bytes_ += bytes;
  last_sent_at_ = now;
  return number;
}

bool SendLedger::acknowledge(const Ack& ack, Instant now, RttEstimator& rtt, Outcome& out) {
  if (ack.largest() >= next_) return false;
  const size_t before = out.acked.size();
  // Ranges are descending, packets ascending: walk the ranges from their end. Only packets between the first one acknowledged and
  // the last are looked at, not all the window that was sent after them.
  auto packet = packets_.begin();
  auto first = packets_.end();
  auto keep = packets_.end();
  for (size_t range = ack.count; range > 0; --range) {
    const Range& told = ack.list[range - 1];
    auto begin = std::lower_bound(packet, packets_.end(), told.first, [this](const SentPacket& sent, uint64_t number) {
      ++steps_;
      return sent.number < number;
    });
    if (begin == packets_.end()) break;
    if (begin->number > told.last) continue;
    if (first == packets_.end()) {
      first = keep = begin;
    } else {
      for (; packet != begin; ++packet, ++steps_) *keep++ = std::move(*packet);
    }
    for (packet = begin; packet != packets_.end() && packet->number <= told.last; ++packet, ++steps_) {
      in_flight_bytes_ -= packet->bytes;
      out.acked.push_back(std::move(*packet));
    }
  }
  if (first != packets_.end()) packets_.erase(keep, packet);
  largest_acked_ = std::max(largest_acked_, ack.largest());
  any_acked_ = true;
  if (out.acked.size() > before) {
    const SentPacket& newest = out.acked.back();
    if (newest.number == ack.largest()) rtt.sample(now - newest.sent_at, ack.delay);
    probes_ = 0;
  }
  detect(now, rtt, out);
  return true;
}

void SendLedger::detect(Instant now, const RttEstimator& rtt, Outcome& out) {
  loss_at_ = never;
  if (!any_acked_) return;
  const Duration delay = loss_delay(rtt);
  while (!packets_.empty() && packets_.front().number < largest_acked_) {
    SentPacket& oldest = packets_.front();
    const bool overtaken = oldest.number + packet_threshold <= largest_acked_;
    if (!overtaken && after(oldest.sent_at, delay) > now) {
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
  for (SentPacket& packet : packets_) out.lost.push_back(std::move(packet));
  packets_.clear();
  in_flight_bytes_ = 0;
}

}  // namespace ccixfer::reliability
