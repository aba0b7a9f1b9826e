// Between AS: what border routers take from one another, what they pass on, and what they refuse. Bad records.
#include <algorithm>
#include <set>

#include "core/base/log.h"
#include "routing/router/map_query.h"
#include "routing/router/map_snapshot.h"
#include "routing/transport/messages.h"
#include "tests/unit/routing/three_as.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

std::set<uint32_t> as_of(const std::vector<RouterRecord>& records) {
  std::set<uint32_t> found;
  for (const RouterRecord& record : records) {
    for (const DeviceRecord& device : record.devices) found.insert(device.subnet.as);
  }
  return found;
}

}  // namespace

TEST_CASE("router_policy__two_as_over_the_wan__connect_both_ways_with_reachability_only") {
  Site site;
  three_as(site);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  CHECK(site.send(*site.left, connection, "out") == Status::success);
  const cci::Connection back = site.connect(*site.right, *site.left);
  CHECK(site.send(*site.right, back, "in") == Status::success);

  RawPeer inner(site.world, site.fabric, "hpc", "10.3.0.200");
  const auto at_r4 = ask(inner, "sim://10.3.0.1:7000");
  CHECK(as_of(at_r4) == std::set<uint32_t>{3});  // no record of another AS goes further than the border
  std::vector<uint32_t> told;
  for (const RouterRecord& record : at_r4) {
    for (const DeviceRecord& device : record.devices) told.insert(told.end(), device.reaches.begin(), device.reaches.end());
  }
  CHECK(told == std::vector<uint32_t>{4, 5});

  RawPeer lan(site.world, site.fabric, "lan", "10.1.0.200");
  for (const RouterRecord& record : ask(lan, "sim://10.1.0.1:7000")) {
    for (const DeviceRecord& device : record.devices)
      CHECK((device.subnet.as == 3 || device.subnet == SubnetId{device.subnet.as, wan}));
  }
  RawPeer far(site.world, site.fabric, "far", "10.0.0.200");
  const auto at_r5 = ask(far, "sim://10.0.0.1:7000");
  CHECK(as_of(at_r5) == std::set<uint32_t>{3, 4});  // nothing of the third AS
  for (const RouterRecord& record : at_r5) {
    for (const DeviceRecord& device : record.devices) CHECK((device.subnet.as != 3 || device.wan));  // nothing of AS3's inside
  }
}

TEST_CASE("router_policy__an_administrator_on_a_wan_device__learns_nothing") {
  Site site;
  three_as(site);
  RawPeer stranger(site.world, site.fabric, "wan", "192.0.2.66");
  CHECK_FALSE(stranger.connect("sim://192.0.2.3:7000", ports::Role::admin));
  RawPeer lan(site.world, site.fabric, "lan", "10.1.0.200");
  CHECK(lan.connect("sim://10.1.0.1:7000", ports::Role::admin));  // the same router
}

TEST_CASE("router_policy__third_as__is_no_way_between_two_others") {
  Site site;
  three_as(site);
  // r6 of AS5 has no link with r5: it does not know AS4, though r1 of AS3 does.
  App third(site.world, site.fabric, "third", "10.0.0.2", {5, 1}, {"sim://10.0.0.1:7000"});
  CHECK(site.connect_event(third, site.right->uri()).status == Status::no_route);
  CHECK(site.connect_event(third, site.left->uri()).status == Status::success);
}

TEST_CASE("router_policy__other_as_goes_away__inner_routers_hear_that_it_is_not_reached") {
  Site site;
  three_as(site);
  site.kill(2);
  site.world.run_for(seconds(20));
  RawPeer inner(site.world, site.fabric, "hpc", "10.3.0.200");
  for (const RouterRecord& record : ask(inner, "sim://10.3.0.1:7000")) {
    for (const DeviceRecord& device : record.devices) CHECK((!device.wan || device.reaches == std::vector<uint32_t>{5}));
  }
  CHECK(site.connect_event(*site.left, "cci://4:7:10.0.0.2:7000").status == Status::no_route);
}

