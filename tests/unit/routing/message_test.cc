// Messages over routed connections, both ways: order, acknowledgement, back-pressure, keepalive, the end.
#include "core/wire/cursor.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

std::vector<std::byte> numbered(uint64_t number, size_t bytes) {
  std::vector<std::byte> message;
  wire::Writer out(message);
  out.u64(number);
  message.resize(std::max<size_t>(bytes, 8), std::byte{0x5a});
  return message;
}
uint64_t number_of(Bytes message) { return wire::Reader(message).u64(); }

}  // namespace

TEST_CASE("routed_message__both_ways__delivered_in_order_and_acknowledged_in_order") {
  const size_t routers = GENERATE(1u, 2u, 3u);
  Site site(routers);
  site.chain(routers);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const cci::Connection back = site.right->accepted;
  struct Flow {
    App* from;
    App* to;
    cci::Connection connection;
    uint64_t sent = 0, acknowledged = 0, received = 0;
  };
  Flow flows[2] = {{site.left.get(), site.right.get(), connection}, {site.right.get(), site.left.get(), back}};
  constexpr uint64_t count = 400;
  const bool done = site.run([&] {
    bool all = true;
    for (Flow& flow : flows) {
      while (flow.sent < count) {
        const auto message = numbered(flow.sent, flow.sent * 7 % 1000);
        const Status status = flow.from->endpoint->send(flow.connection, Bytes(message), flow.sent);
        if (status == Status::no_buffers) break;
        REQUIRE(status == Status::success);
        ++flow.sent;
        flow.from->wake();
      }
      while (auto event = flow.from->take(EventType::send)) {
        CHECK(event->status == Status::success);
        CHECK(event->context == flow.acknowledged++);
      }
      while (auto event = flow.to->take(EventType::receive)) {
        CHECK(reinterpret_cast<uintptr_t>(event->data().data()) % 8 == 0);
        CHECK(event->data().size() == std::max<size_t>(flow.received * 7 % 1000, 8));
        CHECK(number_of(event->data()) == flow.received++);
      }
      all = all && flow.received == count && flow.acknowledged == count;
    }
    return all;
  });
  CHECK(done);
  for (const auto& router : site.routers) CHECK(router->counters.get(Counter::routed_messages) == 2 * count);
}

TEST_CASE("routed_message__zero_length_and_largest__pass_and_larger_does_not") {
  Site site;
  site.chain(2);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  CHECK(site.send(*site.left, connection, "") == Status::success);
  CHECK(site.right->take(EventType::receive)->data().empty());
  const std::string largest(site.left->endpoint->max_send_bytes(connection), 'x');
  CHECK(site.send(*site.left, connection, largest) == Status::success);
  CHECK(as_text(site.right->take(EventType::receive)->data()) == largest);
  CHECK(site.left->endpoint->send(connection, as_bytes(largest + "y"), 0) == Status::message_size);
}

TEST_CASE("routed_message__receiver_without_buffers__is_held_back_and_nothing_is_lost") {
  Site site;
  site.add_router("r", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"lan2", "10.0.0.1", {1, 2}, {}}});
  site.left = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.2", SubnetId{1, 1},
                                    std::vector<std::string>{"sim://10.0.0.1:7000"});
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 2},
                                     std::vector<std::string>{"sim://10.0.0.1:7000"}, 4u);
  site.settle();
  const cci::Connection connection = site.connect(*site.left, *site.right);
  uint64_t sent = 0, received = 0;
  constexpr uint64_t count = 300;
  // The receiver takes four and keeps them for a while, again and again.
  while (received < count) {
    while (sent < count && site.left->endpoint->send(connection, Bytes(numbered(sent, 100)), sent) == Status::success) ++sent;
    site.left->wake();
    INFO("sent " << sent << " received " << received << " acked " << site.left->count(EventType::send) << " left gone "
                 << site.left->count(EventType::disconnected) << " right gone " << site.right->count(EventType::disconnected));
    REQUIRE(site.run([&] { return site.right->count(EventType::receive) > 0; }));
    site.world.run_for(milliseconds(20));
    CHECK(site.right->count(EventType::receive) <= 4);
    std::vector<cci::Event> kept;
    while (auto event = site.right->take(EventType::receive)) {
      CHECK(number_of(event->data()) == received++);
      kept.push_back(std::move(*event));
    }
    while (site.left->take(EventType::send)) {
    }
  }
  CHECK(received == count);
}

