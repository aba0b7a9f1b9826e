// The Hub between an endpoint and its links: connections that end before they began, links that go, and when a turn is wanted.
#include <catch2/catch.hpp>

#include "app/session/limits.h"
#include "app/session/pings.h"
#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;
using namespace std::chrono_literals;

namespace {

// The connection that is being accepted breaks before its acceptor hears that it is there.
void break_next_accept(World& world) {
  world.net.fault = [once = true](size_t, FrameKind kind) mutable {
    return kind == FrameKind::accept_ack && std::exchange(once, false) ? Fault::cut_before : Fault::none;
  };
}

}  // namespace

TEST_CASE("hub__the_first_connection_of_a_session_ends_before_it_began__the_session_is_over") {
  World world;
  break_next_accept(world);
  REQUIRE(world.run([&] { return world.acceptor->user.lost != nullptr; }));
  CHECK(world.acceptor->user.lost->kind == ErrorKind::network);
  CHECK(world.acceptor->user.lost->message.find("before the session began") != std::string::npos);
  CHECK(world.acceptor->user.lanes == std::vector<std::string>{"up 0", "down 0"});
}

TEST_CASE("hub__a_later_connection_of_a_session_ends_before_it_began__the_session_goes_on") {
  World world;
  REQUIRE(world.run_until_up(1));
  world.near.transport->cut_all();
  break_next_accept(world);
  REQUIRE(world.run([&] { return world.link->live_lanes().empty() && world.acceptor->link->live_lanes().empty(); }));
  const size_t dials = world.net.dials;
  REQUIRE(world.run([&] { return world.net.dials >= dials + 2; }));
  REQUIRE(world.run_until_up(1));
  CHECK(world.acceptor->user.lost == nullptr);
  CHECK(world.acceptor->sessions == 1);
  world.link->post(End{5});
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 1; }));
}

TEST_CASE("hub__a_link_goes_while_its_connection_is_accepted__that_connection_ends") {
  World world;
  REQUIRE(world.run_until_up(1));
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return world.acceptor->link->live_lanes().empty(); }));
  const size_t dials = world.net.dials;
  REQUIRE(world.run([&] { return world.net.dials > dials; }));
  world.far->hub->turn(world.now);  // it is accepted, and the dialler has not said yet that it is there
  world.acceptor->link.reset();
  for (int i = 0; i < 5; ++i) {
    world.near.hub->turn(world.now);
    world.far->hub->turn(world.now);
  }
  CHECK(world.far->transport->connections() == 0);
}

// `ccixfer ping` beside a session that begins: neither connection is taken for the other.
TEST_CASE("hub__an_administrator_asks_while_a_session_begins__the_lane_is_the_sessions") {
  World world;
  world.near.hub->turn(world.now);
  world.far->hub->turn(world.now);  // the session's connection is accepted, and its dialler has not said yet that it is there
  Side third(world.net, "", 3);
  cci::ConnectOptions how;
  how.role = ports::Role::admin;
  REQUIRE(third.endpoint->connect("fake://far", how));
  bool answered = false;
  for (int i = 0; i < 10; ++i) {
    third.endpoint->turn(world.now);
    world.far->hub->turn(world.now);
    while (auto event = third.endpoint->get_event()) {
      answered = answered || (event->type == cci::EventType::connect && event->status == Status::success);
    }
  }
  CHECK(answered);
  REQUIRE(world.run_until_up(1));
  world.link->post(End{5});
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 1; }));
  CHECK(world.acceptor->user.lanes == std::vector<std::string>{"up 0"});
}

