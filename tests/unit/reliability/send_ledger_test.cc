// Each packet ends once, as acknowledged or lost; the round trip; both ledgers against one another.
#include "core/reliability/send_ledger.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
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

// The window of a long fast path is thousands of packets, and every second packet brings an
// acknowledgement. Each of these patterns acknowledges four packets a time, or all but the lost.
TEST_CASE("send_ledger__acknowledging__costs_the_same_at_64_and_at_6000_in_flight") {
  using Pattern = std::function<void(Rig&, uint64_t)>;  // of the four packets from a number on
  const std::vector<std::pair<const char*, Pattern>> patterns = {
      {"in order",
       [](Rig& rig, uint64_t at) {
         REQUIRE(rig.ack({{0, at + 3}}));
       }},
      {"two acks",
       [](Rig& rig, uint64_t at) {
         REQUIRE((rig.ack({{0, at + 1}}) && rig.ack({{0, at + 3}})));
       }},
      {"one lost",
       [](Rig& rig, uint64_t at) {
         REQUIRE(rig.ack({{at + 2, at + 3}, {at, at}}));
       }},
      {"overtaken",
       [](Rig& rig, uint64_t at) {
         REQUIRE((rig.ack({{at + 2, at + 3}}) && rig.ack({{at, at + 3}})));
       }},
      {"32 ranges",
       [](Rig& rig, uint64_t at) {
         std::vector<Range> ranges{{at + 2, at + 3}};
         for (uint64_t i = 1; i < reliability::ack_ranges_max && ranges.back().first >= 2; ++i) {
           ranges.push_back({ranges.back().first - 2, ranges.back().first - 2});
         }
         REQUIRE(rig.ack(ranges));
       }},
  };
  constexpr uint64_t rounds = 500;
  for (const auto& [name, pattern] : patterns) {
    CAPTURE(name);
    std::vector<uint64_t> steps;
    for (const uint64_t window : {64u, 6000u}) {
      Rig rig;
      for (uint64_t i = 0; i < window; ++i) rig.send();
      uint64_t before = 0;
      uint64_t at = 0;
      auto began = std::chrono::steady_clock::now();
      for (uint64_t i = 0; i < 2 * rounds; ++i, at += 4) {
        if (i == rounds) {
          before = rig.ledger.steps();
          began = std::chrono::steady_clock::now();
        }
        rig.now += 1us;
        pattern(rig, at);
        for (int sent = 0; sent < 4; ++sent) rig.send();
        REQUIRE(rig.ledger.packets() >= window);
      }
      const Duration took = std::chrono::steady_clock::now() - began;
      steps.push_back(rig.ledger.steps() - before);
      std::printf("%-10s %4d in flight: %.2f steps and %lld ns for four packets sent and acknowledged\n", name,
                  static_cast<int>(window), static_cast<double>(steps.back()) / rounds,
                  static_cast<long long>(took.count() / static_cast<int64_t>(rounds)));
    }
    CHECK(steps[0] == steps[1]);
    CHECK(steps[0] < rounds * (4 + 2 * reliability::packet_threshold + reliability::ack_ranges_max));
  }
}

