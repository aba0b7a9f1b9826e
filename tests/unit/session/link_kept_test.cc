// What a Link keeps for its lanes and tells of them: words of a rejection, messages that came early, ways, counts of bytes, limits.
#include <algorithm>
#include <catch2/catch.hpp>

#include "app/session/limits.h"
#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;
using namespace std::chrono_literals;

namespace {

// A Link that is by itself, and a plain endpoint that says what the test wants.
struct Alone {
  Alone() : near(net, "", 1), far(net, "fake://far", 2), link(*near.endpoint, hello(), user) {
    link.set_dialled();
    link.set_grace(forever);
    link.attach(nullptr, &near.counters);
    link.turn(now);
  }
  static Hello hello() {
    Hello hello;
    hello.direction = Direction::push;
    return hello;
  }
  void turns() {
    for (int i = 0; i < 6; ++i) {
      near.endpoint->turn(now);
      while (auto event = near.endpoint->get_event()) {
        if (event->type == cci::EventType::connect) {
          connection = event->connection;
        } else {
          link.handle(std::move(*event));
        }
      }
      far.endpoint->turn(now);
      while (auto event = far.endpoint->get_event()) {
        if (event->type == cci::EventType::connect_request) {
          REQUIRE(far.endpoint->accept(*event, 0) == Status::success);
          theirs = event->connection;
        }
        if (event->type == cci::EventType::disconnected) ended.push_back(event->connection);
        if (event->type == cci::EventType::receive) received.emplace_back(event->data().begin(), event->data().end());
      }
    }
  }
  cci::Connection connect() {
    REQUIRE(near.endpoint->connect("fake://far", {}));
    turns();
    return connection;
  }
  // Its connection is the oldest, and its peer as good as hung.
  void begin_lane_whose_put_does_not_end() {
    link.add_lane(0, connect());
    link.turn(now);
    near.transport->hold_oldest(true);
    REQUIRE(link.put(0, near.memory->register_region(Bytes(bytes)), 0, 10, 55, 66, 0, 1) == Status::success);
    user.lanes.clear();
  }
  void says(cci::Connection on, const std::vector<std::byte>& message) {
    REQUIRE(far.endpoint->send(on, message, 0) == Status::success);
    turns();
  }
  [[nodiscard]] bool is_ended(cci::Connection of) {
    turns();
    return std::find(ended.begin(), ended.end(), of) != ended.end();
  }

  Net net;
  Instant now{1s};
  Side near, far;
  Recorder user;
  Link link;
  cci::Connection connection, theirs;
  std::vector<cci::Connection> ended;
  std::vector<std::vector<std::byte>> received;  // by the far end
  std::vector<std::byte> bytes = std::vector<std::byte>(10, std::byte{7});
};

}  // namespace

TEST_CASE("link__a_message_that_cannot_be_read__ends_it_in_words_that_the_peer_hears_too") {
  std::vector<std::byte> flipped = encode(End{1}, 1);
  flipped[13] ^= std::byte{1};
  for (const std::vector<std::byte>& message : {std::vector<std::byte>{std::byte{0xff}, std::byte{1}}, flipped}) {
    const auto why = decode(message);
    REQUIRE_FALSE(why);
    Alone alone;
    alone.link.add_lane(0, alone.connect());
    alone.says(alone.theirs, message);
    alone.turns();
    alone.link.turn(alone.now);
    REQUIRE(alone.received.size() == 1);
    const auto told = decode(Bytes(alone.received[0]));
    REQUIRE(told);
    CHECK(std::get<Abort>(told->message).kind == ErrorKind::protocol);
    CHECK(std::get<Abort>(told->message).message == why.error().message);
    CHECK(alone.is_ended(alone.theirs));
    alone.link.turn(alone.now);
    REQUIRE(alone.user.lost != nullptr);
    CHECK(alone.user.lost->kind == ErrorKind::protocol);
    CHECK(alone.user.lost->message == why.error().message);
    CHECK(alone.near.counters.get(Counter::session_rejected) == 1);
  }
}

TEST_CASE("link__a_number_beyond_the_window__is_rejected_in_these_words_and_counted") {
  Alone alone;
  alone.link.add_lane(0, alone.connect());
  alone.says(alone.theirs, encode(End{1}, control_messages_ahead_max + 1));
  alone.turns();
  for (int i = 0; i < 2; ++i) alone.link.turn(alone.now);
  REQUIRE(alone.user.lost != nullptr);
  CHECK(alone.user.lost->message == "session message: its number is beyond the window");
  CHECK(alone.user.messages.empty());
  CHECK(alone.near.counters.get(Counter::session_rejected) == 1);
}