namespace {

// Anybody may have one, and need not end it.
struct Pingers {
  explicit Pingers(World& a_world) : world(a_world), side(a_world.net, "", 3) {}
  cci::Connection connect() {
    cci::ConnectOptions how;
    how.role = ports::Role::admin;
    REQUIRE(side.endpoint->connect("fake://far", how));
    cci::Connection connection;
    REQUIRE(run([&](const cci::Event& event) {
      connection = event.connection;
      return event.type == cci::EventType::connect && event.status == Status::success;
    }));
    return connection;
  }
  // Whether such an event comes.
  bool run(const std::function<bool(const cci::Event&)>& what) {
    for (int i = 0; i < 20; ++i) {
      side.endpoint->turn(world.now);
      world.far->hub->turn(world.now);
      while (auto event = side.endpoint->get_event()) {
        if (event->type == cci::EventType::disconnected) ended.push_back(event->connection);
        if (what(*event)) return true;
      }
    }
    return false;
  }
  void pass_time() {
    static_cast<void>(run([](const cci::Event&) { return false; }));
  }
  void say_something(cci::Connection connection) {
    const std::vector<std::byte> message(64);
    REQUIRE(side.endpoint->send(connection, message, 1) == Status::success);
    REQUIRE(run([](const cci::Event& event) { return event.type == cci::EventType::send && event.status == Status::success; }));
  }
  World& world;
  Side side;
  std::vector<cci::Connection> ended;
};

}  // namespace

TEST_CASE("hub__more_administrators_than_are_kept__the_most_silent_one_goes_and_sessions_begin") {
  World world;
  Pingers pingers(world);
  std::vector<cci::Connection> all;
  for (size_t i = 0; i < pings_max; ++i) all.push_back(pingers.connect());
  pingers.say_something(all[0]);
  CHECK(pingers.ended.empty());
  static_cast<void>(pingers.connect());
  pingers.pass_time();
  CHECK(pingers.ended == std::vector<cci::Connection>{all[1]});
  CHECK(world.far->transport->connections() == pings_max);
  REQUIRE(world.run_until_up(1));
}

TEST_CASE("hub__a_silent_administrator__goes_when_its_time_is_over_and_one_that_goes_leaves_its_place") {
  World world;
  Pingers pingers(world);
  const cci::Connection silent = pingers.connect();
  const cci::Connection busy = pingers.connect();
  CHECK(world.far->hub->next_deadline() == after(world.now, ping_idle_limit));
  world.now = after(world.now, ping_idle_limit - std::chrono::seconds(1));
  pingers.say_something(busy);
  CHECK(pingers.ended.empty());
  world.now = after(world.now, std::chrono::seconds(1));
  pingers.pass_time();
  CHECK(pingers.ended == std::vector<cci::Connection>{silent});
  pingers.side.endpoint->disconnect(busy);
  pingers.pass_time();
  CHECK(world.far->hub->next_deadline() == never);
}

TEST_CASE("hub__a_connection_is_accepted__what_the_acceptor_says_follows_in_the_same_flight") {
  World world;
  world.near.hub->turn(world.now);
  world.far->hub->turn(world.now);
  REQUIRE(world.acceptor->link->live_lanes().size() == 1);
  world.acceptor->link->post(End{5});
  world.acceptor->link->post_on_lane(0, LaneOpen{1, 1024, 3, stripes});
  world.near.hub->turn(world.now);
  CHECK(world.user.messages == std::vector<uint64_t>{5});
  CHECK(world.user.lane_messages.size() == 1);
  REQUIRE(world.run([&] { return world.acceptor->link->messages_delivered(); }));
}

TEST_CASE("hub__a_session_begins__its_first_words_come_with_the_request_and_count_once") {
  World world;
  world.link->post(End{5});
  world.link->post(End{6});
  world.near.hub->turn(world.now);
  world.far->hub->turn(world.now);
  CHECK(world.acceptor->user.messages == std::vector<uint64_t>{5, 6});
  world.link->post(End{7});
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 3 && world.link->messages_delivered(); }));
  for (int i = 0; i < 20; ++i) world.turn();
  CHECK(world.acceptor->user.messages == std::vector<uint64_t>{5, 6, 7});
}

