// Samples of the rate at which a network delivers.
#include "core/reliability/delivery_rate.h"

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "core/reliability/send_ledger.h"
#include "transports/sim/random.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::Ack;
using reliability::RateSample;
using reliability::RttEstimator;
using reliability::SendLedger;

namespace {

const Instant start{std::chrono::seconds(100)};

struct Rig {
  SendLedger ledger;
  RttEstimator rtt;
  SendLedger::Outcome out;

  void send(Instant now, uint32_t bytes = 1000) { static_cast<void>(ledger.sent(now, bytes, true, false, {})); }
  RateSample ack(uint64_t first, uint64_t last, Instant now) {
    Ack ack;
    ack.count = 1;
    ack.list[0] = {first, last};
    out.clear();
    REQUIRE(ledger.acknowledge(ack, now, rtt, out));
    return out.rate;
  }
};

}  // namespace

TEST_CASE("delivery_rate__one_flight__its_bytes_in_a_round_trip") {
  Rig rig;
  for (int i = 0; i < 10; ++i) rig.send(start);
  const RateSample sample = rig.ack(0, 9, start + 100ms);
  CHECK(sample.delivered_bytes == 10'000);
  CHECK(sample.interval == 100ms);
  CHECK(sample.bytes_per_s() == 100'000);
  CHECK(sample.delivered_before == 0);
  CHECK_FALSE(sample.app_limited);
  CHECK(rig.ledger.delivered_bytes() == 10'000);
}

// Ten packets in 11 ms, by their acknowledgements. But they took 20 ms to be sent, and cannot have
// left the network faster than they entered it.
TEST_CASE("delivery_rate__acks_in_a_bunch__the_time_of_sending_counts") {
  Rig rig;
  for (int i = 0; i < 10; ++i) rig.send(start + i * 1ms);
  static_cast<void>(rig.ack(0, 0, start + 20ms));
  rig.send(start + 20ms);
  const RateSample sample = rig.ack(0, 10, start + 31ms);
  CHECK(sample.delivered_bytes == 10'000);
  CHECK(sample.interval == 20ms);
  CHECK(sample.bytes_per_s() == 500'000);
}

// Twenty packets at once, delivered one each millisecond, and each acknowledgement lets one go.
TEST_CASE("delivery_rate__sent_in_a_burst__the_time_of_acknowledging_counts") {
  Rig rig;
  for (int i = 0; i < 20; ++i) rig.send(start);
  RateSample sample;
  for (uint64_t i = 0; i < 60; ++i) {
    const Instant now = start + 10ms + static_cast<int>(i) * 1ms;
    sample = rig.ack(0, i, now);
    CHECK(sample.bytes_per_s() <= 1'000'000);
    rig.send(now);
  }
  CHECK(sample.interval == 20ms);
  CHECK(sample.bytes_per_s() == 1'000'000);
}

TEST_CASE("delivery_rate__an_interval_below_the_least_round_trip__no_sample") {
  Rig rig;
  rig.send(start);
  CHECK(rig.ack(0, 0, start + 50ms).exists());
  for (int i = 0; i < 4; ++i) rig.send(start + 50ms);
  const RateSample sample = rig.ack(0, 4, start + 51ms);
  CHECK(sample.exists());  // that is the least one now
  rig.rtt = {};
  rig.rtt.sample(20ms);
  rig.send(start + 60ms);
  reliability::DeliveryRate rate;
  reliability::SentPacket packet;
  packet.bytes = 1000;
  packet.mark = rate.sent(start, 0);
  packet.sent_at = start;
  CHECK_FALSE(rate.acked({&packet, 1}, start + 19ms, 20ms).exists());
  packet.mark = rate.sent(start + 30ms, 0);
  packet.sent_at = start + 30ms;
  CHECK(rate.acked({&packet, 1}, start + 50ms, 20ms).exists());
  CHECK(rate.acked({}, start + 99ms, 1ms).bytes_per_s() == 0);
}

TEST_CASE("delivery_rate__the_application_has_nothing_more__samples_say_so_for_a_while") {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.send(start);
  rig.ledger.app_limited();
  rig.send(start + 1ms);                                 // a little more, after the pause: 5
  rig.send(start + 1ms);                                 // 6
  CHECK_FALSE(rig.ack(0, 4, start + 10ms).app_limited);  // they left before
  CHECK(rig.ack(0, 5, start + 11ms).app_limited);
  rig.send(start + 11ms);  // 7: the pause is delivered
  CHECK(rig.ack(0, 6, start + 11ms).app_limited);
  CHECK_FALSE(rig.ack(0, 7, start + 21ms).app_limited);
}

TEST_CASE("delivery_rate__a_pause_with_nothing_in_flight__does_not_count_as_slow") {
  Rig rig;
  for (int i = 0; i < 10; ++i) rig.send(start);
  static_cast<void>(rig.ack(0, 9, start + 10ms));
  for (int i = 0; i < 10; ++i) rig.send(start + 10s);
  CHECK(rig.ack(10, 19, start + 10s + 10ms).bytes_per_s() == 1'000'000);
}

TEST_CASE("delivery_rate__huge_and_tiny__no_overflow") {
  CHECK(reliability::bytes_per_s(UINT64_MAX, 1s) <= UINT64_MAX);
  CHECK(reliability::bytes_per_s(100'000'000'000, 10s) == 10'000'000'000);
  CHECK(reliability::bytes_per_s(5, 0s) == 5'000'000'000);
}

// A link of a known rate, packets sent as one likes, some lost, and acknowledgements that come late
// and together: no sample exceeds the rate of the link.
TEST_CASE("delivery_rate__any_sending_over_a_link_with_a_rate__no_sample_is_faster") {
  constexpr uint64_t rate = 10'000'000;
  uint64_t close = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    sim::Random random(seed);
    Rig rig;
    Instant now = start, link_free = start;
    std::multimap<Instant, uint64_t> coming;  // acknowledgements of single packets
    std::vector<uint64_t> held;
    for (int step = 0; step < 1000; ++step) {
      now += random.between(Duration(1us), Duration(random.chance(0.05) ? 20ms : 300us));
      for (uint64_t burst = random.below(random.chance(0.1) ? 30 : 4); burst > 0; --burst) {
        const uint64_t number = rig.ledger.next_number();
        const auto bytes = static_cast<uint32_t>(random.between(100, 1500));
        rig.send(now, bytes);
        link_free = std::max(link_free, now) + Duration(static_cast<int64_t>(bytes * 1'000'000'000ull / rate));
        if (!random.chance(0.05)) coming.emplace(link_free + 5ms, number);
      }
      for (; !coming.empty() && coming.begin()->first <= now; coming.erase(coming.begin())) held.push_back(coming.begin()->second);
      if (held.empty() || random.chance(0.5)) continue;
      Ack ack;
      for (; !held.empty() && ack.count < reliability::ack_ranges_max; held.pop_back()) {
        if (ack.count > 0 && ack.list[ack.count - 1u].first == held.back() + 1) {
          ack.list[ack.count - 1u].first = held.back();
        } else {
          ack.list[ack.count++] = {held.back(), held.back()};
        }
      }
      held.clear();
      rig.out.clear();
      REQUIRE(rig.ledger.acknowledge(ack, now, rig.rtt, rig.out));
      REQUIRE(rig.out.rate.bytes_per_s() <= rate + rate / 20);
      close += rig.out.rate.bytes_per_s() > rate * 9 / 10 ? 1u : 0u;
    }
  }
  CHECK(close > 1000);  // else it says nothing
}
