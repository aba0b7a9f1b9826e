#include "tests/unit/reliability/bottleneck.h"

#include <algorithm>
#include <utility>

namespace ccixfer::reliability::testing {

Bottleneck::Bottleneck(const BottleneckOptions& options)
    : options_(options),
      queue_bytes_(static_cast<uint64_t>(static_cast<double>(options.rate) *
                                         std::chrono::duration<double>(options.round_trip).count() * options.queue_products)) {}

size_t Bottleneck::add(std::unique_ptr<CongestionControl> control, Duration begins) {
  auto flow = std::make_unique<Flow>();
  flow->control = std::move(control);
  flow->begins = now_ + begins;
  flows_.push_back(std::move(flow));
  return flows_.size() - 1;
}

Duration Bottleneck::waiting() const { return std::max(link_free_ - now_, Duration{0}); }

Instant Bottleneck::next_event() const {
  Instant next = coming_.empty() ? never : coming_.front().at;
  for (const auto& flow : flows_) {
    if (flow->has_room()) next = std::min(next, std::max(flow->begins, flow->pacer.ready_at(now_)));
    next = std::min(next, flow->ledger.deadline(flow->rtt));
  }
  return next;
}

void Bottleneck::run(Duration time) {
  const Instant end = now_ + time;
  while (now_ < end) {
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = *flows_[i];
      while (now_ >= flow.begins && flow.has_room() && flow.pacer.ready_at(now_) <= now_) send(flow, i);
    }
    now_ = std::max(now_ + Duration{1}, std::min(end, next_event()));
    while (!coming_.empty() && coming_.front().at <= now_) {
      acknowledge(coming_.front());
      coming_.pop_front();
    }
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = *flows_[i];
      if (flow.ledger.deadline(flow.rtt) > now_) continue;
      flow.out.clear();
      flow.ledger.timer(now_, flow.rtt, flow.out);
      learn(flow, now_);
      if (flow.out.probe) send(flow, i);
    }
  }
}

void Bottleneck::send(Flow& flow, size_t number) {
  const uint64_t packet = flow.ledger.next_number();
  const uint64_t before = flow.ledger.in_flight_bytes();
  static_cast<void>(flow.ledger.sent(now_, datagram, true, true, {}));
  flow.control->sent(datagram, before, now_);
  flow.pacer.sent(datagram, flow.control->pace_bytes_per_s(), now_);
  if (random_.chance(options_.loss)) return;
  link_free_ = std::max(link_free_, now_);
  const auto queued = static_cast<uint64_t>((link_free_ - now_).count()) * (options_.rate / 1000) / 1'000'000;
  if (queued + datagram > queue_bytes_) {
    ++dropped_;
    return;
  }
  link_free_ += Duration(static_cast<int64_t>(datagram * 1'000'000'000ull / options_.rate));
  coming_.push_back({link_free_ + options_.round_trip, number, packet});
}

void Bottleneck::acknowledge(const Coming& coming) {
  Flow& flow = *flows_[coming.flow];
  Ack ack;
  ack.count = 1;
  ack.list[0] = {coming.number, coming.number};
  flow.out.clear();
  static_cast<void>(flow.ledger.acknowledge(ack, now_, flow.rtt, flow.out));
  learn(flow, now_);
}

void Bottleneck::learn(Flow& flow, Instant now) {
  const SendLedger::Outcome& out = flow.out;
  if (out.round_trip) flow.control->round_trip(flow.rtt.latest(), flow.rtt.smoothed(), now);
  if (!out.acked.empty())
    flow.control->acked({now, out.acked, out.rate, flow.ledger.delivered_bytes(), flow.ledger.in_flight_bytes()});
  if (out.timed_out) return flow.control->timed_out();
  if (!out.lost.empty()) flow.control->lost({now, out.lost, flow.ledger.in_flight_bytes()});
}

}  // namespace ccixfer::reliability::testing
