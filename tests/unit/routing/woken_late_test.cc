// A routing endpoint whose process was stopped, as by a signal or the lid of a laptop, and goes on.
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

#undef CHECK
#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

ports::TransportOptions without_keepalive() {
  ports::TransportOptions options;
  options.keepalive = Duration{0};
  return options;
}

}  // namespace

TEST_CASE("routed_end__stopped_for_longer_than_its_keepalives__asks_and_waits_for_the_answer_before_it_gives_up") {
  const bool answers = GENERATE(true, false);
  sim::World world{7};
  sim::Fabric fabric{world, {}};
  RawPeer peer(world, fabric, "lan", "10.0.0.66", without_keepalive());
  App app(world, fabric, "lan", "10.0.0.2", {1, 1}, {"sim://10.0.0.66:7000"});
  peer.accepts = true;
  REQUIRE(app.endpoint->connect("cci://1:2:10.0.0.9:7000", {}));
  app.wake();
  REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_request).has_value(); }, seconds(5)));
  peer.say(ConnectReply{Status::success, {}, 1392, 64u << 10, {}, 0});
  REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_ack).has_value(); }, seconds(5)));
  app.events.clear();
  peer.received.clear();
  const auto probes = [&] {
    size_t count = 0;
    for (const auto& each : peer.received) count += kind_of(Bytes(each)) == MessageKind::keepalive ? 1u : 0u;
    return count;
  };
  const Duration keepalive = RoutedOptions{}.keepalive;
  const auto pass = [&](Duration time) {
    world.at(after(world.now(), time), [] {});  // the world stands still while nobody has anything to do
    world.run_for(time);
  };
  world.remove_actor(app.node, &app);
  pass(10 * keepalive);
  world.add_actor(app.node, &app);
  app.wake();
  world.run_for(milliseconds(100));
  CHECK(probes() == 1);
  CHECK(app.count(EventType::disconnected) == 0);
  if (answers) peer.say_plain(MessageKind::keepalive_ack);
  // Then it goes on as with anybody who falls silent: the answer, or the first question, is what the time counts from.
  for (size_t asked = answers ? 0 : 1; asked < 3; ++asked) {
    peer.received.clear();
    pass(keepalive - milliseconds(200));
    CHECK(probes() == 0);
    pass(milliseconds(300));
    CHECK(probes() == 1);
    CHECK(app.count(EventType::disconnected) == 0);
  }
  pass(keepalive);
  CHECK(app.count(EventType::disconnected) == 1);
}
