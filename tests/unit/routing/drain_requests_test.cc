// A router that stops, and hops that have connected and said nothing yet.
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("router_drain__a_request_behind_the_beginning__is_answered_with_its_devices_name") {
  Site site;
  site.add_router("r", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"lan2", "10.0.0.3", {1, 2}, {}}});
  site.settle();
  const bool right = GENERATE(false, true);
  RawPeer peer(site.world, site.fabric, right ? "lan2" : "lan1", "10.0.0.66");
  REQUIRE(peer.connect(right ? "sim://10.0.0.3:7000" : "sim://10.0.0.1:7000", ports::Role::hop));
  const uint64_t refused = site.routers[0]->counters.get(Counter::connections_refused);
  site.routers[0]->router->drain();
  site.world.wake(site.routers[0]->node);
  site.world.run_for(milliseconds(50));
  CHECK(peer.received.empty());  // nothing is open that would have to move
  CHECK_FALSE(peer.gone);
  CHECK_FALSE(site.routers[0]->router->drained());
  REQUIRE(peer.say(RawPeer::usual_request(right ? "cci://1:1:10.0.0.2:7000" : "cci://1:2:10.0.0.2:7000")) == Status::success);
  REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_reply).has_value(); }, seconds(1)));
  const auto reply = decode_connect_reply(*peer.last(MessageKind::connect_reply));
  REQUIRE(reply);
  CHECK(reply->status == Status::no_route);
  CHECK(reply->reason == "router " + site.routers[0]->router->devices().at(right ? 1 : 0).second + " stops");
  // Who comes only now is not even accepted.
  RawPeer late(site.world, site.fabric, "lan1", "10.0.0.67");
  CHECK_FALSE(late.connect("sim://10.0.0.1:7000", ports::Role::hop));
  CHECK(late.words.find("draining") != std::string::npos);
  CHECK(site.routers[0]->counters.get(Counter::connections_refused) > refused);
  CHECK(site.run([&] { return site.routers[0]->router->drained(); }, drain_timeout + drain_flush_timeout + seconds(1)));
}
