// What a router may be made of, and what it takes from a changed configuration while it runs.
#include <catch2/catch.hpp>

#include "routing/router/device_settings.h"
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

// A process that would be a router: devices with endpoints on networks of a simulated world.
struct Host {
  RouterDevice device(const std::string& name, SubnetId subnet, const std::string& address = "10.0.0.5", bool listens = true) {
    RouterDevice made;
    made.name = name;
    made.subnet = subnet;
    made.scheme = "sim";
    made.rate_bits_per_s = 1'000'000'000;
    sim::SimNetOptions net;
    net.networks = {{name, address}};
    net.listen = listens;
    net.port = listens ? 7000 : 0;
    made.endpoint =
        std::make_unique<cci::Endpoint>(cci::EndpointOptions{},
                                        std::make_unique<stream::StreamTransport>(
                                            ports::TransportOptions{}, std::make_unique<sim::SimNet>(fabric, node, net), counters),
                                        memory, counters);
    return made;
  }
  std::vector<RouterDevice> devices(uint32_t count) {
    std::vector<RouterDevice> made;
    for (uint32_t i = 0; i < count; ++i) made.push_back(device("net" + std::to_string(i), {1, i + 1}));
    return made;
  }
  Result<std::unique_ptr<Router>> create(const RouterOptions& options, std::vector<RouterDevice> all) {
    return Router::create(options, std::move(all), memory, entropy, counters);
  }
  void check_refused(const RouterOptions& options, std::vector<RouterDevice> all, const std::string& words) {
    const auto made = create(options, std::move(all));
    REQUIRE_FALSE(made);
    CHECK(made.error().kind == ErrorKind::usage);
    INFO(made.error().message);
    CHECK(made.error().message.find(words) != std::string::npos);
  }

  sim::World world{8};
  sim::Fabric fabric{world, {}};
  sim::NodeId node = world.add_node("host");
  Counters counters;
  sim::SimEntropy entropy{8};
  std::shared_ptr<cci::MemoryTable> memory = std::make_shared<cci::MemoryTable>(entropy, counters);
};

// A running router on "lan" and "wan", to be told of a changed configuration.
struct Running : Host, sim::Actor {
  Running() {
    std::vector<RouterDevice> all;
    all.push_back(device("lan", {1, 1}));
    all.push_back(device("wan", {1, wan}));
    all[1].wan = true;
    all[0].peers = {"sim://10.0.0.66:7000"};
    router = std::move(*create(small(), std::move(all)));
    world.add_actor(node, this);
    wake();
  }
  ~Running() override { world.remove_actor(node, this); }
  void turn(Instant now) override { router->turn(now); }
  [[nodiscard]] Instant next_deadline() const override { return router->next_deadline(); }
  void wake() { world.wake(node); }
  // The configuration as it stands, to be changed.
  static std::vector<RouterDevice> settings() {
    std::vector<RouterDevice> all(2);
    all[0].name = "lan", all[0].subnet = {1, 1};
    all[1].name = "wan", all[1].subnet = {1, wan}, all[1].wan = true;
    for (RouterDevice& each : all) each.scheme = "sim", each.rate_bits_per_s = 1'000'000'000;
    return all;
  }
  void check_refused(std::vector<RouterDevice> all, const std::string& words, const RouterOptions& options = small()) {
    const auto taken = router->reconfigure(options, std::move(all));
    REQUIRE_FALSE(taken);
    CHECK(taken.error().kind == ErrorKind::usage);
    INFO(taken.error().message);
    CHECK(taken.error().message.find(words) != std::string::npos);
  }
  void take(std::vector<RouterDevice> all, const RouterOptions& options = small()) {
    const auto taken = router->reconfigure(options, std::move(all));
    INFO((taken ? std::string() : taken.error().message));
    REQUIRE(taken);
    wake();
    world.run_for(milliseconds(50));
  }
  RouterRecord own(RawPeer& asker) {
    const auto records = asker.ask("sim://10.0.0.5:7000");
    REQUIRE(records);
    return records->at(0);
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(5)) {
    return world.run_until(done, after(world.now(), at_most)) == sim::RunEnd::reached || done();
  }
  // As the router that has been dialled.
  void greet_back(RawPeer& peer, uint64_t id, SubnetId subnet) {
    peer.say(RouterHello{id, subnet, peer.endpoint->uri()});
    world.run_for(milliseconds(50));
  }

