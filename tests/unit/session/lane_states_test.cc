// The life of a lane (LaneState: waiting, up, closing), as a table: what each event of its connection does in each state. The Link
// is by itself here, without Hub and Dialler; its peer is a plain endpoint that sends what the test says.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>

#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;
using cci::EventType;

namespace {

enum class State : uint8_t { waiting, up, closing };
constexpr uint8_t states_count = 3;

enum class Happens : uint8_t {
  lane_message,
  session_message,
  malformed_message,
  put_ends,
  control_fails,  // a session message of ours was not delivered
  connection_lost,
  keepalive_timed_out,
  path_goes,
  another_comes,  // a connection of the same lane
  closed_above,   // close_lane
  link_fails,
};
constexpr uint8_t happens_count = 11;

enum class Outcome : uint8_t {
  stays,  // and nothing is told
  told,   // it stays, and the user hears of the event
  kept,   // it stays, and the user hears of the event once the lane is up
  moves,  // to closing: the connection is ended
  gone,   // the lane is no more, and the user hears so if it heard of it before
};

// Written by the rules at the head of link.cc, not row by row. Nothing: it cannot happen.
std::optional<Outcome> expected(State state, Happens happens) {
  switch (happens) {
    case Happens::lane_message:  // of a lane that is down they mean nothing any more
      if (state == State::waiting) return Outcome::kept;
      return state == State::up ? Outcome::told : Outcome::stays;
    case Happens::session_message:  // on whatever lane it comes
      return Outcome::told;
    case Happens::malformed_message:
    case Happens::link_fails:
    case Happens::keepalive_timed_out:
      return state == State::closing ? Outcome::stays : Outcome::moves;
    case Happens::put_ends:
      if (state == State::waiting) return std::nullopt;  // nothing was put on it
      return Outcome::told;
    case Happens::control_fails:
      if (state == State::up) return Outcome::moves;
      return state == State::closing ? std::optional(Outcome::stays) : std::nullopt;
    case Happens::connection_lost:
      return Outcome::gone;
    case Happens::path_goes:  // a better one is looked for while it works
      return Outcome::stays;
    case Happens::another_comes:
      return state == State::closing ? Outcome::stays : Outcome::moves;  // the newest counts
    case Happens::closed_above:                                          // the lane that is up
      return state == State::up ? Outcome::moves : Outcome::stays;
  }
  return std::nullopt;
}

// A Link by itself, and a plain endpoint as its peer. Events come to the Link when the test says so.
struct Rig {
  Rig() : near(net, "fake://near", 1), far(net, "fake://far", 2) {
    Hello hello;
    hello.direction = Direction::push;
    link = std::make_unique<Link>(*near.endpoint, hello, user);
    link->set_dialled();
    link->set_grace(forever);
    source = near.memory->register_region(Bytes(bytes));
    link->turn(now);
  }
  void turns() {
    for (int i = 0; i < 6; ++i) {
      now += std::chrono::microseconds(10);
      near.endpoint->turn(now);
      while (auto event = near.endpoint->get_event()) events.push_back(std::move(*event));
      far.endpoint->turn(now);
      while (auto event = far.endpoint->get_event()) {
        if (event->type == EventType::connect_request) {
          REQUIRE(far.endpoint->accept(*event, 0) == Status::success);
          theirs = event->connection;
        }
        if (event->type == EventType::disconnected) ended.push_back(event->connection);
      }
    }
  }
  cci::Connection connect() {
    REQUIRE(near.endpoint->connect("fake://far", {}));
    turns();
    REQUIRE_FALSE(events.empty());
    REQUIRE(events.back().type == EventType::connect);
    REQUIRE(events.back().status == Status::success);
    const cci::Connection connection = events.back().connection;
    events.pop_back();
    return connection;
  }
  // Operations of the Link are numbered from 1.
  void put(uint64_t context) { REQUIRE(link->put(0, source, 0, 100, 55, 66, context, context) == Status::success); }

