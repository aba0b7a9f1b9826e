// Links between routers: who is dialled and when again, which of two is kept, how many there may be.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "core/base/log.h"
#include "routing/router/peer_links.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* router_uri = "sim://10.0.0.5:7000";

RouterOptions small() {
  RouterOptions options;
  options.fragment_bytes = 64u << 10;
  options.memory_bytes = 16u * (64u << 10);
  return options;
}

// A router between two networks, told of peers on the left one.
struct Linked {
  explicit Linked(std::vector<std::string> peers = {})
      : node(world, fabric, "router", {{"left", "10.0.0.5", {1, 1}, std::move(peers)}, {"right", "10.3.0.1", {1, 3}, {}}},
             small()) {}
  bool run(const std::function<bool()>& done, Duration at_most = seconds(5)) {
    return world.run_until(done, after(world.now(), at_most)) == sim::RunEnd::reached || done();
  }
  [[nodiscard]] size_t open() const { return node.router->links_open(); }
  // As whoever was dialled, or dialled: it says who it is.
  void say_hello(RawPeer& peer, uint64_t id, const std::string& uri = {}) {
    peer.say(RouterHello{id, {1, 1}, uri.empty() ? peer.endpoint->uri() : uri});
    world.run_for(milliseconds(20));
  }
  void dial(RawPeer& peer, uint64_t id, const std::string& uri = {}) {
    REQUIRE(peer.connect(router_uri, ports::Role::router));
    say_hello(peer, id, uri);
  }
  void hang_up(RawPeer& peer, cci::Connection connection) {
    peer.endpoint->disconnect(connection);
    peer.wake();
    world.run_for(milliseconds(20));
  }

  sim::World world{2};
  sim::Fabric fabric{world, {}};
  RouterNode node;
};

std::vector<Duration> gaps(const std::vector<Instant>& times) {
  std::vector<Duration> found;
  for (size_t i = 1; i < times.size(); ++i) found.push_back(times[i] - times[i - 1]);
  return found;
}

bool is_about(Duration measured, Duration expected) {
  return measured >= expected - milliseconds(20) && measured <= expected + milliseconds(20);
}

}  // namespace

TEST_CASE("router_links__a_peer_that_refuses__is_dialled_again_at_growing_intervals") {
  Linked met({"sim://10.0.0.66:7000"});
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.world.run_for(seconds(40));
  REQUIRE(peer.requests.size() >= 8);
  const std::vector<Duration> between = gaps(peer.requests);
  Duration expected = redial_first;
  for (const Duration gap : between) {
    CAPTURE(gap.count(), expected.count());
    CHECK(is_about(gap, expected));
    expected = std::min<Duration>(2 * expected, redial_max);
  }
  CHECK(met.node.router->ready());  // it was tried
}

TEST_CASE("router_links__a_peer_whose_address_is_none__is_passed_over") {
  Linked met({"not an address", "sim://10.0.0.66:7000"});
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  peer.accepts = true;
  REQUIRE(met.run([&] { return peer.answered; }));
  met.say_hello(peer, 66);
  CHECK(met.open() == 1);
  CHECK_FALSE(met.node.router->ready());  // until its first record has come
  REQUIRE(peer.tell({66, 1, false, {{{1, 1}, 1, 0, true, false, {}, peer.endpoint->uri(), 0}}}));
  CHECK(met.node.router->ready());
}

TEST_CASE("router_links__a_link_that_was_lost__dialled_at_once_only_if_it_had_lasted") {
  const bool lasted = GENERATE(true, false);
  Linked met({"sim://10.0.0.66:7000"});
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.world.run_for(seconds(20));  // refused often enough for the longest interval
  peer.accepts = true;
  peer.answered = false;
  REQUIRE(met.run([&] { return peer.answered; }, seconds(6)));
  met.say_hello(peer, 66);
  REQUIRE(met.open() == 1);
  met.world.run_for(redial_max - milliseconds(lasted ? 10 : 200));
  const Instant ended = met.world.now();
  peer.requests.clear();
  peer.accepts = false;
  met.hang_up(peer, peer.connection);
  CHECK(met.open() == 0);
  met.world.run_for(seconds(8));
  REQUIRE(peer.requests.size() > 1);
  CHECK(is_about(peer.requests[0] - ended, redial_first));
  const Duration second = gaps(peer.requests)[0];
  CHECK(is_about(second, lasted ? redial_first : redial_max));
}

TEST_CASE("router_links__a_peer_that_is_this_router_itself__is_not_dialled_again") {
  Linked met({"sim://10.0.0.66:7000"});
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  peer.accepts = true;
  REQUIRE(met.run([&] { return peer.last(MessageKind::router_hello).has_value(); }));
  const auto hello = decode_router_hello(*peer.last(MessageKind::router_hello));
  REQUIRE(hello);
  CHECK(hello->uri == router_uri);
  CHECK(hello->subnet == SubnetId{1, 1});
  met.say_hello(peer, hello->router);
  CHECK(peer.gone);
  CHECK(met.open() == 0);
  CHECK(met.node.router->ready());
  met.world.run_for(seconds(30));
  CHECK(peer.requests.size() == 1);
}

