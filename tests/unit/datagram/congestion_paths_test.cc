// Both congestion controls over simulated paths: loss, shallow and deep queues, a long round trip,
// a rate that changes, and two connections that share one way out.
#include <fmt/format.h>

#include <cstdio>

#include "tests/unit/datagram/flow.h"

namespace ccixfer::datagram::testing {
namespace {

using reliability::Congestion;

struct Path {
  const char* name = "";
  uint64_t rate = 10'000'000;
  Duration one_way = 5ms;
  uint32_t queue = 100'000;
  double loss = 0;
};

sim::DatagramLinkOptions link_of(const Path& path) {
  sim::DatagramLinkOptions link;
  link.rate_bytes_per_s = path.rate;
  link.queue_bytes = path.queue;
  link.receive_bytes = 8u << 20;
  link.delay_min = link.delay_max = path.one_way;
  link.loss_chance = path.loss;
  link.datagram_bytes = 1472;
  return link;
}

// A second transport at the address of end `a`, so that both share its way out.
struct Rival final : sim::Actor {
  Rival(Rig& rig, Congestion congestion) : world(rig.world), node(rig.a.node) {
    auto net = std::make_unique<sim::SimDatagramNet>(rig.fabric, node, "a", uint16_t{2});
    transport = std::make_unique<DatagramTransport>(DatagramOptions{{}, congestion}, std::move(net), entropy, counters);
    transport->bind(sink, memory);
    world.add_actor(node, this);
  }
  ~Rival() override {
    world.remove_actor(node, this);
    transport.reset();
  }
  void turn(Instant now) override { transport->turn(now); }
  [[nodiscard]] Instant next_deadline() const override { return transport->next_deadline(); }
  ConnectionId connect(Rig& rig) {
    ports::DialRequest dial;
    dial.uri = "sim-datagram://b:1";
    const size_t requests = rig.b.sink.requests.size();
    const auto id = transport->dial(dial);
    REQUIRE(id);
    world.wake(node);
    REQUIRE(rig.run([&] { return rig.b.sink.requests.size() > requests; }));
    REQUIRE(rig.b.transport->accept(rig.b.sink.requests.back()) == Status::success);
    world.wake(rig.b.node);
    REQUIRE(rig.run([&] { return !sink.connected.empty(); }));
    REQUIRE(sink.connected[0].status == Status::success);
    return *id;
  }