// Beside a ledger that looks at every packet and follows the rules as they are written.
TEST_CASE("send_ledger__any_acks_in_any_order__the_same_ends_as_by_looking_at_all") {
  uint64_t acked_total = 0, lost_total = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    sim::Random random(seed);
    Rig rig;
    std::map<uint64_t, Instant> in_flight;
    uint64_t largest = 0;
    for (int step = 0; step < 200; ++step) {
      rig.now += random.between(0ns, Duration(random.chance(0.1) ? 5ms : 50us));
      for (uint64_t count = random.below(8); count > 0; --count) {
        if (random.chance(0.8)) {
          const uint64_t number = rig.send();
          in_flight[number] = rig.now;
        } else {
          static_cast<void>(rig.ledger.sent(rig.now, 10, false, false, {}));
        }
      }
      const uint64_t next = rig.ledger.next_number();
      if (next == 0) continue;
      uint64_t top = next - 1 - random.below(std::min<uint64_t>(next, random.chance(0.2) ? 60 : 6));
      std::vector<Range> ranges;
      while (ranges.size() < reliability::ack_ranges_max) {
        const uint64_t bottom = top - random.below(std::min<uint64_t>(top + 1, 5));
        ranges.push_back({bottom, top});
        const uint64_t gap = 1 + random.below(3);
        if (bottom < gap + 1 || random.chance(0.1)) break;
        top = bottom - gap - 1;
      }
      REQUIRE(rig.ack(ranges));
      largest = std::max(largest, ranges[0].last);
      std::vector<uint64_t> acked, lost;
      for (auto it = ranges.rbegin(); it != ranges.rend(); ++it) {
        for (uint64_t number = it->first; number <= it->last; ++number) {
          if (in_flight.erase(number) > 0) acked.push_back(number);
        }
      }
      const Duration delay = std::max(std::max(rig.rtt.smoothed(), rig.rtt.latest()) * 9 / 8, reliability::clock_granularity);
      while (!in_flight.empty() && in_flight.begin()->first < largest) {
        const auto [number, sent_at] = *in_flight.begin();
        if (number + reliability::packet_threshold > largest && sent_at + delay > rig.now) break;
        lost.push_back(number);
        in_flight.erase(number);
      }
      REQUIRE(numbers(rig.out.acked) == acked);
      REQUIRE(numbers(rig.out.lost) == lost);
      REQUIRE(rig.ledger.packets() == in_flight.size());
      REQUIRE(rig.ledger.in_flight_bytes() == 1000 * in_flight.size());
      acked_total += acked.size();
      lost_total += lost.size();
    }
  }
  CHECK(acked_total > 10'000);
  CHECK(lost_total > 1'000);
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

TEST_CASE("send_ledger__three_newer_were_acked__lost_at_once_and_a_late_ack_changes_nothing") {
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

TEST_CASE("send_ledger__numbers_that_are_left_out__are_no_loss_and_whoever_acknowledges_one_is_found") {
  Rig rig;
  rig.ledger.leave_out_numbers(4711);
  std::vector<uint64_t> left_out;
  uint64_t expected = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t number = rig.send();
    for (; expected < number; ++expected) left_out.push_back(expected);
    ++expected;
    // An honest receiver: two ranges from the first number left out on.
    rig.now += 1ms;
    const uint64_t first = left_out.empty() ? 0 : left_out.back() + 1;
    if (first == 0) {
      REQUIRE(rig.ack({{0, number}}));
    } else {
      REQUIRE(rig.ack({{first, number}, {first - 2, first - 2}}));
    }
    REQUIRE(numbers(rig.out.acked) == std::vector<uint64_t>{number});
    REQUIRE(rig.out.lost.empty());
  }
  CHECK(left_out.size() > 3);
  CHECK(left_out.size() < 30);
  const uint64_t newest = rig.ledger.next_number() - 1;
  CHECK_FALSE(rig.ack({{0, newest}}));
  CHECK(rig.out.acked.empty());
  CHECK_FALSE(rig.ack({{newest, newest}, {left_out.back(), left_out.back()}}));
  CHECK(rig.ack({{left_out.back() + 1, newest}}));
}

TEST_CASE("send_ledger__a_number_left_out__does_not_count_among_those_that_overtake") {
  Rig rig;
  rig.ledger.leave_out_numbers(4711);
  uint64_t before = rig.send();
  uint64_t next = rig.send();
  while (next == before + 1) {
    REQUIRE(rig.ack({{before, before}}));
    before = next;
    next = rig.send();
  }
  REQUIRE(next == before + 2);
  REQUIRE(rig.send() == next + 1);
  REQUIRE(rig.ack({{next, next + 1}}));  // two have overtaken it
  CHECK(rig.out.lost.empty());
  REQUIRE(rig.send() == next + 2);
  REQUIRE(rig.ack({{next, next + 2}}));
  CHECK(numbers(rig.out.lost) == std::vector<uint64_t>{before});
}
