// The latency metric of a router whose peers answer when the test says so: what is measured, smoothed and told, and when.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

RouterOptions measuring(const std::vector<std::string>& metric) {
  RouterOptions options;
  options.fragment_bytes = 64u << 10;
  options.memory_bytes = 16u * (64u << 10);
  options.metric = metric;
  return options;
}

// A router on two networks, each of which takes a tenth of a millisecond.
struct Measured {
  explicit Measured(const std::vector<std::string>& metric = {"latency", "hops"})
      : node(world, fabric, "router", {{"left", "10.0.0.5", {1, 1}, {}}, {"right", "10.3.0.5", {1, 3}, {}}}, measuring(metric)) {}
  static sim::LinkOptions links() {
    sim::LinkOptions links;
    links.delay_min = links.delay_max = microseconds(100);
    return links;
  }
  void greet(RawPeer& peer, uint64_t id, bool left = true) {
    REQUIRE(peer.greet(left ? "sim://10.0.0.5:7000" : "sim://10.3.0.5:7000", id, left ? SubnetId{1, 1} : SubnetId{1, 3}));
  }
  static size_t asked(const RawPeer& peer) {
    return static_cast<size_t>(std::count_if(peer.received.begin(), peer.received.end(), [](const auto& message) {
      return kind_of(Bytes(message)) == MessageKind::keepalive;
    }));
  }
  // The peer is asked, and answers so much later.
  void answer(RawPeer& peer, Duration later) {
    std::erase_if(peer.received, [](const auto& message) { return kind_of(Bytes(message)) == MessageKind::keepalive; });
    REQUIRE(peer.run([&] { return asked(peer) > 0; }, seconds(6)));
    if (later > Duration::zero()) world.run_for(later);
    peer.say_plain(MessageKind::keepalive_ack);
    world.run_for(milliseconds(20));
  }
  // What the router says of a device in its newest record that this peer has.
  static uint64_t told_ns(const RawPeer& peer, uint32_t subnet) {
    uint64_t found = 0, newest = 0;
    for (const auto& each : peer.received) {
      if (kind_of(Bytes(each)) != MessageKind::record) continue;
      const auto record = decode_record(record_of(Bytes(each)));
      REQUIRE(record);
      if (record->instance < newest) continue;
      newest = record->instance;
      for (const DeviceRecord& device : record->devices) {
        if (device.subnet == SubnetId{1, subnet}) found = device.latency_ns;
      }
    }
    return found;
  }
  // But for the bytes' own time on the network.
  static bool is_about(uint64_t told, Duration expected) {
    const auto wanted = static_cast<uint64_t>(expected.count());
    return told >= wanted && told < wanted + 40'000;
  }

  sim::World world{4};
  sim::Fabric fabric{world, links()};
  RouterNode node;
};

}  // namespace

TEST_CASE("router_latency__not_among_the_metrics__nobody_is_asked") {
  Measured met({"hops"});
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.greet(peer, 66);
  met.world.run_for(seconds(20));
  CHECK(Measured::asked(peer) == 0);
  peer.say_plain(MessageKind::keepalive_ack);  // to nothing
  met.world.run_for(milliseconds(20));
  CHECK(Measured::told_ns(peer, 1) == 0);
  CHECK(met.node.router->links_open() == 1);
}

TEST_CASE("router_latency__asked_every_five_seconds__and_not_again_before_it_has_answered") {
  Measured met;
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.greet(peer, 66);
  met.world.run_for(seconds(30));
  CHECK(Measured::asked(peer) == 1);
  CHECK(Measured::told_ns(peer, 1) == 0);
  peer.say_plain(MessageKind::keepalive_ack);
  for (size_t more = 2; more < 6; ++more) {
    met.world.run_for(seconds(5));
    CHECK(Measured::asked(peer) == more);
    peer.say_plain(MessageKind::keepalive_ack);
  }
}

TEST_CASE("router_latency__an_answer_to_nothing__is_none") {
  Measured met;
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.greet(peer, 66);
  met.answer(peer, milliseconds(4));
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(2100)));
  for (int i = 0; i < 5; ++i) {
    met.world.run_for(milliseconds(200));
    peer.say_plain(MessageKind::keepalive_ack);
  }
  met.world.run_for(milliseconds(200));
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(2100)));
  CHECK(met.node.router->links_open() == 1);
}

TEST_CASE("router_latency__answers_differ__each_counts_a_quarter_less_than_one_is_not_told") {
  Measured met;
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.greet(peer, 66);
  met.answer(peer, milliseconds(40));
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(20'100)));
  met.answer(peer, milliseconds(200));  // (3 * 20.1 + 100.1) / 4
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(40'100)));
  met.answer(peer, milliseconds(150));  // 48.85: less than a quarter more
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(40'100)));
  met.answer(peer, milliseconds(150));  // 55.4125
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(55'412)));
  met.answer(peer, Duration::zero());  // 41.6: hardly less than a quarter
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(55'412)));
  met.answer(peer, Duration::zero());
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(31'213)));
}

TEST_CASE("router_latency__a_change_of_less_than_a_tenth_of_a_millisecond__is_not_told") {
  Measured met;
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.greet(peer, 66);
  met.answer(peer, Duration::zero());
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(100)));
  met.answer(peer, microseconds(640));  // 180
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(100)));
  met.answer(peer, microseconds(640));  // 240
  CHECK(Measured::is_about(Measured::told_ns(peer, 1), microseconds(240)));
}

TEST_CASE("router_latency__several_peers__a_device_is_as_far_as_the_farthest_of_its_own") {
  Measured met;
  RawPeer near(met.world, met.fabric, "left", "10.0.0.66"), far(met.world, met.fabric, "left", "10.0.0.67");
  RawPeer other(met.world, met.fabric, "right", "10.3.0.66");
  met.greet(near, 66);
  met.greet(far, 67);
  met.greet(other, 68, false);
  met.answer(near, milliseconds(2));
  CHECK(Measured::is_about(Measured::told_ns(near, 1), microseconds(1100)));
  CHECK(Measured::told_ns(near, 3) == 0);
  far.say_plain(MessageKind::keepalive_ack);  // asked long ago
  met.world.run_for(milliseconds(20));
  const uint64_t farthest = Measured::told_ns(near, 1);
  CHECK(farthest > 5'000'000);
  CHECK(Measured::told_ns(other, 1) == farthest);
  met.answer(near, Duration::zero());
  CHECK(Measured::told_ns(near, 1) == farthest);
  CHECK(Measured::told_ns(near, 3) == 0);
  other.say_plain(MessageKind::keepalive_ack);
  met.world.run_for(milliseconds(20));
  CHECK(Measured::told_ns(near, 3) > 3'000'000);
  CHECK(Measured::told_ns(near, 1) == farthest);
}

TEST_CASE("router_latency__the_first_answer__is_told_however_quick_it_was") {
  Measured met;
  sim::LinkOptions quick;
  quick.delay_min = quick.delay_max = microseconds(1);
  met.fabric.set_link("left", quick);
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.greet(peer, 66);
  CHECK(Measured::told_ns(peer, 1) == 0);
  met.answer(peer, Duration::zero());
  CHECK(Measured::told_ns(peer, 1) >= 1000);
  CHECK(Measured::told_ns(peer, 1) < 100'000);
}