TEST_CASE("router_policy__other_as_on_an_inner_device_or_outside_wan_to__no_link") {
  Site site;
  site.add_router("r1", {{"lan", "10.1.0.1", {3, 1}, {}}, {"wan", "192.0.2.3", {3, wan}, {}, true, {5}}});
  site.add_router("r5", {{"wan", "192.0.2.4", {4, wan}, {"sim://192.0.2.3:7000"}, true}, {"far", "10.0.0.1", {4, 7}, {}}});
  site.add_router("r7", {{"lan", "10.1.0.7", {4, 1}, {"sim://10.1.0.1:7000"}}, {"x", "10.0.0.1", {4, 8}, {}}});
  site.add_router("r8", {{"lan", "10.1.0.8", {3, 2}, {"sim://10.1.0.1:7000"}}, {"y", "10.0.0.1", {3, 8}, {}}});  // misnumbered
  site.settle();
  site.world.run_for(seconds(10));
  for (const auto& router : site.routers) {
    CHECK(router->router->links_open() == 0);
    CHECK(router->router->routers_known() == 1);
  }
  CHECK(site.routers[0]->counters.get(Counter::records_rejected) > 0);
}

TEST_CASE("router_create__inner_devices_of_two_as__usage") {
  Site site;
  std::vector<RouterDevice> devices;
  Counters counters;
  sim::SimEntropy entropy(1);
  auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  const sim::NodeId node = site.world.add_node("r");
  for (const uint32_t as : {3u, 4u}) {
    sim::SimNetOptions net;
    net.networks = {{"net" + std::to_string(as), "10.0.0.1"}};
    net.port = static_cast<uint16_t>(7000 + as);
    RouterDevice device;
    device.name = "d" + std::to_string(as);
    device.subnet = {as, 1};
    device.scheme = "sim";
    device.endpoint = std::make_unique<cci::Endpoint>(
        cci::EndpointOptions{},
        std::make_unique<stream::StreamTransport>(ports::TransportOptions{}, std::make_unique<sim::SimNet>(site.fabric, node, net),
                                                  counters),
        memory, counters);
    devices.push_back(std::move(device));
  }
  const auto made = Router::create(Site::small(), std::move(devices), memory, entropy, counters);
  REQUIRE_FALSE(made);
  CHECK(made.error().kind == ErrorKind::usage);
  CHECK(made.error().message.find("one AS") != std::string::npos);
}

