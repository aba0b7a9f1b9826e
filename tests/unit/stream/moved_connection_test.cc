// Connections that one transport accepts and another one of the process answers.
#include "transports/stream/moved_connection.h"

#include <deque>

#include "tests/unit/stream/own_trust.h"
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using ccixfer::testing::OwnTrust;

// Of the connections of b those with the role of a hop move.
struct Places final : Placement {
  bool goes_elsewhere(ports::Role role) override {
    asked.push_back(role);
    return role == ports::Role::hop;
  }
  void move(MovedConnection connection) override { moved.push_back(std::move(connection)); }
  std::vector<ports::Role> asked;
  std::deque<MovedConnection> moved;
};

// a dials b, and what leaves b goes on at c.
struct Movers {
  explicit Movers(bool secured = false)
      : of_a(secured ? std::make_shared<OwnTrust>() : nullptr),
        of_b(secured ? std::make_shared<OwnTrust>() : nullptr),
        rig({}, of_a, of_b),
        c(rig.hub, "c", {}, of_b) {
    rig.b.transport->set_placement(places);
  }
  bool run(const std::function<bool()>& done) {
    return rig.run([&] {
      c.transport->turn(rig.now);
      return done();
    });
  }
  ConnectionId dial(ports::Role role) {
    ports::DialRequest request;
    request.uri = "mem://b";
    request.role = role;
    request.timeout = std::chrono::seconds(20);
    return *rig.a.transport->dial(request);
  }
  // The one that waits is adopted, accepted, and carries a message each way.
  void carry_on(ConnectionId at_a) {
    c.transport->adopt(std::move(places->moved.front()));
    places->moved.pop_front();
    REQUIRE(run([&] { return !c.sink.requests.empty(); }));
    const ConnectionId at_c = c.sink.requests.back();
    REQUIRE(c.transport->accept(at_c) == Status::success);
    REQUIRE(run([&] { return !rig.a.sink.connected.empty() && !c.sink.accepted.empty(); }));
    CHECK(rig.a.sink.connected.back().status == Status::success);
    REQUIRE(rig.send(rig.a, at_a, bytes_of("there"), 1) == Status::success);
    REQUIRE(rig.send(c, at_c, bytes_of("and back"), 1) == Status::success);
    CHECK(run([&] { return rig.a.sink.messages.size() == 1 && c.sink.messages.size() == 1; }));
    if (of_a) CHECK(c.transport->peer(at_c).proved == of_a->name());
  }
  std::shared_ptr<OwnTrust> of_a, of_b;
  Rig rig;
  End c;
  std::shared_ptr<Places> places = std::make_shared<Places>();
};

}  // namespace

TEST_CASE("moved_connection__with_and_without_proofs__goes_on_at_the_other_transport") {
  const bool secured = GENERATE(false, true);
  Movers movers(secured);
  const ConnectionId id = movers.dial(ports::Role::hop);
  REQUIRE(movers.run([&] { return !movers.places->moved.empty(); }));
  CHECK(movers.rig.b.sink.requests.empty());  // who accepted it never tells its owner
  if (secured) CHECK(movers.of_b->asked.empty());
  movers.carry_on(id);
  if (secured) CHECK(movers.of_b->asked == std::vector{ports::Role::hop});
}

TEST_CASE("moved_connection__of_another_role__stays") {
  Movers movers;
  static_cast<void>(movers.dial(ports::Role::router));
  REQUIRE(movers.run([&] { return !movers.rig.b.sink.requests.empty(); }));
  CHECK(movers.places->moved.empty());
  CHECK(movers.places->asked == std::vector{ports::Role::router});
}

TEST_CASE("moved_connection__of_a_net_that_keeps_its_streams__is_answered_where_it_came") {
  Movers movers;
  movers.rig.b.net->releases = false;
  static_cast<void>(movers.dial(ports::Role::hop));
  REQUIRE(movers.run([&] { return !movers.rig.b.sink.requests.empty(); }));
  CHECK(movers.places->moved.empty());
}

TEST_CASE("moved_connection__whose_dialler_says_more_before_the_answer__ends") {
  Movers movers;
  RawPeer peer(movers.rig, "p");
  wire::Hello hello = RawPeer::usual();
  hello.role = ports::Role::hop;
  Buffer both;
  wire::Writer out(both);
  wire::encode(out, hello);
  wire::encode_empty(out, wire::Kind::keepalive);
  peer.write(both);
  movers.rig.pass(std::chrono::seconds(5));
  peer.read();
  CHECK(movers.places->moved.empty());
  CHECK(peer.closed);
  CHECK(movers.rig.b.counters.get(Counter::hello_rejected) == 1);
}

TEST_CASE("moved_connection__that_a_full_transport_gets__is_closed") {
  Movers movers;
  ports::TransportOptions one;
  one.connections_max = 1;
  End full(movers.rig.hub, "full", one);
  ports::DialRequest request;
  request.uri = "mem://c";
  REQUIRE(full.transport->dial(request));  // its one place
  static_cast<void>(movers.dial(ports::Role::hop));
  REQUIRE(movers.run([&] { return !movers.places->moved.empty(); }));
  full.transport->adopt(std::move(movers.places->moved.front()));
  full.transport->turn(movers.rig.now);
  CHECK(full.sink.requests.empty());
}

TEST_CASE("moved_connection__that_nobody_adopts__takes_no_place_where_it_came") {
  ports::TransportOptions few;
  few.pending_requests_max = 2;
  Movers movers;
  End narrow(movers.rig.hub, "b", few);
  narrow.transport->set_placement(movers.places);
  for (size_t i = 0; i < 5; ++i) {
    static_cast<void>(movers.dial(ports::Role::hop));
    REQUIRE(movers.run([&] {
      narrow.transport->turn(movers.rig.now);
      return movers.places->moved.size() == i + 1;
    }));
  }
  CHECK_FALSE(narrow.net->accept_paused);
}

}  // namespace ccixfer::stream::testing