TEST_CASE("routed_message__other_connections__are_not_held_back_by_a_stalled_one") {
  Site site;
  site.add_router("r", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"lan2", "10.0.0.1", {1, 2}, {}}});
  site.left = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.2", SubnetId{1, 1},
                                    std::vector<std::string>{"sim://10.0.0.1:7000"});
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 2},
                                     std::vector<std::string>{"sim://10.0.0.1:7000"}, 2u);
  App other(site.world, site.fabric, "lan2", "10.0.0.3", {1, 2}, {"sim://10.0.0.1:7000"});
  site.settle();
  const cci::Connection stalled = site.connect(*site.left, *site.right);
  for (uint64_t i = 0; i < 64; ++i) static_cast<void>(site.left->endpoint->send(stalled, Bytes(numbered(i, 100)), i));
  site.left->wake();
  site.world.run_for(seconds(1));
  const cci::Event event = site.connect_event(*site.left, other.uri());
  REQUIRE(event.status == Status::success);
  for (uint64_t i = 0; i < 20; ++i) {
    REQUIRE(site.left->endpoint->send(event.connection, Bytes(numbered(i, 100)), 1000 + i) == Status::success);
    site.left->wake();
    REQUIRE(site.run([&] { return other.count(EventType::receive) == i + 1; }, seconds(5)));
  }
}

// A router's sends are silent, so the room that an acknowledgement of all of them gives comes without an event.
TEST_CASE("routed_message__all_room_of_the_next_hop_comes_back_at_once__what_waits_goes_on") {
  Site site;
  site.chain(1);
  REQUIRE(site.left->endpoint->connect(site.right->uri(), {.attribute = cci::Attribute::unreliable}));
  site.left->wake();
  REQUIRE(site.run([&] { return site.left->count(EventType::connect) > 0 && site.right->accepted; }));
  const auto connected = site.left->take(EventType::connect);
  REQUIRE(connected->status == Status::success);
  site.run([] { return false; }, milliseconds(100));
  site.world.remove_actor(site.right->node, site.right.get());  // a process that was stopped
  constexpr uint64_t count = 700;                               // more than a hop's window, less than the end's buffers
  uint64_t sent = 0, ended = 0;
  REQUIRE(site.run([&] {
    while (site.left->take(EventType::send)) ++ended;
    while (sent < count) {
      const auto message = numbered(sent, 8);
      if (site.left->endpoint->send(connected->connection, Bytes(message), 1) != Status::success) break;
      ++sent;
      site.left->wake();
    }
    return ended == count;
  }));
  site.run([] { return false; }, milliseconds(100));  // all are at the router
  site.world.add_actor(site.right->node, site.right.get());
  uint64_t received = 0;
  const bool all = site.run(
      [&] {
        while (const auto event = site.right->take(EventType::receive)) ++received;
        return received == count;
      },
      milliseconds(200));  // before any timer of the router's
  CAPTURE(received);
  CHECK(all);
}

TEST_CASE("routed_message__disconnect__what_was_sent_arrives_then_the_peer_learns_of_it") {
  const size_t routers = GENERATE(1u, 3u, 5u);
  Site site;
  site.chain(routers);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  for (uint64_t i = 0; i < 10; ++i) REQUIRE(site.left->endpoint->send(connection, Bytes(numbered(i, 64)), i) == Status::success);
  site.left->endpoint->disconnect(connection);
  site.left->wake();
  REQUIRE(site.run([&] { return site.right->count(EventType::disconnected) > 0; }));
  CHECK(site.right->count(EventType::receive) == 10);
  CHECK(site.right->take(EventType::disconnected)->status == Status::disconnected);
  CHECK(site.right->endpoint->send(site.right->accepted, as_bytes("late"), 1) != Status::success);
  CHECK(site.left->count(EventType::disconnected) == 0);
  CHECK(site.left->count(EventType::send) == 10);  // every operation ends
  for (const auto& router : site.routers) router->router->drain();
  CHECK(site.run(
      [&] {
        for (const auto& router : site.routers) {
          if (!router->router->drained()) return false;
        }
        return true;
      },
      seconds(20)));
}