TEST_CASE("router_records__bad_ones__counted_dropped_and_the_peer_cut_off_when_it_goes_on") {
  Site site;
  three_as(site);
  RouterNode& r1 = *site.routers[1];
  const size_t known = r1.router->routers_known();
  const auto rejected = [&] { return r1.counters.get(Counter::records_rejected); };
  RawPeer rogue(site.world, site.fabric, "wan", "192.0.2.9");
  REQUIRE(rogue.greet("sim://192.0.2.3:7000", 99, {9, wan}));
  uint64_t before = rejected();
  const auto is_dropped = [&](const char* what) {
    INFO(what);
    CHECK(rejected() == before + 1);
    CHECK(r1.router->routers_known() == known);
    before = rejected();
  };
  std::vector<std::byte> malformed;
  encode_record_message(MessageKind::record, as_bytes("too short"), malformed);
  rogue.send(malformed);
  site.world.run_for(milliseconds(5));
  is_dropped("a wrong length");
  rogue.tell(border(98, 1, 8));
  is_dropped("an AS that it may not bring");
  rogue.tell(border(98, 1, 3));
  is_dropped("our own AS from another");
  rogue.tell(border(98, UINT64_MAX));
  is_dropped("the future");
  RawPeer inner(site.world, site.fabric, "hpc", "10.3.0.200");
  const std::vector<RouterRecord> ours = ask(inner, "sim://10.3.0.1:7000");
  for (const RouterRecord& record : ours) {
    rogue.tell(border(record.router, record.instance + 5));
    if (record.router == r1.router->view().router) {
      is_dropped("the router itself");
      continue;
    }
    // Its AS may have a router of that number. Ours stays what it is.
    CHECK(rejected() == before);
    CHECK(r1.router->routers_known() == known + 1);
    const std::vector<RouterRecord> still = ask(inner, "sim://10.3.0.1:7000");
    CHECK(std::find(still.begin(), still.end(), record) != still.end());
    rogue.tell({record.router, record.instance + 6, true, {}});
    CHECK(r1.router->routers_known() == known);
  }
  CHECK_FALSE(rogue.gone);
  // Its own record is taken all the while, and what it says of the inside of its AS is not.
  RouterRecord good = border(99, 1);
  good.devices.push_back({{9, 1}, 10'000'000'000, 0, true, false, {}, "sim://10.0.0.9:7000", 0});
  rogue.tell(good);
  CHECK(r1.router->routers_known() == known + 1);
  RawPeer lan(site.world, site.fabric, "lan", "10.1.0.200");
  for (const RouterRecord& record : ask(lan, "sim://10.1.0.1:7000")) {
    if (record.router == 99) CHECK(record.devices.size() == 1);
  }
  rogue.tell(border(99, 2 + (uint64_t{1} << 40)));
  CHECK(rejected() == before + 1);  // a jump
  // Going on: a flood of instances. Some pass, the rest is dropped, and then it is out and not let in again.
  for (uint64_t instance = 2; instance < 200 && !rogue.gone; ++instance) rogue.tell(border(99, instance));
  CHECK(site.run([&] { return rogue.gone; }, seconds(5)));
  CHECK(rejected() > 30);
  REQUIRE(rogue.greet("sim://192.0.2.3:7000", 99, {9, wan}));
  CHECK(site.run([&] { return rogue.gone; }, seconds(5)));
  site.world.run_for(seconds(70));
  REQUIRE(rogue.greet("sim://192.0.2.3:7000", 99, {9, wan}));
  CHECK_FALSE(rogue.gone);
  // All the while the others went on.
  const cci::Connection connection = site.connect(*site.left, *site.right);
  CHECK(site.send(*site.left, connection, "still") == Status::success);
}

// The log is for people: what one peer says over and over is one line, and one more when it is cut off. Another peer has its own.
TEST_CASE("router_records__bad_ones__logged_once_a_peer") {
  Site site;
  three_as(site);
  RouterNode& r1 = *site.routers[1];
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });  // also when a check fails
  const auto naming = [&](std::string_view address, std::string_view what) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(address) != std::string::npos && line.find(what) != std::string::npos;
    });
  };
  const uint64_t before = r1.counters.get(Counter::records_rejected);
  RawPeer rogue(site.world, site.fabric, "wan", "192.0.2.9"), other(site.world, site.fabric, "wan", "192.0.2.10");
  REQUIRE(rogue.greet("sim://192.0.2.3:7000", 99, {9, wan}));
  REQUIRE(other.greet("sim://192.0.2.3:7000", 97, {7, wan}));
  for (int i = 0; i < 5; ++i) {
    rogue.tell(border(98, 1, 8));  // each for a reason of its own: the first one is told
    rogue.tell(border(98, UINT64_MAX));
  }
  CHECK(r1.counters.get(Counter::records_rejected) == before + 10);
  CHECK(lines.size() == 1);
  CHECK(naming("192.0.2.9", "a record of an AS that it may not bring: dropped") == 1);
  for (int i = 0; i < 3; ++i) other.tell(border(98, 1, 8));
  CHECK(lines.size() == 2);
  CHECK(naming("192.0.2.10", "dropped") == 1);
  // The window is over: what was counted is forgotten, what was logged is not.
  site.world.run_for(seconds(40));
  for (int i = 0; i < 5; ++i) rogue.tell(border(98, 1, 8));
  CHECK_FALSE(rogue.gone);
  CHECK(naming("192.0.2.9", "dropped") == 1);
  for (int i = 0; i < 100 && !rogue.gone; ++i) rogue.tell(border(98, 1, 8));
  CHECK(site.run([&] { return rogue.gone; }, seconds(5)));
  CHECK(naming("192.0.2.9", "dropped") == 1);
  CHECK(naming("192.0.2.9", "is cut off") == 1);
  // Who was cut off and is let in again begins anew.
  site.world.run_for(seconds(70));
  REQUIRE(rogue.greet("sim://192.0.2.3:7000", 99, {9, wan}));
  rogue.tell(border(98, 1, 8));
  rogue.tell(border(98, 1, 8));
  CHECK(naming("192.0.2.9", "dropped") == 2);
  CHECK(naming("192.0.2.10", "dropped") == 1);
}