TEST_CASE("hub__first_words_that_do_not_fit_a_request__come_over_the_lane_in_order") {
  World world;
  world.link->post(End{5});
  world.link->post(Abort{ErrorKind::network, std::string(500, 'x')});
  world.link->post(Abort{ErrorKind::network, std::string(500, 'y')});
  world.link->post(End{6});
  world.near.hub->turn(world.now);
  world.far->hub->turn(world.now);
  CHECK(world.acceptor->user.messages == std::vector<uint64_t>{5});
  CHECK(world.acceptor->user.others.size() == 1);
  REQUIRE(world.run([&] { return world.acceptor->user.messages.size() == 2; }));
  CHECK(world.acceptor->user.others.size() == 2);
}

// What was asked for has begun: the dialler that comes again finds a session, and not the end of the transfer.
TEST_CASE("hub__the_first_connection_breaks_after_its_words_were_heard__the_session_waits_for_its_dialler") {
  World world;
  world.link->post(End{5});
  break_next_accept(world);
  REQUIRE(world.run([&] { return world.acceptor->user.lanes == std::vector<std::string>{"up 0", "down 0", "up 0"}; }));
  CHECK(world.acceptor->sessions == 1);
  CHECK(world.acceptor->user.lost == nullptr);
  CHECK(world.acceptor->user.messages == std::vector<uint64_t>{5});
}

TEST_CASE("hub__first_words_that_are_rubbish__are_counted_and_end_the_session") {
  World world;
  Side stranger(world.net, "", 3);
  Hello hello;
  hello.transfer[0] = 7;
  hello.early = {{std::byte{1}, std::byte{2}}};
  const std::vector<std::byte> data = encode(hello);
  cci::ConnectOptions how;
  how.data = data;
  REQUIRE(stranger.endpoint->connect("fake://far", how));
  for (int i = 0; i < 10; ++i) {
    stranger.endpoint->turn(world.now);
    world.far->hub->turn(world.now);
    while (stranger.endpoint->get_event()) {
    }
  }
  CHECK(world.far->counters.get(Counter::session_rejected) == 1);
  REQUIRE(world.acceptor->user.lost != nullptr);
  CHECK(world.acceptor->user.lost->kind == ErrorKind::protocol);
}

TEST_CASE("hub__a_request_whose_peer_went__ends_its_session_only_if_it_was_to_begin_it") {
  World world;
  const bool first = GENERATE(true, false);
  if (!first) {
    REQUIRE(world.run_until_up(1));
    world.near.transport->cut_all();
    REQUIRE(world.run([&] { return world.link->live_lanes().empty() && world.acceptor->link->live_lanes().empty(); }));
  }
  world.far->transport->accept_status = Status::not_found;
  const size_t dials = world.net.dials;
  REQUIRE(world.run([&] { return world.net.dials > dials || (first && world.acceptor->user.lost != nullptr); }));
  for (int i = 0; i < 5; ++i) world.far->hub->turn(world.now);
  REQUIRE((world.acceptor->user.lost != nullptr) == first);
  if (first) {
    CHECK(world.acceptor->user.lost->message.find("before the session began") != std::string::npos);
  } else {
    world.far->transport->accept_status = Status::success;
    REQUIRE(world.run_until_up(1));
  }
}

TEST_CASE("hub__a_link_is_removed__it_hears_nothing_more") {
  World world;
  REQUIRE(world.run_until_up(1));
  world.link->post(End{1});
  world.far->hub->remove_link(world.acceptor->link.get());
  world.far->hub->remove_link(world.acceptor->link.get());  // a second time: nothing
  for (int i = 0; i < 20; ++i) world.turn();
  CHECK(world.acceptor->user.messages.empty());
}

