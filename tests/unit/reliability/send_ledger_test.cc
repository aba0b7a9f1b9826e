#include "core/reliability/send_ledger.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "core/reliability/receive_ledger.h"
#include "transports/sim/random.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::Ack;
using reliability::Range;
using reliability::RttEstimator;
using reliability::SendLedger;

namespace {

const Instant start{std::chrono::seconds(100)};

struct Rig {
  SendLedger ledger;
  RttEstimator rtt;
  SendLedger::Outcome out;
  Instant now = start;

  uint64_t send() { return ledger.sent(now, 1000, true, true, {{1, 2, ledger.next_number(), 4}}); }
  bool ack(std::vector<Range> descending) {
    Ack ack;
    for (const Range& range : descending) ack.list[ack.count++] = range;
    out.clear();
    return ledger.acknowledge(ack, now, rtt, out);
  }
  void timer() {
    out.clear();
    ledger.timer(now, rtt, out);
  }
};

std::vector<uint64_t> numbers(const std::vector<reliability::SentPacket>& packets) {
  std::vector<uint64_t> list;
  for (const auto& packet : packets) list.push_back(packet.number);
  return list;
}

}  // namespace

TEST_CASE("send_ledger__acked_in_order__each_ends_once_with_what_it_carried_and_a_sample") {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.send();
  REQUIRE(rig.ledger.in_flight_bytes() == 3000);
  rig.now += 20ms;
  REQUIRE(rig.ack({{0, 1}}));
  REQUIRE(numbers(rig.out.acked) == std::vector<uint64_t>{0, 1});
  REQUIRE(rig.out.acked[1].carried.size() == 1);
  REQUIRE(rig.out.acked[1].carried[0].b == 1);
  REQUIRE(rig.out.lost.empty());
  REQUIRE(rig.rtt.smoothed() == 20ms);
  REQUIRE(rig.ledger.in_flight_bytes() == 1000);
  REQUIRE(rig.ack({{0, 1}}));  // again: nothing happens
  REQUIRE(rig.out.acked.empty());
}

// The window of a long fast path is thousands of packets, and every second packet brings an acknowledgement.
TEST_CASE("send_ledger__a_large_window__acknowledging_looks_at_what_is_told_and_not_at_all_that_is_in_flight") {
  Rig rig;
  constexpr uint64_t window = 5900;
  for (uint64_t i = 0; i < window; ++i) rig.send();
  uint64_t acked = 0;
  const bool with_gaps = GENERATE(false, true);
  const uint64_t before = rig.ledger.steps();
  for (uint64_t i = 0; i < 1000; ++i, acked += 2) {
    rig.now += 1us;
    if (with_gaps) {  // two ranges, the newer one first
      REQUIRE(rig.ack({{acked + 2, acked + 2}, {acked, acked}}));
      REQUIRE(rig.out.acked.size() == (i == 0 ? 2 : 1));
    } else {
      REQUIRE(rig.ack({{0, acked + 1}}));
      REQUIRE(rig.out.acked.size() == 2);
    }
    rig.send();
    rig.send();
  }
  CHECK((rig.ledger.steps() - before) / 1000 < 40);  // two searches at most, and what is told
}

TEST_CASE("send_ledger__ack_of_what_was_never_sent__refused_and_nothing_changes") {
  Rig rig;
  REQUIRE_FALSE(rig.ack({{0, 0}}));
  rig.send();
  rig.send();
  REQUIRE_FALSE(rig.ack({{0, 2}}));
  REQUIRE(rig.out.acked.empty());
  REQUIRE(rig.ledger.in_flight_bytes() == 2000);
  REQUIRE(rig.ack({{0, 1}}));
}

TEST_CASE("send_ledger__three_newer_were_acked__lost_at_once_and_a_late_ack_is_of_no_consequence") {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.send();
  rig.now += 1ms;
  REQUIRE(rig.ack({{2, 2}}));
  REQUIRE(rig.out.lost.empty());
  REQUIRE(rig.ack({{2, 3}}));
  REQUIRE(numbers(rig.out.lost) == std::vector<uint64_t>{0});
  REQUIRE(rig.ack({{2, 4}}));
  REQUIRE(numbers(rig.out.lost) == std::vector<uint64_t>{1});
  REQUIRE(rig.ledger.packets() == 0);
  REQUIRE(rig.ledger.in_flight_bytes() == 0);
  REQUIRE(rig.ack({{0, 4}}));
  REQUIRE(rig.out.acked.empty());
}

