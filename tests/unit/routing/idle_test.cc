// What a call begins counts from the call on, however long ago the last turn was.
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("routed_idle__a_request_accepted_long_after_the_last_turn__has_its_whole_time") {
  Site site;
  ports::TransportOptions patient;
  patient.keepalive = Duration{0};
  App app(site.world, site.fabric, "lan1", "10.0.0.2", {1, 1}, {});
  app.answer = App::Answer::none;
  RawPeer hop(site.world, site.fabric, "lan1", "10.0.0.1", patient);
  REQUIRE(hop.connect("sim://10.0.0.2:7000", ports::Role::hop));
  REQUIRE(hop.say(RawPeer::usual_request(app.uri())) == Status::success);
  REQUIRE(site.run([&] { return app.count(EventType::connect_request) > 0; }));
  std::optional<cci::Event> request = app.take(EventType::connect_request);
  site.world.remove_actor(app.node, &app);
  site.world.run_for(seconds(60));
  REQUIRE(app.endpoint->accept(*request, 5) == Status::success);
  request.reset();
  site.world.add_actor(app.node, &app);
  app.wake();
  REQUIRE(site.run([&] { return hop.last(MessageKind::connect_reply).has_value(); }));
  REQUIRE(hop.say_plain(MessageKind::connect_ack) == Status::success);
  REQUIRE(site.run([&] { return app.count(EventType::accept) > 0; }));
  CHECK(app.take(EventType::accept)->status == Status::success);
  CHECK_FALSE(hop.gone);
}
