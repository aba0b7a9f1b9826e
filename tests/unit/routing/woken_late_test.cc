// A routing endpoint whose process was stopped, as by a signal or the lid of a laptop, and goes on.
#include <catch2/catch.hpp>

#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

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

TEST_CASE("routed_end__stopped_for_longer_than_its_keepalives__asks_before_it_gives_up") {
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

// All answers to its first operation are there at once: it has ended before its next piece would have had its turn.
TEST_CASE("routed_end__stopped_while_an_operation_fails__its_waiting_pieces_never_go") {
  constexpr uint32_t piece = 16u << 10;
  sim::World world{7};
  sim::Fabric fabric{world, {}};
  RawPeer peer(world, fabric, "lan", "10.0.0.66");
  App app(world, fabric, "lan", "10.0.0.2", {1, 1}, {"sim://10.0.0.66:7000"});
  peer.accepts = true;
  const auto connection = app.endpoint->connect("cci://1:2:10.0.0.9:7000", {});
  REQUIRE(connection);
  app.wake();
  REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_request).has_value(); }, seconds(5)));
  peer.say(ConnectReply{Status::success, {}, 1392, piece, {}, 0});
  REQUIRE(peer.run([&] { return app.count(EventType::connect) > 0 && peer.last(MessageKind::connect_ack); }, seconds(5)));
  app.events.clear();
  peer.received.clear();
  std::vector<std::byte> memory(40 * size_t{piece});
  cci::RmaOptions rma;
  rma.local = app.memory->register_region(Bytes(memory));
  rma.remote.handle = {ports::HandleKind::region, 1, 2, 3};
  rma.length_bytes = memory.size();
  for (const uint64_t context : {1u, 2u}) {
    rma.context = context;
    REQUIRE(app.endpoint->rma(*connection, rma) == Status::success);
  }
  app.wake();
  const auto asked = [&] {
    world.run_for(milliseconds(50));
    std::vector<uint64_t> cookies;
    for (const auto& each : peer.received) {
      if (kind_of(Bytes(each)) == MessageKind::write_request) cookies.push_back(decode_fragment(Bytes(each))->cookie);
    }
    peer.received.clear();
    return cookies;
  };
  const auto first = asked();
  REQUIRE(first.size() == 64);  // in turns: every other one is of the first operation
  world.remove_actor(app.node, &app);
  for (size_t i = 0; i < first.size(); i += 2) {
    REQUIRE(peer.say(FragmentAck{first[i], i == 0 ? Status::rma_op : Status::success}) == Status::success);
  }
  world.run_for(milliseconds(50));
  world.add_actor(app.node, &app);
  app.wake();
  const auto rest = asked();
  CHECK(rest.size() == 8);  // of the second operation
  REQUIRE(app.count(EventType::send) == 1);
  const auto failed = app.take(EventType::send);
  CHECK(failed->context == 1);
  CHECK(failed->status == Status::rma_op);
  for (size_t i = 1; i < first.size(); i += 2) peer.say(FragmentAck{first[i], Status::success});
  for (const uint64_t cookie : rest) peer.say(FragmentAck{cookie, Status::success});
  CHECK(asked().empty());
  REQUIRE(app.count(EventType::send) == 1);
  const auto ended = app.take(EventType::send);
  CHECK(ended->context == 2);
  CHECK(ended->status == Status::success);
  CHECK(app.counters.get(Counter::routed_rejected) == 0);
}