TEST_CASE("send_ledger__one_newer_was_acked__lost_after_nine_eighths_of_a_round_trip") {
  Rig rig;
  rig.send();
  rig.now += 1ms;
  rig.send();
  rig.now += 16ms;
  REQUIRE(rig.ack({{1, 1}}));
  REQUIRE(rig.out.lost.empty());
  REQUIRE(rig.ledger.deadline(rig.rtt) == start + 18ms);
  rig.now = start + 18ms - 1ns;
  rig.timer();
  REQUIRE(rig.out.lost.empty());
  rig.now = start + 18ms;
  rig.timer();
  REQUIRE(numbers(rig.out.lost) == std::vector<uint64_t>{0});
  REQUIRE_FALSE(rig.out.probe);
  REQUIRE(rig.ledger.deadline(rig.rtt) == never);
}

TEST_CASE("send_ledger__silence__probes_with_a_doubling_pause_then_all_is_lost") {
  Rig rig;
  rig.send();
  rig.send();
  std::vector<Duration> waits;
  for (uint32_t i = 0; i < reliability::probes_max; ++i) {
    const Instant at = rig.ledger.deadline(rig.rtt);
    waits.push_back(at - rig.now);
    rig.now = at;
    rig.timer();
    REQUIRE(rig.out.probe);
    REQUIRE(rig.out.timed_out == (i + 1 == reliability::probes_max));
  }
  REQUIRE(waits == std::vector<Duration>{reliability::rto_first, 2 * reliability::rto_first, 4 * reliability::rto_first});
  REQUIRE(numbers(rig.out.lost) == std::vector<uint64_t>{0, 1});
  REQUIRE(rig.ledger.in_flight_bytes() == 0);
  rig.send();
  REQUIRE(rig.ledger.deadline(rig.rtt) - rig.now == reliability::rto_max);  // 8 times the first is over the bound
  REQUIRE(rig.ack({{2, 2}}));
  rig.send();
  REQUIRE(rig.ledger.deadline(rig.rtt) - rig.now == rig.rtt.timeout());  // answered: the pause is short again
}

TEST_CASE("send_ledger__packets_that_ask_for_no_ack__take_a_number_and_nothing_else") {
  Rig rig;
  REQUIRE(rig.ledger.sent(rig.now, 100, false, false, {}) == 0);
  REQUIRE(rig.send() == 1);
  REQUIRE(rig.ledger.packets() == 1);
  REQUIRE(rig.ack({{0, 0}}));
  REQUIRE(rig.out.acked.empty());
}

TEST_CASE("rtt__samples__as_rfc_6298_says_and_within_the_bounds") {
  RttEstimator rtt;
  REQUIRE(rtt.timeout() == reliability::rto_first);
  rtt.sample(100ms);
  REQUIRE(rtt.smoothed() == 100ms);
  REQUIRE(rtt.variation() == 50ms);
  REQUIRE(rtt.timeout() == 100ms + 200ms + reliability::ack_delay_max);
  rtt.sample(180ms);
  REQUIRE(rtt.variation() == Duration(3 * 50ms + 80ms) / 4);
  REQUIRE(rtt.smoothed() == Duration(7 * 100ms + 180ms) / 8);
  for (int i = 0; i < 200; ++i) rtt.sample(100us);
  REQUIRE(rtt.timeout() == reliability::rto_min);
  for (int i = 0; i < 200; ++i) rtt.sample(100s);
  REQUIRE(rtt.timeout() == reliability::rto_max);
}

TEST_CASE("rtt__ack_delay__believed_up_to_the_bound_and_never_below_the_least_seen") {
  RttEstimator rtt;
  rtt.sample(10ms, 5s);
  REQUIRE(rtt.latest() == 10ms);  // the first is the least
  rtt.sample(12ms, 5s);
  REQUIRE(rtt.latest() == 12ms - reliability::ack_delay_max);
}