  std::unique_ptr<Router> router;
};

}  // namespace

TEST_CASE("router_create__memory_that_no_host_gives__is_told") {
  RouterOptions options = small();
  options.memory_bytes = uint64_t{1} << 60;
  Host host;
  host.check_refused(options, host.devices(2), "more than this host has");
}

TEST_CASE("router_create__devices__two_or_more_up_to_the_bound_each_on_its_own_subnet") {
  Host host;
  CHECK(host.create(small(), host.devices(2)));
  Host most;
  CHECK(most.create(small(), most.devices(devices_max)));
  Host other;
  other.check_refused(small(), other.devices(1), "two subnets");
  Host more;
  more.check_refused(small(), more.devices(devices_max + 1), "at most 16 devices");
  Host same;
  auto twice = same.devices(2);
  twice[1].subnet = twice[0].subnet;
  same.check_refused(small(), std::move(twice), "on subnet 1:1 already");
  Host deaf;
  auto silent = deaf.devices(1);
  silent.push_back(deaf.device("deaf", {1, 9}, "10.0.0.5", false));
  deaf.check_refused(small(), std::move(silent), "device deaf: a router's device must listen");
  Host none;
  auto missing = none.devices(2);
  missing[1].endpoint.reset();
  none.check_refused(small(), std::move(missing), "must listen");
  Host odd;
  RouterOptions options = small();
  options.metric = {"speed"};
  odd.check_refused(options, odd.devices(2), "metric 'speed'");
}

TEST_CASE("router_create__fragments_and_memory__no_less_than_the_smallest_fragment_a_class") {
  RouterOptions options;
  options.fragment_bytes = fragment_bytes_floor - 1;
  Host shorter;
  shorter.check_refused(options, shorter.devices(2), "at least 4096");
  options.fragment_bytes = fragment_bytes_floor;
  options.memory_bytes = uint64_t{classes_max} * fragment_bytes_floor;
  Host least;
  CHECK(least.create(options, least.devices(2)));
  options.memory_bytes -= 1;
  Host little;
  little.check_refused(options, little.devices(2), "memory of 32767 bytes is too little: at least 32768");
}

TEST_CASE("router_create__a_record_that_would_be_too_long__usage") {
  Host host;
  auto all = host.devices(devices_max);
  for (RouterDevice& device : all) {
    device.wan = true;
    for (uint32_t as = 2; as < 2 + wan_to_max; ++as) device.wan_to.push_back(as);
  }
  host.check_refused(small(), std::move(all), "too long");
}

TEST_CASE("router__its_names__devices_and_addresses_as_they_are_configured") {
  Running met;
  CHECK(met.router->uris() == std::vector<std::string>{"cci://1:1:10.0.0.5:7000", "cci://1:100:10.0.0.5:7000"});
  using Named = std::vector<std::pair<std::string, std::string>>;
  CHECK(met.router->devices() == Named{{"lan", "sim://10.0.0.5:7000"}, {"wan", "sim://10.0.0.5:7000"}});
  CHECK(met.router->has_device("lan"));
  CHECK_FALSE(met.router->has_device("la"));
  CHECK(met.router->os_handles().size() == 2);
  CHECK_FALSE(met.router->ready());  // not started, and its peer not tried
  CHECK(met.router->next_deadline() <= met.world.now());
  CHECK(met.run([&] { return met.router->ready(); }));
}

TEST_CASE("router__of_the_same_addresses__is_the_same_router_again_and_of_others_another") {
  const auto id_of = [](const std::string& address) {
    Host host;
    std::vector<RouterDevice> all;
    all.push_back(host.device("a", {1, 1}, address));
    all.push_back(host.device("b", {1, 2}));
    auto router = host.create(small(), std::move(all));
    REQUIRE(router);
    struct Turner : sim::Actor {
      explicit Turner(Router& r) : router(r) {}
      void turn(Instant now) override { router.turn(now); }
      [[nodiscard]] Instant next_deadline() const override { return router.next_deadline(); }
      Router& router;
    } turner(**router);
    host.world.add_actor(host.node, &turner);
    host.world.wake(host.node);
    RawPeer asker(host.world, host.fabric, "b", "10.0.0.9");
    const auto records = asker.ask("sim://10.0.0.5:7000");
    REQUIRE(records);
    host.world.remove_actor(host.node, &turner);
    return records->at(0).router;
  };
  CHECK(id_of("10.0.0.1") == id_of("10.0.0.1"));
  CHECK(id_of("10.0.0.1") != id_of("10.0.0.2"));
}