TEST_CASE("routed_message__router_dies__both_ends_learn_of_it_and_sends_fail") {
  const size_t victim = GENERATE(0u, 1u, 2u);
  Site site(victim + 1);
  site.chain(3);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  site.kill(victim);
  site.world.wake(site.left->node);
  REQUIRE(site.left->endpoint->send(connection, as_bytes("into the void"), 3) == Status::success);
  site.left->wake();
  const Instant start = site.world.now();
  REQUIRE(site.run([&] { return site.left->count(EventType::disconnected) > 0 && site.right->count(EventType::disconnected) > 0; },
                   seconds(90)));
  CHECK(site.world.now() - start < seconds(60));
  const auto send = site.left->take(EventType::send);
  REQUIRE(send);
  CHECK(send->status == Status::disconnected);
  const auto left_end = site.left->take(EventType::disconnected);
  const auto right_end = site.right->take(EventType::disconnected);
  CHECK_FALSE(left_end->reason.empty());
  // Who did not stand next to it is told by the router that did.
  if (victim > 0) CHECK(left_end->reason.find("a hop is lost") != std::string::npos);
  if (victim < 2) CHECK(right_end->reason.find("a hop is lost") != std::string::npos);
}

TEST_CASE("routed_message__peer_application_dies__the_other_end_learns_of_it") {
  Site site;
  site.chain(2);
  static_cast<void>(site.connect(*site.left, *site.right));
  site.world.crash(site.right->node);
  site.right.reset();
  REQUIRE(site.run([&] { return site.left->count(EventType::disconnected) > 0; }, seconds(90)));
}

TEST_CASE("routed_message__far_end_frozen_behind_living_routers__keepalive_ends_it") {
  Site site;
  site.chain(2);
  static_cast<void>(site.connect(*site.left, *site.right));
  // Its process stops turning: the lower connection of the last hop notices, or the end-to-end keepalive does.
  site.world.remove_actor(site.right->node, site.right.get());
  REQUIRE(site.run([&] { return site.left->count(EventType::disconnected) > 0; }, seconds(120)));
}

TEST_CASE("routed_message__idle_for_long__stays") {
  Site site;
  site.chain(2);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  site.world.run_for(std::chrono::minutes(5));
  CHECK(site.left->count(EventType::disconnected) == 0);
  CHECK(site.send(*site.left, connection, "still here") == Status::success);
}

TEST_CASE("routed_message__send_timeout_without_receive_buffers__not_ready_in_order") {
  Site site;
  site.chain(1);
  site.right = nullptr;
  App right(site.world, site.fabric, "lan2", "10.0.0.3", {1, 2}, {"sim://10.0.0.1:7000"}, 1u, 8u);
  const cci::Event event = site.connect_event(*site.left, right.uri());
  REQUIRE(event.status == Status::success);
  site.left->endpoint->set_send_timeout(event.connection, seconds(2));
  for (uint64_t i = 0; i < 40; ++i)
    REQUIRE(site.left->endpoint->send(event.connection, Bytes(numbered(i, 32)), i) == Status::success);
  site.left->wake();
  REQUIRE(site.run([&] { return site.left->count(EventType::send) == 40; }, seconds(60)));
  uint64_t next = 0;
  bool failed = false;
  for (const cci::Event& send : site.left->events) {
    if (send.type != EventType::send) continue;
    CHECK(send.context == next++);
    if (send.status != Status::success) failed = true;
    if (failed) CHECK(send.status == Status::receiver_not_ready);
  }
  CHECK(failed);
}

TEST_CASE("routed_message__keepalive_event__once_when_the_far_end_is_silent") {
  Site site;
  site.chain(1);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  site.left->endpoint->set_keepalive(connection, seconds(4));
  site.left->wake();
  site.world.run_for(seconds(12));
  CHECK(site.left->count(EventType::keepalive_timed_out) == 0);  // it answers
  site.world.remove_actor(site.right->node, site.right.get());
  REQUIRE(site.run([&] { return site.left->count(EventType::keepalive_timed_out) > 0; }, seconds(10)));
  CHECK(site.left->count(EventType::disconnected) == 0);
  // It speaks again, and falls silent again: that was asked for once.
  site.world.add_actor(site.right->node, site.right.get());
  site.right->wake();
  CHECK(site.send(*site.left, connection, "there again") == Status::success);
  site.world.remove_actor(site.right->node, site.right.get());
  site.world.run_for(seconds(10));
  CHECK(site.left->count(EventType::keepalive_timed_out) == 1);
}