TEST_CASE("router_records__withdrawn_in_its_name__a_living_router_answers_with_a_newer_one") {
  Site site;
  site.chain(3);
  site.world.run_for(seconds(2));
  RawPeer peer(site.world, site.fabric, "lan1", "10.0.0.200");
  const auto before = ask(peer, "sim://10.0.0.1:7000");
  REQUIRE(before.size() == 3);
  RawPeer liar(site.world, site.fabric, "lan1", "10.0.0.201");
  REQUIRE(liar.greet("sim://10.0.0.1:7000", 77, {1, 1}));
  for (const RouterRecord& record : before) liar.tell({record.router, record.instance, true, {}});
  site.world.run_for(seconds(5));
  for (const auto& router : site.routers) CHECK(router->router->routers_known() == 3);
  const auto later = ask(peer, "sim://10.0.0.1:7000");
  REQUIRE(later.size() == 3);
  for (const RouterRecord& record : before) {
    for (const RouterRecord& now : later) CHECK((now.router != record.router || now.instance > record.instance));
  }
  // An old record never beats a new one.
  for (const RouterRecord& record : before) liar.tell(record);
  site.world.run_for(seconds(5));
  CHECK(ask(peer, "sim://10.0.0.1:7000") == later);
}

TEST_CASE("router_records__latency_metric__measured_and_told") {
  Site site;
  site.options.metric = {"latency", "hops"};
  sim::LinkOptions slow;
  slow.delay_min = slow.delay_max = milliseconds(20);
  site.fabric.set_link("mid1", slow);
  site.chain(3);
  site.world.run_for(seconds(20));
  RawPeer peer(site.world, site.fabric, "lan1", "10.0.0.200");
  size_t slow_devices = 0;
  for (const RouterRecord& record : ask(peer, "sim://10.0.0.1:7000")) {
    CHECK(record.instance < 12);  // told when it changed, not at every measurement
    for (const DeviceRecord& device : record.devices) {
      if (device.subnet == SubnetId{1, 11})
        slow_devices += device.latency_ns > 19'000'000 && device.latency_ns < 30'000'000 ? 1 : 0;
      if (device.subnet == SubnetId{1, 12}) CHECK((device.latency_ns > 0 && device.latency_ns < 5'000'000));
    }
  }
  CHECK(slow_devices == 2);
}

TEST_CASE("router_records__latency_that_is_a_little_uneven__is_not_told_again_and_again") {
  Site site;
  site.options.metric = {"latency", "hops"};
  sim::LinkOptions uneven;
  uneven.delay_min = milliseconds(19), uneven.delay_max = milliseconds(21);
  site.fabric.set_link("mid1", uneven);
  site.chain(2);
  site.world.run_for(seconds(20));
  RawPeer peer(site.world, site.fabric, "lan1", "10.0.0.200");
  const auto told = [&] {
    uint64_t all = 0;
    for (const RouterRecord& record : ask(peer, "sim://10.0.0.1:7000")) all += record.instance;
    return all;
  };
  const uint64_t before = told();
  site.world.run_for(seconds(200));
  CHECK(told() - before <= 2 * 8);  // a refresh each half a minute; 40 measurements
}

