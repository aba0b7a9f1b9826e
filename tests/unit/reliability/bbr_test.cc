// Congestion control by a model of the path, on paths that the test simulates.
#include "core/reliability/bbr.h"

#include <catch2/catch.hpp>
#include <deque>
#include <set>
#include <vector>

#include "core/reliability/pacer.h"
#include "core/reliability/send_ledger.h"
#include "transports/sim/random.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::Bbr;
using Phase = reliability::Bbr::Phase;

namespace {

const Instant start{std::chrono::seconds(100)};
constexpr uint32_t datagram = 1000;

// A sender with always something to send, and a link with a rate, a delay and a queue: time passes
// from one event to the next.
struct Path {
  uint64_t rate = 1'000'000;  // a datagram each millisecond
  Duration round_trip = 20ms;
  uint64_t queue_bytes = 1'000'000;
  double loss = 0;
  Duration acks_every{0};  // the peer answers in batches, at these instants
  Duration jitter{0};      // at most so much longer, each packet by itself

  void run(Duration time, bool busy = true) {
    const Instant end = now + time;
    while (now < end) {
      while (busy && ledger.in_flight_bytes() + datagram <= control.window_bytes() && pacer.ready_at(now) <= now) send();
      if (!busy) ledger.app_limited();
      Instant next = end;
      if (!coming.empty()) next = std::min(next, coming.front().at);
      if (busy && ledger.in_flight_bytes() + datagram <= control.window_bytes()) next = std::min(next, pacer.ready_at(now));
      next = std::min(next, ledger.deadline(rtt));
      now = std::max(now + 1ns, next);
      while (!coming.empty() && coming.front().at <= now) {
        ack(coming.front().number);
        coming.pop_front();
      }
      if (ledger.deadline(rtt) <= now) {
        out.clear();
        ledger.timer(now, rtt, out);
        learn();
        if (out.probe) send();
      }
      most_in_flight = std::max(most_in_flight, ledger.in_flight_bytes());
      least_in_flight = std::min(least_in_flight, ledger.in_flight_bytes());
    }
  }
  void send() {
    const uint64_t number = ledger.next_number();
    const uint64_t before = ledger.in_flight_bytes();
    static_cast<void>(ledger.sent(now, datagram, true, true, {}));
    control.sent(datagram, before, now);
    pacer.sent(datagram, control.pace_bytes_per_s(), now);
    ++sent;
    link_free = std::max(link_free, now);
    const auto waiting = static_cast<uint64_t>((link_free - now).count()) * (rate / 1000) / 1'000'000;
    if (waiting + datagram > queue_bytes || random.chance(loss)) return;
    link_free += Duration(static_cast<int64_t>(datagram * 1'000'000'000ull / rate));
    Instant at = link_free + round_trip;
    if (acks_every > 0ns) at += acks_every - (at - start) % acks_every;
    if (jitter > 0ns) at += Duration(static_cast<int64_t>(random.below(static_cast<uint64_t>(jitter.count()))));
    if (!coming.empty()) at = std::max(at, coming.back().at);
    coming.push_back({at, number});
  }
  void ack(uint64_t number) {
    reliability::Ack ack;
    ack.count = 1;
    ack.list[0] = {number, number};
    out.clear();
    REQUIRE(ledger.acknowledge(ack, now, rtt, out));
    learn();
  }
  void learn() {
    if (out.round_trip) control.round_trip(rtt.latest(), rtt.smoothed(), now);
    if (!out.acked.empty()) control.acked({now, out.acked, out.rate, ledger.delivered_bytes(), ledger.in_flight_bytes()});
    lost += out.lost.size();
    if (out.timed_out) return control.timed_out();
    if (!out.lost.empty()) control.lost({now, out.lost, ledger.in_flight_bytes()});
    phases.insert(control.phase());
    if (control.phase() == Phase::probe_round_trip) window_of_probe = control.window_bytes();
  }
  [[nodiscard]] double share(Duration time) {  // of the rate, from now on
    const uint64_t before = ledger.delivered_bytes();
    run(time);
    return static_cast<double>(ledger.delivered_bytes() - before) /
           (static_cast<double>(rate) * std::chrono::duration<double>(time).count());
  }
  void forget_extremes() {
    most_in_flight = 0;
    least_in_flight = UINT64_MAX;
    phases.clear();
  }

  struct Coming {
    Instant at;
    uint64_t number;
  };
  Bbr control{datagram, 1};
  reliability::Pacer pacer{4 * datagram, 4 * datagram};
  reliability::SendLedger ledger;
  reliability::RttEstimator rtt;
  reliability::SendLedger::Outcome out;
  sim::Random random{7};
  Instant now = start, link_free = start;
  std::deque<Coming> coming;
  std::set<Phase> phases;
  uint64_t sent = 0, lost = 0, most_in_flight = 0, least_in_flight = UINT64_MAX, window_of_probe = 0;
};

// A path of 100 ms over which nothing came for a time, at the moment when a packet passes again.
Path after_outage(uint64_t rate, Duration begins, Duration lasts, double loss) {
  Path path;
  path.rate = rate;
  path.round_trip = 100ms;
  path.queue_bytes = rate / 10;
  path.pacer = reliability::Pacer{64 * datagram, 64 * datagram};
  path.loss = loss;
  path.run(begins);
  path.loss = 1;
  path.run(lasts);
  REQUIRE(path.coming.empty());
  path.loss = loss;
  while (path.coming.empty() && path.now < start + 20s) path.run(1ms);
  return path;
}

}  // namespace

TEST_CASE("bbr__a_new_connection__starts_as_several_of_tcp_do_and_raises_its_pace") {
  Bbr control(datagram, 1);
  CHECK(control.window_bytes() == 64 * datagram);
  CHECK(control.phase() == Phase::startup);
  const uint64_t assumed = control.pace_bytes_per_s();
  control.round_trip(100ms, 100ms, start);
  CHECK(control.pace_bytes_per_s() < assumed / 10);  // the window in the round trip that is known now
  CHECK(control.pace_bytes_per_s() > 100'000 * 2);   // and faster than that
}

TEST_CASE("bbr__a_new_connection__begins_with_more_on_a_longer_path") {
  const auto first_window = [](Duration round_trip) {
    Bbr control(datagram, 1);
    control.round_trip(round_trip, round_trip, start);
    const uint64_t window = control.window_bytes();
    control.round_trip(10s, 10s, start);  // the first one alone
    CHECK(control.window_bytes() == window);
    return window;
  };
  CHECK(first_window(100us) == 64 * datagram);
  CHECK(first_window(20ms) == 64 * datagram);
  CHECK(first_window(40ms) == 3'125'000 / 25);
  CHECK(first_window(80ms) == 3'125'000 * 2 / 25);
  CHECK(first_window(10s) == 256 * datagram);
}

TEST_CASE("bbr__a_long_path__what_is_sent_doubles_from_the_first_round_trip_on") {
  Path path;
  path.rate = 1'000'000'000;
  path.round_trip = 100ms;
  path.control.round_trip(100ms, 100ms, start);
  uint64_t least = 250'000;
  for (int round = 0; round < 6; ++round) {
    path.sent = 0;
    path.run(100ms);
    CAPTURE(round, path.sent, least / datagram);
    CHECK(path.sent * datagram >= least);
    least = least * 19 / 10;
  }
  CHECK(path.control.phase() == Phase::startup);
}

// Where the first windows fill a queue, they grow as the rate that is measured.
TEST_CASE("bbr__a_slow_long_path__the_window_doubles_no_more_when_a_queue_stands") {
  Path path;
  path.rate = 500'000;
  path.round_trip = 100ms;
  path.queue_bytes = 1'000'000'000;
  path.control.round_trip(100ms, 100ms, start);
  path.run(1s);
  CHECK(path.most_in_flight < 600'000);
}

TEST_CASE("bbr__a_path__startup_finds_its_rate_in_some_rounds_then_the_queue_is_drained") {
  Path path;
  path.rate = 10'000'000;
  path.run(100ms);
  CHECK(path.phases.contains(Phase::startup));
  path.run(400ms);
  CHECK(path.phases.contains(Phase::drain));
  CHECK(path.control.bandwidth_bytes_per_s() > 9'500'000);
  CHECK(path.control.bandwidth_bytes_per_s() < 10'500'000);
  CHECK(path.control.round_trip_least() < 21ms);
}

TEST_CASE("bbr__startup__ends_when_twice_as_much_in_flight_brings_no_more") {
  Path path;
  path.rate = 100'000'000;
  path.round_trip = 100ms;
  path.queue_bytes = 10'000'000;  // one product
  path.pacer = reliability::Pacer{64 * datagram, 64 * datagram};
  while (path.control.phase() == Phase::startup && path.now < start + 5s) path.run(10ms);
  CHECK(path.now < start + 1200ms);
  path.run(start + 2s - path.now);
  CHECK(path.lost == 0);
  CHECK(path.ledger.delivered_bytes() > 118'000'000);
  CHECK(path.control.bandwidth_bytes_per_s() > 95'000'000);
}

// Its queue is too short to be seen in round trips.
TEST_CASE("bbr__startup__loses_little_on_a_short_path") {
  Path path;
  path.rate = 100'000'000;
  path.round_trip = 4ms;
  path.queue_bytes = 400'000;  // one product
  path.run(200ms);
  CHECK(path.control.phase() != Phase::startup);
  CHECK(path.lost < 450);  // a round trip has 400
}

// Round trips that differ by themselves look as if a queue stood: startup is slower then, but goes on until the rate is found.
TEST_CASE("bbr__startup__does_not_end_on_a_path_whose_round_trips_differ") {
  for (const Duration every : {5ms, 10ms}) {
    for (const Duration jitter : {0ms, 10ms}) {
      Path path;
      path.rate = 100'000'000;
      path.round_trip = 50ms;
      path.acks_every = every;
      path.jitter = jitter;
      path.queue_bytes = 10'000'000;
      path.pacer = reliability::Pacer{64 * datagram, 64 * datagram};
      while (path.control.phase() == Phase::startup && path.now < start + 20s) path.run(10ms);
      INFO(every.count() << " " << jitter.count() << " " << (path.now - start).count());
      CHECK(path.now < start + 2s);
      CHECK(path.control.bandwidth_bytes_per_s() > 90'000'000);
    }
  }
}

// After the pause all that startup allows leaves at once, and as much again as was ever seen to be delivered is in flight.
TEST_CASE("bbr__startup__does_not_end_by_a_pause_of_the_application") {
  for (const uint64_t rate : {12'500'000u, 37'500'000u, 125'000'000u}) {
    for (const uint64_t first : {400u, 1000u}) {
      CAPTURE(rate, first);
      Path path;
      path.rate = rate;
      path.round_trip = 100ms;
      path.queue_bytes = rate / 10;
      path.pacer = reliability::Pacer{64 * datagram, 64 * datagram};
      path.control.round_trip(100ms, 100ms, start);
      while (path.sent < first) path.run(1ms);
      path.run(300ms, false);
      CHECK(path.control.phase() == Phase::startup);
      path.run(500ms);
      CHECK(path.share(500ms) > 0.88);
    }
  }
}

TEST_CASE("bbr__a_deep_queue__the_rate_is_used_and_the_queue_stays_short") {
  Path path;
  path.run(2s);
  path.forget_extremes();
  CHECK(path.share(5s) > 0.95);
  CHECK(path.most_in_flight < 3 * 20 * datagram);  // the product is 20 datagrams and the queue would hold 1,000
  CHECK(path.lost == 0);
  CHECK(path.phases.contains(Phase::probe_up));
  CHECK(path.phases.contains(Phase::probe_down));
  CHECK(path.phases.contains(Phase::cruise));
}

TEST_CASE("bbr__loss_that_is_no_congestion__the_rate_is_used") {
  Path path;
  path.loss = 0.01;
  path.rate = 10'000'000;
  path.run(3s);
  CHECK(path.share(10s) > 0.9);
  CHECK(path.lost > 100);
}

// As of hosts that take and answer many packets at once: a window of twice the product is used up long before the next batch.
TEST_CASE("bbr__a_short_path_with_answers_in_batches__the_rate_is_used") {
  Path path;
  path.rate = 100'000'000;
  path.round_trip = 50us;
  path.acks_every = 400us;
  path.run(1s);
  CHECK(path.share(2s) > 0.8);
  CHECK(path.most_in_flight < 5 * path.rate / 1000);  // five milliseconds of the path
}

TEST_CASE("bbr__a_shallow_queue__few_datagrams_are_lost") {
  Path path;
  path.rate = 10'000'000;
  path.queue_bytes = 20'000;  // a tenth of the product
  path.run(3s);
  path.sent = path.lost = 0;
  CHECK(path.share(10s) > 0.85);
  CHECK(path.lost * 50 < path.sent);
}

TEST_CASE("bbr__the_path_gets_faster_and_slower__the_pace_follows") {
  Path path;
  path.rate = 5'000'000;
  path.run(2s);
  path.rate = 10'000'000;
  path.run(4s);
  CHECK(path.share(2s) > 0.9);
  path.rate = 2'000'000;
  path.queue_bytes = 100'000;
  path.run(6s);
  CHECK(path.control.bandwidth_bytes_per_s() < 2'500'000);
  path.sent = path.lost = 0;
  CHECK(path.share(5s) > 0.85);
  CHECK(path.lost * 20 < path.sent);
}

TEST_CASE("bbr__ten_seconds_without_a_short_round_trip__little_in_flight_for_a_moment") {
  Path path;
  path.run(2s);
  path.round_trip = 40ms;  // another way: the old round trip is never seen again
  path.run(7s);
  CHECK(path.control.round_trip_least() < 22ms);
  path.forget_extremes();
  path.run(6s);
  CHECK(path.phases.contains(Phase::probe_round_trip));
  CHECK(path.window_of_probe <= 40 * datagram / 2 + datagram);
  CHECK(path.least_in_flight <= 20 * datagram);
  CHECK(path.control.round_trip_least() > 39ms);
  CHECK(path.control.phase() != Phase::probe_round_trip);  // it is over by now
  CHECK(path.share(5s) > 0.9);
}

TEST_CASE("bbr__the_application_sends_little__the_rate_that_is_known_stays") {
  Path path;
  path.rate = 10'000'000;
  path.run(2s);
  const uint64_t known = path.control.bandwidth_bytes_per_s();
  for (int i = 0; i < 300; ++i) {
    path.send();
    path.run(30ms, false);
  }
  CHECK(path.control.bandwidth_bytes_per_s() >= known * 9 / 10);
  CHECK(path.share(1s) > 0.9);
}

TEST_CASE("bbr__a_timeout__the_window_begins_small_and_the_rate_is_back_soon") {
  Path path;
  path.rate = 10'000'000;
  path.run(2s);
  path.control.timed_out();
  CHECK(path.control.window_bytes() == 4 * datagram);
  path.run(500ms);
  CHECK(path.share(2s) > 0.9);
}

TEST_CASE("bbr__after_an_outage__no_probe_begins_before_the_window_is_back") {
  Path path = after_outage(25'000'000, 3s, 2s, 0);
  path.forget_extremes();
  while (!path.phases.contains(Phase::probe_up) && path.now < start + 20s) path.run(1ms);
  CHECK(path.now < start + 20s);
  CHECK(path.most_in_flight > 1'000'000);  // the window is the product of 2'500'000, and will be used within the next round trip
}

TEST_CASE("bbr__losses_of_an_outage_that_are_noticed_late__say_nothing_of_the_rate") {
  Path path = after_outage(25'000'000, 3s, 2s, 0);
  const uint64_t known = path.control.bandwidth_bytes_per_s();
  reliability::SentPacket lost;
  lost.sent_at = path.now - 1ms;
  lost.bytes = 500 * datagram;
  for (int round = 0; round < 5; ++round) {
    path.control.lost({path.now, std::span(&lost, 1), path.ledger.in_flight_bytes()});
    path.run(100ms);
  }
  CHECK(path.control.bandwidth_bytes_per_s() > known * 9 / 10);
}

// What was sent into the outage is lost, and so are the first packets after the timeouts: all that says nothing of the rate.
TEST_CASE("bbr__an_outage__the_rate_is_back_within_some_round_trips") {
  struct Row {
    uint64_t rate;
    Duration begins, lasts;
    double loss;
  };
  const std::vector<Row> rows = {{6'250'000, 3s, 2s, 0},     {6'250'000, 3300ms, 1s, 0}, {6'250'000, 3300ms, 2s, 0},
                                 {6'250'000, 3s, 2s, 0.02},  {25'000'000, 500ms, 1s, 0}, {25'000'000, 3s, 1s, 0},
                                 {25'000'000, 400ms, 2s, 0}, {25'000'000, 3s, 2s, 0.02}, {125'000'000, 500ms, 1s, 0}};
  for (const Row& row : rows) {
    CAPTURE(row.rate, row.begins.count(), row.lasts.count(), row.loss);
    Path path = after_outage(row.rate, row.begins, row.lasts, row.loss);
    path.run(1500ms);
    CHECK(path.share(1s) > 0.9);
  }
}

// It is another path after the outage: what was known of it must not last.
TEST_CASE("bbr__an_outage_after_which_the_path_is_slower__the_pace_follows_within_some_round_trips") {
  for (const uint64_t slower : {2u, 5u, 20u}) {
    for (const uint64_t products : {1u, 5u}) {
      CAPTURE(slower, products);
      Path path = after_outage(6'250'000, 3s, 2s, 0);
      path.rate /= slower;
      path.queue_bytes = path.rate / 10 * products;
      path.run(5s);
      path.sent = path.lost = 0;
      CHECK(path.share(3s) > 0.9);
      CHECK(path.lost * 20 < path.sent);
      path.run(4s);
      CHECK(path.control.bandwidth_bytes_per_s() < path.rate * 11 / 10);
    }
  }
}

TEST_CASE("bbr__any_path__the_window_and_the_pace_stay_within_their_bounds") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    sim::Random random(seed);
    Path path;
    path.random = sim::Random(seed + 1000);
    for (int change = 0; change < 8; ++change) {
      path.rate = random.between(50'000, 20'000'000);
      path.round_trip = random.between(Duration(100us), Duration(random.chance(0.2) ? 300ms : 20ms));
      path.queue_bytes = random.between(3'000, 200'000);
      path.loss = random.chance(0.5) ? 0 : static_cast<double>(random.below(30)) / 100;
      path.run(random.between(Duration(1ms), Duration(1s)), random.chance(0.8));
      REQUIRE(path.control.window_bytes() >= 2 * datagram);
      REQUIRE(path.control.window_bytes() <= reliability::in_flight_bytes_max);
      REQUIRE(path.control.pace_bytes_per_s() >= reliability::pace_min_bytes_per_s);
    }
    path.loss = 0;
    path.rate = 2'000'000;
    path.round_trip = 5ms;
    path.queue_bytes = 100'000;
    path.run(12s);                // as long as an old round trip is believed, and a little
    CHECK(path.share(2s) > 0.8);  // whatever was before
  }
}