  sim::World& world;
  sim::NodeId node;
  Counters counters;
  sim::SimEntropy entropy{99};
  cci::MemoryTable memory{entropy, counters};
  Recorder sink;
  std::unique_ptr<DatagramTransport> transport;
};

struct Measured {
  double share = 0;    // of the path's rate
  double dropped = 0;  // of the datagrams sent, by the queue
  double rival = 0;    // share of the other connection
};

// What a connection gets of a path between `warm` and the end.
Measured measure(const Path& path, Congestion congestion, Duration warm = 4s, Duration time = 8s, uint64_t seed = 1) {
  Rig rig(link_of(path), {}, seed, congestion);
  rig.connect();
  Flow flow(rig, *rig.a.transport, rig.a.sink, rig.at_a);
  run_for(rig, warm, {&flow});
  const uint64_t before = flow.done_bytes();
  const sim::DatagramTotals totals = rig.fabric.totals();
  run_for(rig, time, {&flow});
  Measured got;
  const double seconds = std::chrono::duration<double>(time).count();
  got.share = static_cast<double>(flow.done_bytes() - before) / seconds / static_cast<double>(path.rate);
  got.dropped = static_cast<double>(rig.fabric.totals().dropped - totals.dropped) /
                static_cast<double>(rig.fabric.totals().sent - totals.sent);
  return got;
}

Measured measure_two(const Path& path, Congestion first, Congestion second, Duration warm = 6s, Duration time = 20s,
                     uint64_t seed = 1) {
  Rig rig(link_of(path), {}, seed, first);
  Rival rival(rig, second);
  rig.connect();
  const ConnectionId other = rival.connect(rig);
  Flow one(rig, *rig.a.transport, rig.a.sink, rig.at_a);
  Flow two(rig, *rival.transport, rival.sink, other);
  run_for(rig, warm, {&one, &two});
  const uint64_t one_before = one.done_bytes();
  const uint64_t two_before = two.done_bytes();
  run_for(rig, time, {&one, &two});
  const double most = std::chrono::duration<double>(time).count() * static_cast<double>(path.rate);
  Measured got;
  got.share = static_cast<double>(one.done_bytes() - one_before) / most;
  got.rival = static_cast<double>(two.done_bytes() - two_before) / most;
  return got;
}

constexpr Path clean{"clean", 10'000'000, 5ms, 100'000, 0};
constexpr Path lossy{"1 % loss", 10'000'000, 5ms, 100'000, 0.01};
constexpr Path very_lossy{"5 % loss", 10'000'000, 5ms, 100'000, 0.05};
constexpr Path shallow{"shallow queue", 10'000'000, 10ms, 20'000, 0};
constexpr Path deep{"deep queue", 10'000'000, 5ms, 2'000'000, 0};
constexpr Path distant{"200 ms", 10'000'000, 100ms, 500'000, 0};
constexpr Path distant_lossy{"200 ms, 0.1 % loss", 10'000'000, 100ms, 500'000, 0.001};

}  // namespace

// What each gets of a path, with room below what it gets today: the frames need a tenth.
TEST_CASE("congestion_paths__loss_queues_and_distance__each_control_gets_its_share") {
  struct Row {
    Path path;
    double new_reno, bbr;
  };
  const std::vector<Row> rows = {
      {{"clean", 4'000'000, 5ms, 40'000, 0}, 0.8, 0.8},        {{"1 % loss", 4'000'000, 5ms, 40'000, 0.01}, 0.1, 0.7},
      {{"shallow queue", 4'000'000, 5ms, 6'000, 0}, 0.5, 0.7}, {{"deep queue", 4'000'000, 5ms, 800'000, 0}, 0.8, 0.8},
      {{"200 ms", 1'000'000, 100ms, 200'000, 0}, 0.5, 0.7},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path.name);
    const Measured new_reno = measure(row.path, Congestion::new_reno, 3s, 4s);
    const Measured bbr = measure(row.path, Congestion::bbr, 3s, 4s);
    std::printf("%-14s new_reno %.3f, of which the queue drops %.4f; bbr %.3f, %.4f\n", row.path.name, new_reno.share,
                new_reno.dropped, bbr.share, bbr.dropped);
    CHECK(new_reno.share > row.new_reno);
    CHECK(bbr.share > row.bbr);
    CHECK(new_reno.dropped < 0.02);
    CHECK(bbr.dropped < 0.02);
  }
}

TEST_CASE("congestion_paths__a_lossy_path__the_option_decides_which_control_is_used") {
  const Path path{"1 % loss", 4'000'000, 5ms, 40'000, 0.01};
  CHECK(measure(path, Congestion::bbr, 2s, 3s).share > 2 * measure(path, Congestion::new_reno, 2s, 3s).share);
}

TEST_CASE("congestion_paths__two_of_a_kind_share_a_way_out__neither_starves") {
  for (const Path& path : {Path{"clean", 4'000'000, 5ms, 40'000, 0}, Path{"shallow queue", 4'000'000, 5ms, 6'000, 0}}) {
    for (const Congestion kind : {Congestion::new_reno, Congestion::bbr}) {
      CAPTURE(path.name);
      const Measured got = measure_two(path, kind, kind, 5s, 10s);
      std::printf("%s, two %s: %.3f and %.3f\n", path.name, kind == Congestion::bbr ? "bbr" : "new_reno", got.share, got.rival);
      CHECK(got.share > 0.15);
      CHECK(got.rival > 0.15);
    }
  }
}

TEST_CASE("congestion_paths__a_product_of_12_MB__one_connection_fills_it") {
  const Measured got = measure({"1 s", 12'500'000, 500ms, 6'000'000, 0}, Congestion::bbr, 12s, 8s);
  std::printf("1 s            bbr %.3f, of which the queue drops %.4f\n", got.share, got.dropped);
  CHECK(got.share > 0.8);
}

// Of each second from the first: what a path of 1 Gb/s and 100 ms carries.
TEST_CASE("congestion_paths__a_long_fast_path__second_by_second", "[.wan]") {
  for (const double loss : {0.0, 0.001, 0.01}) {
    const Path path{"wan", 125'000'000, 50ms, 12'500'000, loss};
    Rig rig(link_of(path), {}, 1, Congestion::bbr);
    rig.connect();
    Flow flow(rig, *rig.a.transport, rig.a.sink, rig.at_a, 1u << 20);
    uint64_t done = 0, lost = 0;
    for (int second = 0; second < 20; ++second) {
      run_for(rig, 1s, {&flow});
      std::printf("loss %.3f second %d: %.3f dropped %.3f\n", loss, second, static_cast<double>(flow.done_bytes() - done) / 125e6,
                  static_cast<double>(rig.fabric.totals().dropped - lost) * 1472 / 125e6);
      std::fflush(stdout);
      done = flow.done_bytes();
      lost = rig.fabric.totals().dropped;
    }
  }
}

TEST_CASE("congestion_paths__figures_for_people", "[.figures]") {
  for (const Path& path : {clean, lossy, very_lossy, shallow, deep, distant, distant_lossy}) {
    for (const Congestion congestion : {Congestion::new_reno, Congestion::bbr}) {
      const Measured got = measure(path, congestion);
      std::printf("%-20s %-8s share %.3f  dropped %.4f\n", path.name, congestion == Congestion::bbr ? "bbr" : "new_reno", got.share,
                  got.dropped);
      std::fflush(stdout);
    }
  }
  for (const Path& path : {clean, shallow, deep, distant}) {
    for (const Congestion first : {Congestion::new_reno, Congestion::bbr}) {
      for (const Congestion second : {Congestion::new_reno, Congestion::bbr}) {
        const Measured got = measure_two(path, first, second);
        std::printf("%-20s %s %.3f beside %s %.3f\n", path.name, first == Congestion::bbr ? "bbr" : "new_reno", got.share,
                    second == Congestion::bbr ? "bbr" : "new_reno", got.rival);
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace ccixfer::datagram::testing