TEST_CASE("router_links__dialled_by_both_sides__the_lower_addresss_link_is_kept") {
  const bool peer_is_lower = GENERATE(true, false), peers_own_first = GENERATE(true, false);
  CAPTURE(peer_is_lower, peers_own_first);
  const std::string address = peer_is_lower ? "10.0.0.2" : "10.0.0.66";
  Linked met({"sim://" + address + ":7000"});
  RawPeer peer(met.world, met.fabric, "left", address);
  peer.accepts = true;
  REQUIRE(met.run([&] { return peer.answered; }));
  const cci::Connection by_router = peer.connection;
  REQUIRE(peer.connect(router_uri, ports::Role::router));
  const cci::Connection by_peer = peer.connection;
  for (const bool own : {peers_own_first, !peers_own_first}) {
    peer.connection = own ? by_peer : by_router;
    met.say_hello(peer, 66);
  }
  CHECK(met.open() == 1);
  CHECK(peer.gone);
  CHECK(peer.lost == (peer_is_lower ? by_router : by_peer));
  // It serves for the one that is configured: nobody dials anew.
  met.world.run_for(seconds(10));
  CHECK(met.open() == 1);
  CHECK(peer.requests.size() == 1);
  peer.gone = false;
  met.hang_up(peer, peer_is_lower ? by_peer : by_router);
  met.world.run_for(seconds(1));
  CHECK(peer.requests.size() > 1);
}

TEST_CASE("router_links__a_second_link_to_one_of_two_peers__the_other_is_dialled_when_lost") {
  Linked met({"sim://10.0.0.2:7000", "sim://10.0.0.3:7000"});
  RawPeer twice(met.world, met.fabric, "left", "10.0.0.2"), once(met.world, met.fabric, "left", "10.0.0.3");
  uint64_t id = 60;
  for (RawPeer* peer : {&twice, &once}) {
    peer->accepts = true;
    peer->answered = false;
  }
  REQUIRE(met.run([&] { return twice.answered && once.answered; }));
  for (RawPeer* peer : {&twice, &once}) met.say_hello(*peer, ++id);
  REQUIRE(met.open() == 2);
  met.dial(twice, 61);  // and that one is kept: it has the lower address
  REQUIRE(met.open() == 2);
  const size_t asked = once.requests.size(), asked_twice = twice.requests.size();
  met.hang_up(once, once.connection);
  met.world.run_for(seconds(1));
  CHECK(once.requests.size() > asked);
  CHECK(twice.requests.size() == asked_twice);
  once.accepts = false;
  met.hang_up(twice, twice.connection);  // the link that took the place of the first
  met.world.run_for(seconds(6));
  CHECK(twice.requests.size() > asked_twice);
}

TEST_CASE("router_links__two_by_the_same_dialler__the_newer_is_kept") {
  Linked met;
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  met.dial(peer, 66);
  const cci::Connection first = peer.connection;
  met.dial(peer, 66);
  CHECK(met.open() == 1);
  CHECK(peer.gone);
  CHECK(peer.lost == first);
  met.dial(peer, 67);
  CHECK(met.open() == 2);
  CHECK_FALSE(peer.gone);
  // And one that says that it is the same from another node.
  RawPeer other(met.world, met.fabric, "left", "10.0.0.67");
  met.dial(other, 66);
  CHECK(met.open() == 3);
}

TEST_CASE("router_links__as_many_as_there_may_be__more_are_refused_until_some_have_left") {
  Linked met;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (size_t i = 0; i < links_max; ++i) {
    if (i % links_of_peer_max == 0)
      peers.push_back(std::make_unique<RawPeer>(met.world, met.fabric, "left", "10.0.1." + std::to_string(peers.size() + 1)));
    REQUIRE(peers.back()->connect(router_uri, ports::Role::router));
  }
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  CHECK_FALSE(peer.connect(router_uri, ports::Role::router));
  CHECK(peer.words.find("too many peers") != std::string::npos);
  met.hang_up(*peers[0], peers[0]->connection);
  CHECK(peer.connect(router_uri, ports::Role::router));
  CHECK_FALSE(peer.connect(router_uri, ports::Role::router));
  // Who says nothing does not stay.
  const uint64_t counted = met.node.counters.get(Counter::routed_rejected);
  met.world.run_for(link_hello_timeout);
  CHECK(met.node.counters.get(Counter::routed_rejected) == counted + links_max);
  CHECK(peer.connect(router_uri, ports::Role::router));
}

TEST_CASE("router_links__one_peer_under_many_numbers__others_find_a_place_and_the_log_has_a_line") {
  Linked met;
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });
  RawPeer many(met.world, met.fabric, "left", "10.0.0.66"), other(met.world, met.fabric, "left", "10.0.0.67");
  for (uint64_t i = 0; i < links_of_peer_max; ++i) met.dial(many, 100 + i);
  CHECK(met.open() == links_of_peer_max);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(many.connect(router_uri, ports::Role::router));
  CHECK(many.words.find("too many links of one peer") != std::string::npos);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("10.0.0.66 on device") != std::string::npos);
  met.dial(other, 67);
  CHECK(met.open() == links_of_peer_max + 1);
}