// The next question comes before the answer to the last one: its answer is not that of the next.
TEST_CASE("router_records__latency_beyond_two_questions_apart__is_measured_as_it_is") {
  Site site;
  site.options.metric = {"latency", "hops"};
  site.chain(2);
  sim::LinkOptions far;
  far.delay_min = far.delay_max = seconds(3);
  site.fabric.set_link("mid1", far);
  site.world.run_for(seconds(120));
  RawPeer peer(site.world, site.fabric, "lan1", "10.0.0.200");
  size_t measured = 0;
  for (const RouterRecord& record : ask(peer, "sim://10.0.0.1:7000")) {
    for (const DeviceRecord& device : record.devices) {
      if (device.subnet != SubnetId{1, 11}) continue;
      ++measured;
      CHECK(device.latency_ns > 2'000'000'000);
      CHECK(device.latency_ns < 4'000'000'000);
    }
  }
  CHECK(measured == 2);
}

// A router of ours that another AS knows through us only: what it says last must reach that AS, or traffic goes there for minutes.
TEST_CASE("router_policy__a_wan_device_is_one_no_more__the_other_as_hears_that_from_a_neighbour") {
  Site site;
  site.add_router("r1", {{"lan", "10.1.0.1", {3, 1}, {}}, {"wan", "192.0.2.3", {3, wan}, {}, true}});
  site.add_router("r2", {{"lan", "10.1.0.2", {3, 1}, {"sim://10.1.0.1:7000"}}, {"wan", "192.0.2.33", {3, wan}, {}, true}});
  site.add_router("r4", {{"lan", "10.1.0.4", {3, 1}, {"sim://10.1.0.1:7000"}}, {"hpc", "10.3.0.1", {3, 3}, {}}});
  site.add_router("r5", {{"wan", "192.0.2.4", {4, wan}, {"sim://192.0.2.3:7000"}, true}, {"far", "10.0.0.1", {4, 7}, {}}});
  site.settle();
  site.world.run_for(seconds(3));
  RouterNode& r2 = *site.routers[1];
  Router& r5 = *site.routers[3]->router;
  const auto hops = [&r5] {
    std::vector<std::string> uris;
    const uint64_t id = r5.view().router;
    for (const NextHop& hop : r5.map()->map()->next_hops(id, {4, 7}, {4, 7}, {3, 1})) uris.push_back(hop.uri);
    std::sort(uris.begin(), uris.end());
    return uris;
  };
  REQUIRE(hops() == std::vector<std::string>{"sim://192.0.2.33:7000", "sim://192.0.2.3:7000"});
  std::vector<RouterDevice> devices(2);
  devices[0].name = "lan", devices[0].subnet = {3, 1}, devices[0].peers = {"sim://10.1.0.1:7000"};
  devices[1].name = "wan", devices[1].subnet = {3, wan};
  for (RouterDevice& device : devices) device.scheme = "sim", device.rate_bits_per_s = 10'000'000'000;
  REQUIRE(r2.router->reconfigure(site.options, std::move(devices)));
  site.world.wake(r2.node);
  site.world.run_for(seconds(1));
  CHECK(hops() == std::vector<std::string>{"sim://192.0.2.3:7000"});
  CHECK(r5.routers_known() == 2);
}

TEST_CASE("router_reconfigure__a_record_that_would_be_too_long__usage_and_nothing_changes") {
  Site site;
  three_as(site);
  RouterNode& r1 = *site.routers[1];
  std::vector<RouterDevice> devices(2);
  devices[0].name = "lan", devices[0].subnet = {3, 1}, devices[0].scheme = "sim";
  devices[1].name = "wan", devices[1].subnet = {3, wan}, devices[1].scheme = "sim", devices[1].wan = true;
  for (uint32_t as = 10; as < 10 + wan_to_max; ++as) devices[1].wan_to.push_back(as);
  // More devices, each with as many AS.
  sim::SimEntropy entropy(1);
  for (uint32_t i = 0; i < 14; ++i) {
    sim::SimNetOptions net;
    net.networks = {{"more" + std::to_string(i), "10.70.0.1"}};
    net.port = 7000;
    RouterDevice device;
    device.name = "more" + std::to_string(i);
    device.subnet = {3, 200 + i};
    device.scheme = "sim";
    device.wan = true;
    device.wan_to = devices[1].wan_to;
    device.endpoint = std::make_unique<cci::Endpoint>(
        cci::EndpointOptions{},
        std::make_unique<stream::StreamTransport>(ports::TransportOptions{},
                                                  std::make_unique<sim::SimNet>(site.fabric, r1.node, net), r1.counters),
        r1.memory, r1.counters);
    devices.push_back(std::move(device));
  }
  const auto taken = r1.router->reconfigure(site.options, std::move(devices));
  REQUIRE_FALSE(taken);
  CHECK(taken.error().kind == ErrorKind::usage);
  CHECK(taken.error().message.find("too long") != std::string::npos);
  CHECK(r1.router->devices().size() == 2);
  site.world.run_for(seconds(200));  // the others still hear of it
  CHECK(site.routers[0]->router->routers_known() == 2);
  CHECK(site.connect_event(*site.left, site.right->uri()).status == Status::success);
}

TEST_CASE("router_reconfigure__peers_metric_and_wan_to__change_and_connections_stay") {
  Site site;
  three_as(site);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  RouterNode& r1 = *site.routers[1];
  const auto settings = [](std::vector<uint32_t> to) {
    std::vector<RouterDevice> devices(2);
    devices[0].name = "lan", devices[0].subnet = {3, 1}, devices[0].scheme = "sim";
    devices[1].name = "wan", devices[1].subnet = {3, wan}, devices[1].scheme = "sim";
    devices[1].wan = true, devices[1].wan_to = std::move(to);
    for (RouterDevice& device : devices) device.rate_bits_per_s = 40'000'000'000;
    return devices;
  };
  RouterOptions options = site.options;
  options.metric = {"hops"};
  REQUIRE(r1.router->reconfigure(options, settings({5})));
  site.world.wake(r1.node);
  site.world.run_for(seconds(3));
  // AS4 is no longer served: no new connection, but the one that there is stays.
  CHECK(site.send(*site.left, connection, "still") == Status::success);
  CHECK(site.connect_event(*site.left, site.right->uri()).status == Status::no_route);
  RawPeer inner(site.world, site.fabric, "hpc", "10.3.0.200");
  bool seen = false;
  for (const RouterRecord& record : ask(inner, "sim://10.3.0.1:7000")) {
    for (const DeviceRecord& device : record.devices) {
      if (!device.wan) continue;
      seen = true;
      CHECK(device.rate_bits_per_s == 40'000'000'000);
      CHECK(device.reaches.empty());  // AS5 is served, but AS5's own device does not name us
    }
  }
  CHECK(seen);
  options.metric = {"speed"};
  CHECK_FALSE(r1.router->reconfigure(options, settings({})));
  options.metric = {"hops"};
  auto fewer = settings({});
  fewer.pop_back();
  CHECK_FALSE(r1.router->reconfigure(options, std::move(fewer)));
  auto other = settings({});
  other[0].subnet = {3, 2};
  CHECK_FALSE(r1.router->reconfigure(options, std::move(other)));
  REQUIRE(r1.router->reconfigure(options, settings({})));
  site.world.wake(r1.node);
  site.world.run_for(seconds(10));
  CHECK(site.connect_event(*site.left, site.right->uri()).status == Status::success);
}

TEST_CASE("routing_policy__wan_links_lost_and_dialled_from_both_sides__know_each_other") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Site site(seed);
    site.add_router("a", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"wan", "10.9.0.1", {1, wan}, {"sim://10.9.0.2:7000"}, true}});
    site.add_router("b", {{"lan2", "10.0.0.1", {2, 1}, {}}, {"wan", "10.9.0.2", {2, wan}, {"sim://10.9.0.1:7000"}, true}});
    site.settle();
    for (int round = 0; round < 3; ++round) {
      site.fabric.reset_network("wan");
      site.world.run_for(seconds(3));  // and not only with the next refresh
      CHECK(site.routers[0]->router->routers_known() == 2);
      CHECK(site.routers[1]->router->routers_known() == 2);
    }
  }
}