// Two ledgers and a way that loses, doubles and reorders: what each packet carried is learned as delivered or lost exactly once,
// every content arrives, and no number is used twice.
TEST_CASE("ledgers__random_loss_reordering_and_duplication__every_content_arrives") {
  uint64_t lost_total = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    sim::Random random(seed);
    const double loss = 0.3 * static_cast<double>(random.below(100)) / 100;
    SendLedger sender;
    RttEstimator rtt;
    reliability::ReceiveLedger receiver;
    SendLedger::Outcome out;
    struct Flying {
      bool forward = true;
      uint64_t number = 0;
      uint64_t content = 0;
      Ack ack;
    };
    std::multimap<Instant, Flying> flying;
    std::set<uint64_t> arrived, ended;
    std::deque<uint64_t> to_send;
    constexpr uint64_t contents = 200;
    for (uint64_t i = 0; i < contents; ++i) to_send.push_back(i);
    std::set<uint64_t> done;
    Instant now = start;
    const auto fly = [&](const Flying& what) {
      if (random.chance(loss)) return;
      const int copies = random.chance(0.1) ? 2 : 1;
      for (int i = 0; i < copies; ++i) flying.emplace(now + random.between(1ms, random.chance(0.2) ? 9ms : 2ms), what);
    };
    const auto learn = [&] {
      for (const auto& packet : out.acked) {
        REQUIRE(ended.insert(packet.number).second);
        REQUIRE(arrived.contains(packet.carried[0].b));
        done.insert(packet.carried[0].b);
      }
      for (const auto& packet : out.lost) {
        ++lost_total;
        REQUIRE(ended.insert(packet.number).second);
        if (!done.contains(packet.carried[0].b)) to_send.push_back(packet.carried[0].b);
      }
      if (out.probe && !out.timed_out) to_send.push_front(sender.oldest()->carried[0].b);
      out.clear();
    };
    uint64_t steps = 0;
    while (done.size() < contents) {
      REQUIRE(++steps < 100'000);
      while (!to_send.empty() && sender.in_flight_bytes() < 20'000) {
        const uint64_t content = to_send.front();
        to_send.pop_front();
        if (done.contains(content)) continue;
        const uint64_t number = sender.sent(now, 1000, true, true, {{0, 0, content, 0}});
        fly({true, number, content, {}});
      }
      Instant next = std::min(sender.deadline(rtt), receiver.ack_deadline());
      if (!flying.empty()) next = std::min(next, flying.begin()->first);
      REQUIRE(next != never);
      now = std::max(now, next);
      while (!flying.empty() && flying.begin()->first <= now) {
        const Flying what = flying.begin()->second;
        flying.erase(flying.begin());
        if (!what.forward) {
          REQUIRE(sender.acknowledge(what.ack, now, rtt, out));
          learn();
        } else if (receiver.look(what.number) == reliability::ReceiveLedger::Verdict::fresh) {
          receiver.received(what.number, true, now);
          arrived.insert(what.content);
        }
      }
      if (receiver.ack_deadline() <= now) fly({false, 0, 0, receiver.take_ack(now)});
      if (sender.deadline(rtt) <= now) {
        sender.timer(now, rtt, out);
        learn();
      }
    }
    REQUIRE(arrived.size() == contents);
  }
  REQUIRE(lost_total > 1000);  // else it tested nothing
}

TEST_CASE("send_ledger__an_outcome_that_is_cleared__tells_nothing_of_before") {
  Rig rig;
  rig.send();
  while (!rig.out.timed_out) {
    rig.now = rig.ledger.deadline(rig.rtt);
    rig.timer();
  }
  REQUIRE(rig.out.probe);
  REQUIRE(rig.out.lost.size() == 1);
  rig.out.acked.resize(1);
  rig.out.clear();
  REQUIRE_FALSE(rig.out.timed_out);
  REQUIRE_FALSE(rig.out.probe);
  REQUIRE(rig.out.lost.empty());
  REQUIRE(rig.out.acked.empty());
}