TEST_CASE("router_reconfigure__what_it_cannot_take__usage_and_nothing_changes") {
  Running met;
  RawPeer asker(met.world, met.fabric, "lan", "10.0.0.9");
  const RouterRecord before = met.own(asker);
  RouterOptions odd = small();
  odd.metric = {"speed"};
  met.check_refused(Running::settings(), "metric", odd);
  auto all = Running::settings();
  for (RouterDevice& each : all) each.rate_bits_per_s = 7;
  SECTION("one is missing") {
    all.pop_back();
    met.check_refused(std::move(all), "device wan is missing");
  }
  SECTION("one comes twice") {
    all.push_back(std::move(Running::settings()[0]));
    met.check_refused(std::move(all), "device lan is missing");
  }
  SECTION("on another subnet") {
    all[0].subnet = {1, 7};
    met.check_refused(std::move(all), "device lan is on subnet 1:1 (sim)");
  }
  SECTION("of another scheme") {
    all[0].scheme = "tcp";
    met.check_refused(std::move(all), "device lan is on subnet 1:1 (sim)");
  }
  SECTION("a new one without an endpoint") {
    all.emplace_back().name = "new", all.back().subnet = {1, 3};
    met.check_refused(std::move(all), "device new: a router's device must listen");
  }
  SECTION("a new one on the subnet of another") {
    all.push_back(met.device("new", {1, 1}));
    met.check_refused(std::move(all), "already");
  }
  SECTION("a new one of another AS") {
    all.push_back(met.device("new", {2, 3}));
    met.check_refused(std::move(all), "one AS");
  }
  SECTION("two new ones on one subnet") {
    all.push_back(met.device("new", {1, 3}));
    all.push_back(met.device("newer", {1, 4}));
    all.push_back(met.device("newest", {1, 3}));
    met.check_refused(std::move(all), "devices new and newest are on one subnet");
  }
  SECTION("more than there may be") {
    for (uint32_t i = 2; i < devices_max + 1; ++i) all.push_back(met.device("new" + std::to_string(i), {1, 10 + i}));
    met.check_refused(std::move(all), "at most 16 devices");
  }
  met.wake();
  met.world.run_for(milliseconds(50));
  CHECK(met.own(asker) == before);
  CHECK(met.router->devices().size() == 2);
}

TEST_CASE("router_reconfigure__as_many_new_devices_as_there_may_be__listen_and_are_told") {
  Running met;
  RawPeer asker(met.world, met.fabric, "lan", "10.0.0.9");
  auto all = Running::settings();
  for (uint32_t i = 2; i < devices_max; ++i) all.push_back(met.device("new" + std::to_string(i), {1, 10 + i}));
  std::swap(all[1], all[5]);  // in any order
  RawPeer neighbour(met.world, met.fabric, "new7", "10.0.0.66");
  neighbour.accepts = true;
  for (RouterDevice& each : all) {
    if (each.name == "new7") each.peers = {"sim://10.0.0.66:7000"};
  }
  met.take(std::move(all));
  CHECK(met.router->devices().size() == devices_max);
  const RouterRecord own = met.own(asker);
  REQUIRE(own.devices.size() == devices_max);
  CHECK(own.devices[0].subnet == SubnetId{1, 1});
  CHECK(own.devices[1].subnet == SubnetId{1, wan});
  CHECK(neighbour.requests.size() == 1);  // and its peers are dialled
  CHECK(asker.connect("sim://10.0.0.5:7000", ports::Role::admin));
  RawPeer there(met.world, met.fabric, "new3", "10.0.0.9");
  CHECK(there.ask("sim://10.0.0.5:7000"));
}

