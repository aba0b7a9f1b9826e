// What a router believes of records, how often it speaks itself, and the bounds of both.
#include <catch2/catch.hpp>

#include "routing/router/device_settings.h"
#include "routing/router/peer_links.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t wan = 100;

RouterOptions small() {
  RouterOptions options;
  options.fragment_bytes = 64u << 10;
  options.memory_bytes = 16u * (64u << 10);
  return options;
}

RouterRecord inside(uint64_t id, uint64_t instance, uint32_t subnet = 50) {
  RouterRecord record{id, instance, false, {}};
  record.devices.push_back({{1, subnet}, 1'000'000'000, 0, true, false, {}, "sim://10.0.0.66:7000", 0});
  return record;
}
RouterRecord outside(uint64_t id, uint64_t instance, uint32_t as) {
  RouterRecord record{id, instance, false, {}};
  record.devices.push_back({{as, wan}, 1'000'000'000, 0, true, true, {}, "sim://192.0.2.66:7000", 0});
  return record;
}

// A router of AS 1 with a LAN and a WAN. On the LAN a peer of its AS and one that only listens; on the WAN one of another AS.
struct Heard {
  explicit Heard(const RouterOptions& options = small())
      : node(world, fabric, "router", {{"lan", "10.0.0.1", {1, 1}, {}}, {"wan", "192.0.2.1", {1, wan}, {}, true}}, options),
        peer(world, fabric, "lan", "10.0.0.66"),
        listener(world, fabric, "lan", "10.0.0.67"),
        stranger(world, fabric, "wan", "192.0.2.66") {
    world.run_for(milliseconds(20));
    REQUIRE(peer.greet("sim://10.0.0.1:7000", 66, {1, 1}));
    REQUIRE(listener.greet("sim://10.0.0.1:7000", 67, {1, 1}));
    REQUIRE(stranger.greet("sim://192.0.2.1:7000", 99, {9, wan}));
    own = told_of_itself(listener).back();
    forget();
  }
  static std::vector<RouterRecord> records_of(const RawPeer& from) {
    std::vector<RouterRecord> found;
    for (const auto& each : from.received) {
      if (kind_of(Bytes(each)) == MessageKind::record) found.push_back(decode_record(record_of(Bytes(each))).value());
    }
    return found;
  }
  // What it has said to the listener of itself, or of others.
  std::vector<RouterRecord> told_of_itself(const RawPeer& to) {
    std::vector<RouterRecord> found = records_of(to);
    if (own.router == 0) own.router = found.at(0).router;
    std::erase_if(found, [&](const RouterRecord& record) { return record.router != own.router; });
    return found;
  }
  std::vector<RouterRecord> told(uint64_t router) {
    std::vector<RouterRecord> found = records_of(listener);
    std::erase_if(found, [&](const RouterRecord& record) { return record.router != router; });
    return found;
  }
  void forget() {
    peer.received.clear();
    listener.received.clear();
    stranger.received.clear();
  }
  [[nodiscard]] uint64_t rejected() const { return node.counters.get(Counter::records_rejected); }
  [[nodiscard]] size_t known() const { return node.router->routers_known(); }

  sim::World world{4};
  sim::Fabric fabric{world, {}};
  RouterNode node;
  RawPeer peer, listener, stranger;
  RouterRecord own;
};

}  // namespace

TEST_CASE("record_bucket__a_burst_then_one_a_gap_and_never_more_than_a_burst_saved") {
  RecordBucket bucket;
  Instant now = Instant{} + seconds(100);
  const auto taken = [&] {
    uint32_t count = 0;
    while (bucket.take(now)) ++count;
    return count;
  };
  CHECK(taken() == RecordBucket::burst);
  now += RecordBucket::gap - milliseconds(1);
  CHECK(taken() == 0);
  now += milliseconds(1);
  CHECK(taken() == 1);
  now += 3 * RecordBucket::gap + milliseconds(500);
  CHECK(taken() == 3);
  now += milliseconds(499);
  CHECK(taken() == 0);
  now += milliseconds(1);  // the half is not lost
  CHECK(taken() == 1);
  now += 1000 * RecordBucket::gap;
  CHECK(taken() == RecordBucket::burst);
  // Full again and long unused: the next one is earned a gap after the first that is taken, not at once.
  now += 1000 * RecordBucket::gap;
  CHECK(bucket.take(now));
  now += RecordBucket::gap / 2;
  CHECK(taken() == RecordBucket::burst - 1);
  now += RecordBucket::gap / 2 - milliseconds(1);
  CHECK(taken() == 0);
  now += milliseconds(1);
  CHECK(taken() == 1);
}

TEST_CASE("router_records__of_a_device_of_unknown_rate__says_the_rate_that_it_counts_for") {
  RouterDevice device;
  device.subnet = {1, 2};
  device.capabilities = 3;
  device.transit = false;
  device.wan = true;
  device.wan_to = {4};
  device.latency_ns = 5;
  CHECK(described(device, "sim://a:1") == DeviceRecord{{1, 2}, rate_unknown_bits_per_s, 3, false, true, {4}, "sim://a:1", 5});
  device.rate_bits_per_s = 7;
  CHECK(described(device, "sim://a:1").rate_bits_per_s == 7);
}

TEST_CASE("router_records__a_new_one__is_passed_on_once_a_known_or_older_one_is_not") {
  Heard met;
  const size_t before = met.known();
  REQUIRE(met.peer.tell(inside(50, 5)));
  CHECK(met.known() == before + 1);
  CHECK(met.told(50) == std::vector<RouterRecord>{inside(50, 5)});
  CHECK(Heard::records_of(met.peer).empty());  // it said so
  for (const uint64_t instance : {uint64_t{5}, uint64_t{4}}) REQUIRE(met.peer.tell(inside(50, instance, 51)));
  CHECK(met.told(50).size() == 1);
  REQUIRE(met.peer.tell(inside(50, 6, 51)));
  CHECK(met.told(50) == std::vector<RouterRecord>{inside(50, 5), inside(50, 6, 51)});
  // Gone, by the instance that is known, and only once; a newer one brings it back.
  for (int i = 0; i < 2; ++i) REQUIRE(met.peer.tell({50, 6, true, {}}));
  CHECK(met.told(50).size() == 3);
  CHECK(met.known() == before);
  REQUIRE(met.peer.tell(inside(50, 6)));
  CHECK(met.known() == before);
  REQUIRE(met.peer.tell(inside(50, 7)));
  CHECK(met.known() == before + 1);
  CHECK(met.told(50).size() == 4);
  CHECK(met.rejected() == 0);
}

TEST_CASE("router_records__instances__up_to_the_highest_no_further_ahead_than_a_century") {
  Heard met;
  const size_t before = met.known();
  REQUIRE(met.peer.tell(inside(50, instance_max + 1)));
  CHECK(met.known() == before);
  CHECK(met.rejected() == 1);
  REQUIRE(met.peer.tell(inside(50, instance_jump_max + 1)));  // the first that is heard of it
  CHECK(met.known() == before);
  CHECK(met.rejected() == 2);
  REQUIRE(met.peer.tell(inside(50, instance_jump_max)));
  CHECK(met.known() == before + 1);
  REQUIRE(met.peer.tell(inside(51, 10)));
  REQUIRE(met.peer.tell(inside(51, 11 + instance_jump_max, 52)));
  CHECK(met.told(51).size() == 1);
  CHECK(met.rejected() == 3);
  REQUIRE(met.peer.tell(inside(51, 10 + instance_jump_max, 52)));
  CHECK(met.told(51).size() == 2);
  // And of the router itself: nobody takes it past what it could have said.
  met.forget();
  REQUIRE(met.peer.tell({met.own.router, met.own.instance + instance_jump_max + 1, true, {}}));
  CHECK(met.told_of_itself(met.listener).empty());
  CHECK(met.rejected() == 4);
  REQUIRE(met.peer.tell({met.own.router, met.own.instance + instance_jump_max, true, {}}));
  REQUIRE(met.told_of_itself(met.listener).size() == 1);
  CHECK(met.told_of_itself(met.listener)[0].instance == met.own.instance + instance_jump_max + 1);
  CHECK(met.rejected() == 4);
}

TEST_CASE("router_records__its_own_from_others__answered_with_a_newer_one_if_it_differs") {
  Heard met;
  const uint64_t instance = met.own.instance;
  RouterRecord other = met.own;
  other.devices.pop_back();
  SECTION("the very same: that is how it comes back") {
    REQUIRE(met.peer.tell(met.own));
    CHECK(met.told_of_itself(met.listener).empty());
  }
  SECTION("an older one, whatever it says") {
    met.world.run_for(seconds(130));  // it has grown
    REQUIRE_FALSE(met.told_of_itself(met.listener).empty());
    const uint64_t now = met.told_of_itself(met.listener).back().instance;
    REQUIRE(now > instance + 2);
    met.forget();
    for (const uint64_t old : {instance, now - 1}) {
      REQUIRE(met.peer.tell({met.own.router, old, true, {}}));
      other.instance = old;
      REQUIRE(met.peer.tell(other));
    }
    CHECK(met.told_of_itself(met.listener).empty());
    met.world.run_for(seconds(31));
    REQUIRE_FALSE(met.told_of_itself(met.listener).empty());
    CHECK(met.told_of_itself(met.listener).back().instance > now);
  }
  SECTION("withdrawn") {
    REQUIRE(met.peer.tell({met.own.router, instance, true, {}}));
    REQUIRE(met.told_of_itself(met.listener).size() == 1);
    CHECK(met.told_of_itself(met.listener)[0].instance == instance + 1);
    CHECK_FALSE(met.told_of_itself(met.listener)[0].withdrawn);
    CHECK(met.told_of_itself(met.listener)[0].devices == met.own.devices);
  }
  SECTION("other devices") {
    REQUIRE(met.peer.tell(other));
    CHECK(met.told_of_itself(met.listener).size() == 1);
  }
  SECTION("a newer one, though it is the same: of an earlier life") {
    other = met.own;
    other.instance += 1000;
    REQUIRE(met.peer.tell(other));
    REQUIRE(met.told_of_itself(met.listener).size() == 1);
    CHECK(met.told_of_itself(met.listener)[0].instance == instance + 1001);
  }
  CHECK(met.rejected() == 0);
}

TEST_CASE("router_records__made_to_speak_often__a_burst_then_one_a_gap_the_newest_last") {
  Heard met;
  uint64_t said = met.own.instance;
  for (int i = 0; i < 60; ++i) {
    said += 10;
    REQUIRE(met.peer.tell({met.own.router, said, true, {}}));
  }
  const size_t at_once = met.told_of_itself(met.listener).size();
  CHECK(at_once <= RecordBucket::burst);
  CHECK(at_once >= RecordBucket::burst - 2);
  met.world.run_for(RecordBucket::gap + milliseconds(50));
  const auto all = met.told_of_itself(met.listener);
  REQUIRE(all.size() > at_once);
  CHECK(all.size() <= at_once + 2);
  CHECK(all.back().instance > said);
  CHECK_FALSE(all.back().withdrawn);
  met.world.run_for(seconds(5));
  CHECK(met.told_of_itself(met.listener).size() <= all.size() + 1);  // what had to be said is said
}

TEST_CASE("router_records__one_router_with_news_all_the_time__a_burst_passes_the_rest_drops") {
  Heard met;
  uint64_t instance = 1;
  for (; instance <= RecordBucket::burst; ++instance) REQUIRE(met.peer.tell(inside(50, instance)));
  CHECK(met.rejected() == 0);
  REQUIRE(met.peer.tell(inside(50, instance++)));
  CHECK(met.rejected() == 1);
  CHECK(met.told(50).size() == RecordBucket::burst);
  REQUIRE(met.peer.tell(inside(51, 1)));  // another is not held up
  CHECK(met.told(51).size() == 1);
  met.world.run_for(RecordBucket::gap);
  REQUIRE(met.peer.tell(inside(50, instance)));
  CHECK(met.told(50).size() == RecordBucket::burst + 1);
}

TEST_CASE("router_records__bad_ones_in_a_window__as_many_as_are_borne_and_one_more") {
  Heard met;
  const auto offend = [&] { REQUIRE(met.peer.tell(outside(50, 1, 8))); };
  for (uint32_t i = 0; i < peer_offences_max; ++i) offend();
  CHECK_FALSE(met.peer.gone);
  met.world.run_for(peer_offences_window);
  for (uint32_t i = 0; i < peer_offences_max; ++i) offend();
  CHECK_FALSE(met.peer.gone);
  offend();
  met.world.run_for(milliseconds(20));
  CHECK(met.peer.gone);
  CHECK(met.rejected() == 2 * peer_offences_max + 1);
  met.world.run_for(cut_off_time - seconds(1));
  REQUIRE(met.peer.greet("sim://10.0.0.1:7000", 66, {1, 1}));
  CHECK(met.peer.gone);
  met.world.run_for(seconds(1));
  REQUIRE(met.peer.greet("sim://10.0.0.1:7000", 66, {1, 1}));
  CHECK_FALSE(met.peer.gone);
}

TEST_CASE("router_records__of_another_as__its_own_as_only") {
  Heard met;
  const size_t before = met.known();
  uint64_t bad = met.rejected();
  const auto dropped = [&](const RouterRecord& record) {
    REQUIRE(met.stranger.tell(record));
    CHECK(met.rejected() == ++bad);
  };
  dropped(outside(50, 1, 8));
  RouterRecord two = outside(50, 1, 9);
  two.devices.push_back(outside(50, 1, 8).devices[0]);
  dropped(two);
  dropped({met.own.router, met.own.instance, true, {}});
  CHECK(met.told_of_itself(met.listener).empty());
  REQUIRE(met.peer.tell(inside(50, 5)));
  CHECK(met.known() == before + 1);
  REQUIRE(met.stranger.tell(outside(50, 6, 9)));  // the number is one of ours, which stays
  CHECK(met.known() == before + 2);
  CHECK(met.told(50).size() == 1);
  REQUIRE(met.stranger.tell({50, 7, true, {}}));
  CHECK(met.known() == before + 1);
  REQUIRE(met.stranger.tell({51, 1, true, {}}));  // of one that nobody knows
  REQUIRE(met.stranger.tell(outside(99, 1, 9)));
  CHECK(met.known() == before + 2);
  CHECK(met.rejected() == bad);
  CHECK(met.told(99).empty());  // known to the border only
  // Another link of a third AS says that number is its own.
  RawPeer third(met.world, met.fabric, "wan", "192.0.2.67");
  REQUIRE(third.greet("sim://192.0.2.1:7000", 88, {8, wan}));
  REQUIRE(third.tell(outside(99, 2, 8)));
  CHECK(met.known() == before + 3);
  // And so does one of our own AS, which is passed on.
  REQUIRE(met.peer.tell(inside(99, 1)));
  CHECK(met.rejected() == bad);
  CHECK(met.told(99).size() == 1);
  CHECK(met.known() == before + 4);
}

// Its last link broke, and it never knew: what it says next is what it said before, and believed once more.
TEST_CASE("router_records__of_another_as_that_was_out_of_reach__is_believed_again") {
  Heard met;
  REQUIRE(met.stranger.tell(outside(99, 7, 9)));
  const size_t before = met.known();
  met.stranger.endpoint->disconnect(met.stranger.connection);
  met.stranger.wake();
  met.world.run_for(milliseconds(100));
  CHECK(met.known() == before - 1);
  REQUIRE(met.stranger.greet("sim://192.0.2.1:7000", 99, {9, wan}));
  for (uint32_t i = 0; i < 2 * RecordBucket::burst; ++i) REQUIRE(met.stranger.tell(outside(99, 7, 9)));
  CHECK(met.known() == before);
  CHECK(met.rejected() == 0);  // nothing new was said
}

TEST_CASE("router_records__what_is_told_of_other_as__each_once_ascending_as_many_as_fit") {
  Heard met;
  const auto reached = [&] {
    const auto all = met.told_of_itself(met.listener);
    std::vector<uint32_t> list;
    for (const DeviceRecord& device : all.at(all.size() - 1).devices) {
      CHECK((device.wan || device.reaches.empty()));
      list.insert(list.end(), device.reaches.begin(), device.reaches.end());
    }
    return list;
  };
  REQUIRE(met.stranger.tell(outside(99, 1, 9)));
  CHECK(reached() == std::vector<uint32_t>{9});
  RawPeer others(met.world, met.fabric, "wan", "192.0.2.70");
  std::vector<cci::Connection> links;
  uint32_t as = 8;
  const auto join = [&] {
    REQUIRE(others.greet("sim://192.0.2.1:7000", 1000 + as, {as, wan}));
    REQUIRE(others.tell(outside(1000 + as, 1, as)));
    links.push_back(others.connection);
    met.world.run_for(seconds(2));
  };
  join();
  CHECK(reached() == std::vector<uint32_t>{8, 9});
  others.endpoint->disconnect(links.back());
  others.wake();
  met.world.run_for(seconds(2));
  CHECK(reached() == std::vector<uint32_t>{9});
  for (as = 20; as < 20 + reaches_max + 3; ++as) join();
  REQUIRE(reached().size() == reaches_max);
  CHECK(reached().front() == 9);
  CHECK(reached().back() == 20 + reaches_max - 2);
}

TEST_CASE("router_records__more_routers_than_there_may_be__the_rest_is_dropped") {
  Heard met;
  std::vector<std::byte> raw, message;
  uint64_t id = 1000;
  for (; id < 1000 + records_max; ++id) {
    raw.clear(), message.clear();
    REQUIRE(encode_record(inside(id, 1), raw));
    encode_record_message(MessageKind::record, raw, message);
    while (met.peer.send(message) == Status::no_buffers) met.world.run_for(milliseconds(1));
  }
  met.world.run_for(seconds(1));
  CHECK(met.known() == 1 + records_max);
  CHECK(met.rejected() == 0);
  REQUIRE(met.peer.tell(inside(id, 1)));
  CHECK(met.known() == 1 + records_max);
  CHECK(met.rejected() == 1);
  REQUIRE(met.peer.tell(inside(1000, 2)));
  CHECK(met.rejected() == 1);
  CHECK(met.told(1000).size() == 2);
  // Who only tells more than we have room for does nothing wrong.
  for (uint64_t more = 0; more < 2 * peer_offences_max; ++more) REQUIRE(met.peer.tell(inside(id + more, 1)));
  CHECK(met.rejected() == 1 + 2 * peer_offences_max);
  CHECK_FALSE(met.peer.gone);
}

TEST_CASE("router_records__not_heard_of_for_their_lifetime__forgotten_then_and_not_before") {
  Heard met;
  const size_t before = met.known();
  REQUIRE(met.peer.tell(inside(50, 1)));
  REQUIRE(met.peer.tell(inside(51, 1)));
  const Duration lifetime = RouterOptions{}.record_lifetime;
  met.world.run_for(lifetime / 2);
  REQUIRE(met.peer.tell(inside(51, 2)));
  met.world.run_for(lifetime / 2 - seconds(1));
  CHECK(met.known() == before + 2);
  met.world.run_for(seconds(1) + lifetime / 8);
  CHECK(met.known() == before + 1);
  met.world.run_for(lifetime / 2);
  CHECK(met.known() == before);
}

// What is inside is not told to another AS, and that it goes is: or a router there would send to it until its record has aged.
TEST_CASE("router_records__told_to_another_as__wan_devices_only_and_the_withdrawal") {
  Heard met;
  REQUIRE(met.peer.tell(inside(50, 5)));
  CHECK(Heard::records_of(met.stranger).empty());
  CHECK(met.told(50).size() == 1);
  met.node.router->drain();
  met.world.wake(met.node.node);
  met.world.run_for(milliseconds(20));
  const std::vector<RouterRecord> told = Heard::records_of(met.stranger);
  REQUIRE(told.size() == 1);
  CHECK(told[0].router == met.own.router);
  CHECK(told[0].withdrawn);
  CHECK(met.told_of_itself(met.listener).back().withdrawn);
}

TEST_CASE("router_records__its_own__told_anew_each_refresh") {
  Heard met;
  const Duration refresh = RouterOptions{}.record_refresh;
  met.world.run_for(3 * refresh);
  const auto told = met.told_of_itself(met.listener);
  REQUIRE(told.size() == 3);
  for (size_t i = 0; i < told.size(); ++i) {
    CHECK(told[i].instance == met.own.instance + i + 1);
    CHECK(told[i].devices == met.own.devices);
  }
}

TEST_CASE("router_records__the_last_link_to_a_router_is_lost__withdrawn_in_its_name") {
  Heard met;
  RawPeer second(met.world, met.fabric, "lan", "10.0.0.68");
  REQUIRE(second.greet("sim://10.0.0.1:7000", 66, {1, 1}));  // the same router from another address
  REQUIRE(met.peer.tell(inside(66, 3)));
  const size_t before = met.known();
  met.forget();
  second.endpoint->disconnect(second.connection);
  second.wake();
  met.world.run_for(milliseconds(100));
  CHECK(met.known() == before);
  CHECK(met.told(66).empty());
  met.peer.endpoint->disconnect(met.peer.connection);
  met.peer.wake();
  met.world.run_for(milliseconds(100));
  CHECK(met.known() == before - 1);
  CHECK(met.told(66) == std::vector<RouterRecord>{{66, 3, true, {}}});
}