  Net net;
  Instant now{std::chrono::seconds(1)};
  Side near, far;
  Recorder user;
  std::unique_ptr<Link> link;
  std::deque<cci::Event> events;  // of the near end, not handled yet
  cci::Connection theirs;         // the far end of the newest connection
  std::vector<cci::Connection> ended;
  std::vector<std::byte> bytes = std::vector<std::byte>(100, std::byte{7});
  ports::Handle source;
};

// Lane 0, whose newest connection is in the state.
struct Met : Rig {
  Met(State in, Happens what) : happens(what) {
    if (in == State::waiting) {
      link->add_lane(0, connect());
      put(0);  // does not end: so the older connection is in the way
    }
    connection = connect();
    their = theirs;
    link->add_lane(0, connection);
    if (in != State::waiting) {
      put(1);
      put(2);
      if (happens == Happens::control_fails) link->post(End{1});
    }
    // What came before the lane closes counts still: it is there, and not handled.
    if (happens == Happens::lane_message) peer_says(encode(Credit{3}, 0));
    if (happens == Happens::session_message) peer_says(encode(End{42}, 1));
    if (happens == Happens::malformed_message) peer_says({std::byte{0xff}, std::byte{1}});
    if (in == State::closing) link->close_lane(0);
    link->turn(now);
    user.lanes.clear();
    REQUIRE(link->live_lanes().size() == (in == State::up ? 1u : 0u));
    REQUIRE(link->has_lane(0) == (in != State::closing));
  }
  void peer_says(const std::vector<std::byte>& message) {
    REQUIRE(far.endpoint->send(theirs, message, 0) == Status::success);
    turns();
  }
  void handle(EventType type, uint64_t context = 0, Status status = Status::success) {
    cci::Event event;
    event.type = type;
    event.connection = connection;
    event.context = context;
    event.status = status;
    link->handle(std::move(event));
  }
  void happen() {
    switch (happens) {
      case Happens::lane_message:
      case Happens::session_message:
      case Happens::malformed_message: {
        const auto found = std::find_if(events.begin(), events.end(), [&](const cci::Event& event) {
          return event.type == EventType::receive && event.connection == connection;
        });
        REQUIRE(found != events.end());
        link->handle(std::move(*found));
        break;
      }
      case Happens::put_ends:
        handle(EventType::send, 1);
        break;
      case Happens::control_fails:
        handle(EventType::send, 3, Status::receiver_not_ready);
        break;
      case Happens::connection_lost:
        handle(EventType::disconnected);
        break;
      case Happens::keepalive_timed_out:
        handle(EventType::keepalive_timed_out);
        break;
      case Happens::path_goes:
        handle(EventType::draining);
        break;
      case Happens::another_comes:
        link->add_lane(0, connect());
        break;
      case Happens::closed_above:
        link->close_lane(0);
        break;
      case Happens::link_fails:
        link->fail(Error{ErrorKind::interrupted, "stopped"});
    }
    link->turn(now);
  }
  [[nodiscard]] size_t told() const {
    const size_t of_our_puts = static_cast<size_t>(
        std::count_if(user.puts.begin(), user.puts.end(), [](const auto& put) { return put.status == Status::success; }));
    return user.lane_messages.size() + user.messages.size() + of_our_puts;
  }
  [[nodiscard]] bool is_ended() {  // as its peer sees it
    turns();
    return std::find(ended.begin(), ended.end(), their) != ended.end();
  }

  const Happens happens;
  cci::Connection connection, their;
};

Outcome observed(State state, Happens happens) {
  Met met(state, happens);
  const bool was_ended = state == State::closing;
  met.happen();
  const bool down = std::count(met.user.lanes.begin(), met.user.lanes.end(), "down 0") > 0;
  if (state == State::waiting ? !met.link->has_lane(0) && !met.is_ended() : down) return Outcome::gone;
  if (!was_ended && met.is_ended()) return Outcome::moves;
  if (met.told() > 0) return Outcome::told;
  if (state != State::waiting) return Outcome::stays;
  // The put of the older connection ends, so that it goes and this one is up.
  cci::Event end;
  end.type = EventType::send;
  end.context = 1;
  for (cci::Event& event : met.events) {
    if (event.type == EventType::send) end.connection = event.connection;
  }
  met.link->handle(std::move(end));
  met.user.puts.clear();
  met.link->turn(met.now);
  met.user.puts.clear();
  CHECK(met.link->live_lanes() == std::vector<LaneIndex>{0});
  return met.told() > 0 ? Outcome::kept : Outcome::stays;
}

}  // namespace

TEST_CASE("lane_states__each_event_in_each_state__as_the_table_says") {
  for (uint8_t in = 0; in < states_count; ++in) {
    for (uint8_t what = 0; what < happens_count; ++what) {
      const auto state = static_cast<State>(in);
      const auto happens = static_cast<Happens>(what);
      CAPTURE(static_cast<int>(state), static_cast<int>(happens));
      const auto wanted = expected(state, happens);
      if (!wanted) continue;
      REQUIRE(static_cast<int>(observed(state, happens)) == static_cast<int>(*wanted));
    }
  }
}
