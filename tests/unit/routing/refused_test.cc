// Why a connection did not come about at a router is counted by reason, once.
#include "routing/transport/messages.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::seconds;

namespace {

constexpr const char* router = "sim://10.0.0.1:7000";

struct Counted {
  Site site;
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();

  explicit Counted(size_t routers = 1) {
    site.options.traffic = traffic;
    site.chain(routers);
  }
  // As end of a routed connection: false, nobody heard of it.
  bool ask(const ConnectRequest& request) {
    RawPeer peer(site.world, site.fabric, "lan1", "10.0.0.66");
    if (!peer.connect(router, ports::Role::hop) || peer.say(request) != Status::success) return false;
    return peer.run([&] { return peer.last(MessageKind::connect_reply).has_value() || peer.gone; }, seconds(30));
  }
  // This reason, so often, and no other one.
  void is(RefusedAs why, uint64_t times = 1) const {
    for (size_t i = 0; i < static_cast<size_t>(RefusedAs::count_); ++i) {
      const auto one = static_cast<RefusedAs>(i);
      INFO(to_string(one));
      CHECK(traffic->refused(one) == (one == why ? times : 0));
    }
  }
};

}  // namespace

TEST_CASE("router_refused__a_connection_comes_about__nothing_is_counted") {
  Counted counted;
  counted.site.connect(*counted.site.left, *counted.site.right);
  counted.is(RefusedAs::count_);
}

TEST_CASE("router_refused__no_way_to_the_subnet__is_counted_as_that") {
  Counted counted;
  REQUIRE(counted.ask(RawPeer::usual_request("cci://1:77:10.0.0.2:7000")));
  counted.is(RefusedAs::no_way);
}

// Somebody who may route must not reach what a router's host has for itself.
TEST_CASE("router_refused__an_address_of_the_routers_own_host__is_not_dialled") {
  const std::string node = GENERATE(as<std::string>{}, "127.0.0.7", "localhost", "0.0.0.0", "[::1]", "127.1");
  Counted counted;
  RawPeer peer(counted.site.world, counted.site.fabric, "lan1", "10.0.0.66");
  REQUIRE(peer.connect(router, ports::Role::hop));
  peer.say(RawPeer::usual_request("cci://1:2:" + node + ":7000"));
  REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_reply).has_value(); }, seconds(30)));
  const auto reply = decode_connect_reply(*peer.last(MessageKind::connect_reply));
  REQUIRE(reply);
  CHECK(reply->status == Status::unreachable);
  INFO(reply->reason);
  CHECK(reply->reason.find("is no address of subnet 1:2") != std::string::npos);
  counted.is(RefusedAs::no_answer);
}

TEST_CASE("router_refused__the_routers_own_address_in_other_words__is_still_its_own") {
  Counted counted;
  REQUIRE(counted.ask(RawPeer::usual_request("cci://1:1:10.0.0.1:07000")));
  counted.is(RefusedAs::not_permitted);
}

TEST_CASE("router_refused__the_router_behind_is_dead__there_is_no_way") {
  Counted counted(2);
  counted.site.kill(1);
  REQUIRE(counted.ask(RawPeer::usual_request(counted.site.right->uri())));
  counted.is(RefusedAs::no_way);
}

TEST_CASE("router_refused__crossed_too_many_routers__is_counted_as_that") {
  Counted counted;
  ConnectRequest request = RawPeer::usual_request(counted.site.right->uri());
  request.crossed = hops_max;
  REQUIRE(counted.ask(request));
  counted.is(RefusedAs::too_far);
}

TEST_CASE("router_refused__claims_another_subnet__is_not_permitted") {
  Counted counted;
  ConnectRequest request = RawPeer::usual_request(counted.site.right->uri());
  request.source = {1, 2};
  REQUIRE(counted.ask(request));
  counted.is(RefusedAs::not_permitted);
}

TEST_CASE("router_refused__an_application_takes_it_for_its_peer__is_not_permitted") {
  Counted counted;
  RawPeer peer(counted.site.world, counted.site.fabric, "lan1", "10.0.0.66");
  CHECK_FALSE(peer.connect(router, ports::Role::application));
  counted.is(RefusedAs::not_permitted);
}

TEST_CASE("router_refused__the_destination_refuses__is_counted_as_beyond_by_each_router") {
  Counted counted(2);
  counted.site.right->answer = App::Answer::reject;
  CHECK(counted.site.connect_event(*counted.site.left, counted.site.right->uri()).status == Status::refused);
  counted.is(RefusedAs::beyond, 2);
}

TEST_CASE("router_refused__the_destination_is_silent__is_no_answer") {
  Counted counted;
  counted.site.right->answer = App::Answer::none;
  ConnectRequest request = RawPeer::usual_request(counted.site.right->uri());
  request.timeout = seconds(2);
  REQUIRE(counted.ask(request));
  counted.is(RefusedAs::no_answer);
}

TEST_CASE("router_refused__it_stops__is_counted_as_draining") {
  Counted counted;
  counted.site.right->answer = App::Answer::none;
  REQUIRE(counted.site.left->endpoint->connect(counted.site.right->uri(), {}));
  counted.site.left->wake();
  REQUIRE(counted.site.run([&] { return counted.site.right->count(cci::EventType::connect_request) > 0; }));
  counted.site.routers[0]->router->drain();
  counted.site.world.wake(counted.site.routers[0]->node);
  REQUIRE(counted.site.run([&] { return counted.site.left->count(cci::EventType::connect) > 0; }));
  counted.is(RefusedAs::draining);
}

TEST_CASE("router_refused__what_is_said_makes_no_sense__is_malformed_and_not_after_it_is_open") {
  const bool opened = GENERATE(false, true);
  Counted counted;
  RawPeer peer(counted.site.world, counted.site.fabric, "lan1", "10.0.0.66");
  if (opened) {
    REQUIRE(peer.open(router, counted.site.right->uri()));
  } else {
    REQUIRE(peer.connect(router, ports::Role::hop));
  }
  peer.send({std::byte{0xff}, std::byte{0xff}, std::byte{0xff}});
  REQUIRE(peer.run([&] { return peer.gone; }, seconds(30)));
  counted.is(RefusedAs::malformed, opened ? 0 : 1);
}