// Whatever other AS do, our own routers find a place.
TEST_CASE("router_links__peers_over_the_wan__have_half_of_the_places") {
  sim::World world{2};
  sim::Fabric fabric{world, {}};
  RouterNode node(world, fabric, "router", {{"left", "10.0.0.5", {1, 1}, {}}, {"wan", "192.0.2.1", {1, 9}, {}, true}}, small());
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (size_t i = 0; i <= external_links_max; ++i) {
    if (i % links_of_peer_max == 0)
      peers.push_back(std::make_unique<RawPeer>(world, fabric, "wan", "192.0.2." + std::to_string(peers.size() + 10)));
    CHECK(peers.back()->connect("sim://192.0.2.1:7000", ports::Role::router) == (i < external_links_max));
  }
  CHECK(peers.back()->words.find("too many peers over WAN devices") != std::string::npos);
  RawPeer ours(world, fabric, "left", "10.0.0.66");
  CHECK(ours.connect(router_uri, ports::Role::router));
}

// They stand still and take nothing of the map, which is large, and of what is told anew.
TEST_CASE("router_links__peers_that_take_nothing__what_waits_for_them_is_bounded") {
  Linked met;
  RawPeer teller(met.world, met.fabric, "left", "10.0.0.66");
  met.dial(teller, 66);
  constexpr uint64_t routers = 2000;
  const std::string uri = "sim://" + std::string(uri_bytes_max - 11, '9') + ":7000";
  for (uint64_t id = 100; id < 100 + routers; ++id) {
    RouterRecord record{id, 1, false, {}};
    for (uint32_t subnet = 0; subnet < 4; ++subnet)
      record.devices.push_back({{1, 50 + subnet}, 1'000'000'000, 0, true, false, {}, uri, 0});
    REQUIRE(teller.tell(record));
  }
  REQUIRE(met.node.router->routers_known() == routers + 1);
  std::vector<std::unique_ptr<RawPeer>> still;
  size_t waits_most = 0;
  for (size_t i = 0; i < 40; ++i) {
    still.push_back(std::make_unique<RawPeer>(met.world, met.fabric, "left", "10.0.1." + std::to_string(i + 1)));
    REQUIRE(still.back()->connect(router_uri, ports::Role::router));
    still.back()->say(RouterHello{5000 + i, {1, 1}, still.back()->endpoint->uri()});
    met.world.run_for(std::chrono::microseconds(100));
    still.back()->freeze(true);
    met.world.run_for(milliseconds(50));
    waits_most = std::max(waits_most, met.node.router->links_out_bytes());
  }
  CHECK(waits_most > links_out_bytes_max / 2);
  CHECK(waits_most <= links_out_bytes_max);
}

TEST_CASE("router_links__a_router_that_stops__refuses_with_its_reason_and_dials_nobody") {
  Linked met({"sim://10.0.0.66:7000"});
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66"), other(met.world, met.fabric, "left", "10.0.0.67");
  met.world.run_for(seconds(1));
  met.node.router->drain();
  met.world.wake(met.node.node);
  met.world.run_for(milliseconds(20));
  const size_t asked = peer.requests.size();
  CHECK_FALSE(other.connect(router_uri, ports::Role::router));
  CHECK(other.words.find("draining") != std::string::npos);
  CHECK_FALSE(other.connect(router_uri, ports::Role::hop));
  CHECK(other.words.find("draining") != std::string::npos);
  met.world.run_for(drain_timeout - seconds(1));
  CHECK(peer.requests.size() == asked);
}

TEST_CASE("router_links__a_hello_that_is_none__counted_and_closed") {
  Linked met;
  RawPeer peer(met.world, met.fabric, "left", "10.0.0.66");
  REQUIRE(peer.connect(router_uri, ports::Role::router));
  peer.send({static_cast<std::byte>(MessageKind::router_hello), {}, {}, {}, std::byte{1}});
  REQUIRE(met.run([&] { return peer.gone; }));
  CHECK(met.node.counters.get(Counter::routed_rejected) == 1);
}

TEST_CASE("router_links__a_peer_goes_silent__lost_after_the_keepalive_others_are_not") {
  Linked met;
  RawPeer silent(met.world, met.fabric, "left", "10.0.0.66"), good(met.world, met.fabric, "left", "10.0.0.67");
  met.dial(silent, 66);
  met.dial(good, 67);
  REQUIRE(met.open() == 2);
  silent.freeze(true);
  met.world.run_for(3 * link_keepalive);
  CHECK(met.open() == 2);
  met.world.run_for(2 * link_keepalive);
  CHECK(met.open() == 1);
  CHECK_FALSE(good.gone);
}