TEST_CASE("hub__nothing_under_way__no_turn_is_due_but_that_of_a_links_grace") {
  World world;
  REQUIRE(world.run_until_up(1));
  REQUIRE(world.run([&] { return world.near.hub->next_deadline() == never && world.far->hub->next_deadline() == never; }, 2000));
  world.acceptor->link->set_grace(7s);
  world.near.hub->remove_dialler(world.dialler.get());
  world.near.transport->cut_all();
  for (int i = 0; i < 10; ++i) world.far->hub->turn(world.now);
  CHECK(world.acceptor->link->live_lanes().empty());
  CHECK(world.far->hub->next_deadline() == world.now + 7s);
  world.far->hub->turn(world.now + 7s - 1ns);
  CHECK(world.acceptor->user.lost == nullptr);
  world.far->hub->turn(world.now + 7s);
  REQUIRE(world.acceptor->user.lost != nullptr);
  CHECK(world.acceptor->user.lost->kind == ErrorKind::timeout);
  CHECK(world.acceptor->user.lost->message.find("for 7 s") != std::string::npos);
}

// What its peer says after it failed is of no matter, even if it is rubbish.
TEST_CASE("link__failed__says_what_was_first_and_takes_nothing_more") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  for (uint64_t i = 1; i <= 5; ++i) world.link->post(End{i});
  world.turn();
  world.acceptor->link->fail({ErrorKind::interrupted, "stop"});
  world.acceptor->link->fail({ErrorKind::bug, "and again"});
  const size_t before = world.acceptor->user.messages.size();
  world.acceptor->link->post(End{9});
  CHECK(world.acceptor->link->next_deadline() <= world.now);
  REQUIRE(world.run([&] { return world.acceptor->user.lost != nullptr; }, 1000));
  CHECK(world.acceptor->user.lost->kind == ErrorKind::interrupted);
  CHECK(world.acceptor->user.messages.size() == before);
  CHECK(world.acceptor->link->live_lanes().empty());
  CHECK(world.acceptor->link->next_deadline() == never);
  CHECK(world.user.messages.empty());
  CHECK(world.acceptor->user.calls_after_lost == 0);
}

// The endpoint owes an end for each operation; who waits for one that does not come waits no longer than this.
TEST_CASE("link__a_closed_lane_whose_puts_do_not_end__is_given_up_after_fifteen_seconds") {
  Net net;
  Side near(net, "", 1);
  Side far(net, "fake://far", 2);
  Recorder user;
  Link link(*near.endpoint, Hello{}, user);
  link.set_grace(forever);
  Instant now{1s};
  REQUIRE(near.endpoint->connect("fake://far", {}));
  std::optional<cci::Connection> connection;
  for (int i = 0; i < 10; ++i) {
    near.endpoint->turn(now);
    far.endpoint->turn(now);
    while (auto event = far.endpoint->get_event()) {
      if (event->type == cci::EventType::connect_request) REQUIRE(far.endpoint->accept(*event, 0) == Status::success);
    }
    while (auto event = near.endpoint->get_event()) {
      if (event->type == cci::EventType::connect) connection = event->connection;
    }
  }
  REQUIRE(connection);
  link.turn(now);
  link.add_lane(0, *connection);
  const std::vector<std::byte> bytes(10);
  REQUIRE(link.put(0, near.memory->register_region(Bytes(bytes)), 0, 10, 55, 66, 0, 1) == Status::success);
  link.close_lane(0);
  CHECK(link.next_deadline() <= now);  // that the lane came up is to be told
  link.turn(now);
  CHECK(link.next_deadline() == now + 15s);
  link.turn(now + 15s - 1ns);
  CHECK(user.puts.empty());
  CHECK(user.lanes == std::vector<std::string>{"up 0"});
  link.turn(now + 15s);
  REQUIRE(user.puts.size() == 1);
  CHECK(user.puts[0].status == Status::disconnected);
  CHECK(user.lanes == std::vector<std::string>{"up 0", "put 0", "down 0"});
  CHECK(link.next_deadline() == never);
}