// What came on a connection before it took its predecessor's place is the lane's, in order, once that is so.
TEST_CASE("link__lane_messages_that_come_early__as_many_as_may_wait_are_told_once_it_is_up") {
  const bool one_more = GENERATE(false, true);
  Alone alone;
  alone.begin_lane_whose_put_does_not_end();
  alone.link.add_lane(0, alone.connect());
  const cci::Connection theirs = alone.theirs;
  const uint64_t count = lane_messages_queued_max + (one_more ? 1 : 0);
  for (uint64_t i = 0; i < count; ++i) alone.says(theirs, encode(LaneOpen{i, 6, 7, stripes}, 0));
  alone.turns();
  alone.link.turn(alone.now);
  CHECK(alone.user.lane_messages.empty());
  CHECK(alone.link.live_lanes().empty());
  CHECK(alone.link.has_lane(0) == !one_more);
  CHECK(alone.is_ended(theirs) == one_more);
  alone.near.transport->hold_oldest(false);
  alone.turns();
  for (int i = 0; i < 2; ++i) alone.link.turn(alone.now);
  if (one_more) {
    CHECK(alone.user.lanes == std::vector<std::string>{"put 0", "down 0"});
    CHECK(alone.user.lane_messages.empty());
    return;
  }
  CHECK(alone.user.lanes == std::vector<std::string>{"put 0", "down 0", "up 0"});
  REQUIRE(alone.user.lane_messages.size() == count);
  for (uint64_t i = 0; i < count; ++i) {
    CHECK(alone.user.lane_messages[i].first == 0);
    CHECK(std::get<LaneOpen>(alone.user.lane_messages[i].second).lane_session == i);
  }
}

TEST_CASE("link__a_third_connection_of_a_lane__takes_the_place_of_the_one_that_waits") {
  Alone alone;
  alone.begin_lane_whose_put_does_not_end();
  alone.link.add_lane(0, alone.connect());
  const cci::Connection second = alone.theirs;
  alone.says(second, encode(LaneOpen{2, 6, 7, stripes}, 0));
  alone.link.add_lane(0, alone.connect());
  const cci::Connection third = alone.theirs;
  alone.says(third, encode(LaneOpen{3, 6, 7, stripes}, 0));
  CHECK(alone.is_ended(second));
  CHECK_FALSE(alone.is_ended(third));
  alone.link.turn(alone.now);
  CHECK(alone.user.lanes.empty());
  alone.near.transport->hold_oldest(false);
  alone.turns();
  for (int i = 0; i < 2; ++i) alone.link.turn(alone.now);
  CHECK(alone.user.lanes == std::vector<std::string>{"put 0", "down 0", "up 0"});  // nothing of the second
  REQUIRE(alone.user.lane_messages.size() == 1);
  CHECK(std::get<LaneOpen>(alone.user.lane_messages[0].second).lane_session == 3);
  CHECK(alone.link.live_lanes() == std::vector<LaneIndex>{0});
  CHECK(alone.user.lost == nullptr);
}

TEST_CASE("link__waiting_connection_is_lost__nobody_is_told_and_the_lane_is_free") {
  Alone alone;
  alone.begin_lane_whose_put_does_not_end();
  alone.link.add_lane(0, alone.connect());
  CHECK(alone.link.has_lane(0));
  alone.far.endpoint->disconnect(alone.theirs);
  alone.turns();
  alone.turns();
  alone.link.turn(alone.now);
  CHECK(alone.user.lanes.empty());
  CHECK_FALSE(alone.link.has_lane(0));
  alone.near.transport->hold_oldest(false);
  alone.turns();
  for (int i = 0; i < 2; ++i) alone.link.turn(alone.now);
  CHECK(alone.user.lanes == std::vector<std::string>{"put 0", "down 0"});
  CHECK(alone.link.live_lanes().empty());
}

TEST_CASE("link__bytes_moved__are_all_its_lanes_together") {
  World world(3);
  REQUIRE(world.run_until_up(3));
  world.net.received_bytes = 7;
  CHECK(world.link->moved_bytes() == 21);
  world.link->close_lane(1);
  REQUIRE(world.run([&] { return world.link->live_lanes().size() == 2; }, 100));
  world.net.received_bytes = 100;
  CHECK(world.link->moved_bytes() >= 200);
}

TEST_CASE("link__the_way_of_a_lane__is_its_connections_while_it_is_up") {
  World world;
  world.net.path = {{"fake", "fake://router", 1, 2, 1ms, 0}};
  CHECK(world.link->hops(0).empty());
  REQUIRE(world.run_until_up(1));
  REQUIRE(world.link->hops(0).size() == 1);
  CHECK(world.link->hops(0)[0].node == "fake://router");
  CHECK(world.link->hops(1).empty());
  world.link->close_lane(0);
  CHECK(world.link->hops(0).empty());
}

TEST_CASE("link__a_connection_that_comes_after_it_failed__is_ended") {
  Alone alone;
  const cci::Connection late = alone.connect();
  alone.link.fail({ErrorKind::interrupted, "stop"});
  alone.link.add_lane(0, late);
  CHECK(alone.is_ended(alone.theirs));
  CHECK_FALSE(alone.link.has_lane(0));
  alone.link.turn(alone.now);
  REQUIRE(alone.user.lost != nullptr);
  CHECK(alone.user.lost->message == "stop");
  CHECK(alone.user.lanes.empty());
}