TEST_CASE("router_reconfigure__what_a_device_is_said_to_be__is_told_at_once") {
  Running met;
  RawPeer asker(met.world, met.fabric, "lan", "10.0.0.9");
  const RouterRecord before = met.own(asker);
  auto all = Running::settings();
  all[0].rate_bits_per_s = 7'000'000'000;
  all[0].capabilities = 3;
  all[0].transit = false;
  all[1].wan_to = {4, 5};
  met.take(std::move(all));
  const RouterRecord own = met.own(asker);
  CHECK(own.instance == before.instance + 1);
  CHECK(own.devices[0].rate_bits_per_s == 7'000'000'000);
  CHECK(own.devices[0].capabilities == 3);
  CHECK_FALSE(own.devices[0].transit);
  CHECK(own.devices[1].wan);
  CHECK(own.devices[1].wan_to == std::vector<uint32_t>{4, 5});
  auto no_wan = Running::settings();
  no_wan[1].wan = false;
  met.take(std::move(no_wan));
  CHECK_FALSE(met.own(asker).devices[1].wan);
}

TEST_CASE("router_reconfigure__peers__new_dialled_dropped_not_others_keep_their_link") {
  Running met;
  RawPeer old(met.world, met.fabric, "lan", "10.0.0.66"), fresh(met.world, met.fabric, "lan", "10.0.0.67");
  RawPeer guest(met.world, met.fabric, "lan", "10.0.0.68");
  old.accepts = fresh.accepts = true;
  REQUIRE(met.run([&] { return old.answered; }));
  met.greet_back(old, 66, {1, 1});
  REQUIRE(old.tell({66, 1, false, {{{1, 1}, 1, 0, true, false, {}, old.endpoint->uri(), 0}}}));
  REQUIRE(met.router->ready());
  REQUIRE(guest.greet("sim://10.0.0.5:7000", 68, {1, 1}));
  REQUIRE(met.router->links_open() == 2);
  auto both = Running::settings();
  both[0].peers = {"sim://10.0.0.67:7000", "sim://10.0.0.66:7000", "sim://10.0.0.67:7000"};
  met.take(std::move(both));
  CHECK(met.router->ready());       // that was told long ago
  CHECK(old.requests.size() == 1);  // it is linked already
  CHECK_FALSE(old.gone);
  CHECK(fresh.requests.size() == 1);  // though it is named twice
  met.greet_back(fresh, 67, {1, 1});
  CHECK(met.router->links_open() == 3);
  // The same address on another device is another peer.
  auto moved = Running::settings();
  moved[0].peers = {"sim://10.0.0.67:7000"};
  moved[1].peers = {"sim://10.0.0.66:7000"};
  met.take(std::move(moved));
  CHECK(old.gone);
  CHECK_FALSE(fresh.gone);
  CHECK_FALSE(guest.gone);  // who dialled us stays
  CHECK(met.router->links_open() == 2);
  met.world.run_for(seconds(20));
  CHECK(old.requests.size() == 1);
  auto none = Running::settings();
  met.take(std::move(none));
  CHECK(fresh.gone);
  const size_t asked = fresh.requests.size();
  met.world.run_for(seconds(20));
  CHECK(fresh.requests.size() == asked);
  CHECK(met.router->links_open() == 1);
}

TEST_CASE("router_reconfigure__a_peer_that_never_answered_is_dropped__it_is_left_alone") {
  Running met;
  RawPeer old(met.world, met.fabric, "lan", "10.0.0.66");
  met.world.run_for(seconds(1));
  REQUIRE(old.requests.size() > 1);
  met.take(Running::settings());
  const size_t asked = old.requests.size();
  met.world.run_for(seconds(20));
  CHECK(old.requests.size() == asked);
}

TEST_CASE("router_reconfigure__whom_a_wan_device_no_longer_lets_in__is_closed_others_stay") {
  Running met;
  RawPeer four(met.world, met.fabric, "wan", "10.0.0.4"), five(met.world, met.fabric, "wan", "10.0.0.3");
  RawPeer inner(met.world, met.fabric, "wan", "10.0.0.2");
  REQUIRE(four.greet("sim://10.0.0.5:7000", 4, {4, wan}));
  REQUIRE(five.greet("sim://10.0.0.5:7000", 5, {5, wan}));
  REQUIRE(inner.greet("sim://10.0.0.5:7000", 1, {1, wan}));
  REQUIRE(met.router->links_open() == 3);
  auto all = Running::settings();
  SECTION("all are served as before") {
    met.take(std::move(all));
    CHECK(met.router->links_open() == 3);
  }
  SECTION("one AS") {
    all[1].wan_to = {5};
    met.take(std::move(all));
    CHECK(four.gone);
    CHECK_FALSE(five.gone);
    CHECK_FALSE(inner.gone);  // it is of this AS
  }
  SECTION("no WAN any more") {
    all[1].wan = false;
    met.take(std::move(all));
    CHECK(four.gone);
    CHECK(five.gone);
    CHECK_FALSE(inner.gone);
  }
}
