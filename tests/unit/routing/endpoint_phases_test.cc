// The life of a routed connection at its ends (Phase), as a table: what each routing message does in each phase, and what else may
// happen. `starting` and `hop_accepting` are over before any message can come, and `leaving` takes none.
#include <catch2/catch.hpp>
#include <set>

#include "routing/transport/routed_acceptor.h"
#include "tests/unit/routing/kinds.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Those that take messages, `open` at either end.
enum class Stage : uint8_t { requesting, awaiting_request, offered, accepting, open_dialled, open_accepted };
constexpr uint8_t stages_count = 6;

enum class Outcome : uint8_t {
  stays,    // and what comes next in this phase still does its work
  counted,  // the same, and it is counted as what no honest peer sends
  moves,    // to the next phase
  ends,     // the connection is over, nobody's fault
  cut,      // it is over, and counted
};

// Written by the rules of messages.h and routing/transport/README.md, not row by row.
Outcome expected(Stage stage, std::optional<MessageKind> kind) {
  using Kinds = std::set<MessageKind>;
  if (!kind) return Outcome::cut;
  if (kind == MessageKind::bye) return Outcome::ends;  // whoever gives up says so at any time
  switch (stage) {
    case Stage::requesting:  // the dialler waits for one answer, and may be told what is waited for
      if (kind == MessageKind::connect_reply) return Outcome::moves;
      return kind == MessageKind::connect_pending ? Outcome::stays : Outcome::cut;
    case Stage::awaiting_request:
      return kind == MessageKind::connect_request ? Outcome::moves : Outcome::cut;
    case Stage::offered:  // the application's turn
      return Outcome::cut;
    case Stage::accepting:  // a router of the path may go before the connection is open
      if (kind == MessageKind::connect_ack) return Outcome::moves;
      return kind == MessageKind::draining ? Outcome::stays : Outcome::cut;
    case Stage::open_dialled:
    case Stage::open_accepted:
      if (Kinds{MessageKind::message, MessageKind::message_ack, MessageKind::keepalive, MessageKind::keepalive_ack,
                MessageKind::draining, MessageKind::mailbox_hint}
              .contains(*kind))
        return Outcome::stays;
      // Of fragments that are not there: they may have ended meanwhile.
      if (Kinds{MessageKind::fragment_ack, MessageKind::fragment_released, MessageKind::read_reply}.contains(*kind))
        return Outcome::counted;
      return Outcome::cut;
  }
  return Outcome::cut;
}

struct Met {
  Met()
      : fabric(world, {}),
        peer(world, fabric, "lan", "10.0.0.66"),
        app(world, fabric, "lan", "10.0.0.2", SubnetId{1, 1}, {"sim://10.0.0.66:7000"}) {
    peer.accepts = true;
    app.answer = App::Answer::none;
  }
  bool run(const std::function<bool()>& done) { return peer.run(done, seconds(5)); }
  bool came(EventType type) {
    return run([&] { return app.count(type) > 0; });
  }

  void dial(Duration timeout = seconds(60)) {
    cci::ConnectOptions how;
    how.timeout = timeout;
    REQUIRE(app.endpoint->connect("cci://1:2:10.0.0.9:7000", how));
    app.wake();
  }
  void reach(Stage stage) {
    if (stage == Stage::requesting || stage == Stage::open_dialled) {
      dial();
      REQUIRE(run([&] { return peer.last(MessageKind::connect_request).has_value(); }));
    } else {
      REQUIRE(peer.connect("sim://10.0.0.2:7000", ports::Role::hop));
    }
    if (stage == Stage::open_dialled) go_on(Stage::requesting);
    if (stage == Stage::offered || stage == Stage::accepting || stage == Stage::open_accepted) go_on(Stage::awaiting_request);
    if (stage == Stage::accepting || stage == Stage::open_accepted) go_on(Stage::offered);
    if (stage == Stage::open_accepted) go_on(Stage::accepting);
    world.run_for(milliseconds(20));
    app.take(EventType::accept);
    app.take(EventType::connect);
    before = app.counters.get(Counter::routed_rejected);
  }
  // The step that leads on from a phase: so it is still in it.
  void go_on(Stage stage) {
    switch (stage) {
      case Stage::requesting:
        peer.say(ConnectReply{Status::success, {}, 1392, 1u << 16, {}, 0});
        REQUIRE(came(EventType::connect));
        for (const cci::Event& event : app.events) {
          if (event.type != EventType::connect) continue;
          REQUIRE(event.status == Status::success);
          connection = event.connection;
        }
        return;
      case Stage::awaiting_request:
        peer.say(RawPeer::usual_request(app.uri()));
        REQUIRE(came(EventType::connect_request));
        return;
      case Stage::offered: {
        auto request = app.take(EventType::connect_request);
        REQUIRE(request);
        REQUIRE(app.endpoint->accept(*request, 5) == Status::success);
        connection = request->connection;
        app.wake();
        REQUIRE(run([&] { return peer.last(MessageKind::connect_reply).has_value(); }));
        return;
      }
      case Stage::accepting:
        peer.say_plain(MessageKind::connect_ack);
        REQUIRE(came(EventType::accept));
        connection = app.accepted;
        return;
      case Stage::open_dialled:
      case Stage::open_accepted: {
        REQUIRE(app.endpoint->send(connection, as_bytes("still"), 1) == Status::success);
        app.wake();
        REQUIRE(run([&] { return peer.last(MessageKind::message).has_value(); }));
        encode_ack_and_send(1);
        REQUIRE(came(EventType::send));
        REQUIRE(app.take(EventType::send)->status == Status::success);
        return;
      }
    }
  }
  void encode_ack_and_send(uint64_t next) {
    std::vector<std::byte> message;
    encode(MessageAck{next, Status::success}, message);
    peer.send(message);
  }
  [[nodiscard]] uint64_t rejected() const { return app.counters.get(Counter::routed_rejected) - before; }
  [[nodiscard]] Outcome outcome() {
    world.run_for(milliseconds(50));
    if (peer.gone) return rejected() == 0 ? Outcome::ends : Outcome::cut;
    for (const EventType type : {EventType::connect_request, EventType::connect, EventType::accept}) {
      if (type == EventType::connect_request && stage_is_offered) continue;
      if (app.count(type) > 0) return Outcome::moves;
    }
    return rejected() == 0 ? Outcome::stays : Outcome::counted;
  }

  sim::World world{1};
  sim::Fabric fabric;
  RawPeer peer;
  App app;
  cci::Connection connection;
  uint64_t before = 0;
  bool stage_is_offered = false;  // the request of before stands among the events
};

// What the application hears of the end in each phase.
void check_told(Met& met, Stage stage) {
  switch (stage) {
    case Stage::requesting: {
      REQUIRE(met.app.count(EventType::connect) == 1);
      CHECK(met.app.take(EventType::connect)->status != Status::success);
      break;
    }
    case Stage::awaiting_request:
      CHECK(met.app.events.empty());  // it never knew
      break;
    case Stage::accepting:
    case Stage::offered:
    case Stage::open_dialled:
    case Stage::open_accepted:
      CHECK(met.app.count(EventType::disconnected) + met.app.count(EventType::accept) <= 1);
      CHECK((stage < Stage::open_dialled || met.app.count(EventType::disconnected) == 1));
  }
}

}  // namespace

TEST_CASE("endpoint_phases__each_message_in_each_phase__as_the_table_says") {
  for (uint8_t at = 0; at < stages_count; ++at) {
    const auto stage = static_cast<Stage>(at);
    for (unsigned number = 0; number < 256; ++number) {
      const auto kind = kind_with(static_cast<uint8_t>(number));
      if (!kind && number > 1 && number < 255) continue;  // one of the unknown at either end
      CAPTURE(static_cast<int>(stage), number);
      Met met;
      met.reach(stage);
      met.stage_is_offered = stage == Stage::offered;
      // In `awaiting_request` for this endpoint, else a reply's or a router's own.
      met.peer.send(message_with(static_cast<uint8_t>(number), met.app.uri(), {1, 1}));
      const Outcome outcome = met.outcome();
      REQUIRE(static_cast<int>(outcome) == static_cast<int>(expected(stage, kind)));
      if (outcome == Outcome::stays || outcome == Outcome::counted) met.go_on(stage);
      if (outcome == Outcome::ends || outcome == Outcome::cut) check_told(met, stage);
      if (outcome == Outcome::cut) REQUIRE(met.rejected() == 1);
    }
  }
}

TEST_CASE("endpoint_phases__a_message_as_long_as_agreed__delivered_one_byte_more_ends_it") {
  for (const size_t length_bytes : {size_t{100}, size_t{101}}) {
    CAPTURE(length_bytes);
    Met met;
    REQUIRE(met.peer.connect("sim://10.0.0.2:7000", ports::Role::hop));
    ConnectRequest request = RawPeer::usual_request(met.app.uri());
    request.max_send_bytes = 100;
    met.peer.say(request);
    REQUIRE(met.came(EventType::connect_request));
    met.go_on(Stage::offered);
    met.go_on(Stage::accepting);
    CHECK(met.app.endpoint->max_send_bytes(met.connection) == 100);
    std::vector<std::byte> message;
    encode_message_header(0, message);
    message.resize(message.size() + length_bytes);
    met.peer.send(message);
    met.world.run_for(milliseconds(50));
    CHECK(met.app.count(EventType::receive) == (length_bytes == 100 ? 1 : 0));
    CHECK(met.peer.gone == (length_bytes > 100));
    CHECK(met.app.counters.get(Counter::routed_rejected) == (length_bytes > 100 ? 1 : 0));
  }
}

TEST_CASE("endpoint_phases__any_message_behind_a_bye__is_not_looked_at") {
  for (const Stage stage : {Stage::open_dialled, Stage::open_accepted}) {
    for (unsigned number = 0; number < 256; ++number) {
      if (!kind_with(static_cast<uint8_t>(number)) && number > 0 && number < 255) continue;
      CAPTURE(static_cast<int>(stage), number);
      Met met;
      met.reach(stage);
      met.peer.say(Bye{Status::disconnected, "bye"});
      met.peer.send(message_with(static_cast<uint8_t>(number), met.app.uri(), {1, 1}));  // in one packet with it
      REQUIRE(met.outcome() == Outcome::ends);
      REQUIRE(met.app.count(EventType::disconnected) == 1);
      REQUIRE(met.app.count(EventType::receive) == 0);
    }
  }
}

TEST_CASE("endpoint_phases__the_hop_is_lost__ends_in_each_phase") {
  for (uint8_t at = 0; at < stages_count; ++at) {
    const auto stage = static_cast<Stage>(at);
    CAPTURE(static_cast<int>(stage));
    Met met;
    met.reach(stage);
    met.fabric.reset_network("lan");
    REQUIRE(met.outcome() == Outcome::ends);
    check_told(met, stage);
  }
}

TEST_CASE("endpoint_phases__our_application_leaves__the_peer_hears_it_and_we_tell_nothing") {
  for (const Stage stage : {Stage::accepting, Stage::open_dialled, Stage::open_accepted}) {
    CAPTURE(static_cast<int>(stage));
    Met met;
    met.reach(stage);
    met.app.endpoint->disconnect(met.connection);
    met.app.wake();
    REQUIRE(met.outcome() == Outcome::ends);
    REQUIRE(met.peer.last(MessageKind::bye).has_value());
    REQUIRE(met.app.count(EventType::disconnected) == 0);
  }
  for (const bool rejects : {true, false}) {  // a request is refused, or let go
    Met met;
    met.reach(Stage::offered);
    {
      auto request = met.app.take(EventType::connect_request);
      if (rejects) REQUIRE(met.app.endpoint->reject(*request, "no") == Status::success);
    }
    met.app.wake();
    REQUIRE(met.outcome() == Outcome::ends);
    REQUIRE(decode_connect_reply(*met.peer.last(MessageKind::connect_reply))->status == Status::refused);
  }
}

// The peer's endpoint lives and says nothing: who waits for a step of the peer does not wait for ever.
TEST_CASE("endpoint_phases__the_peer_is_silent__each_phase_ends_but_the_applications_own") {
  const auto after_silence = [](Stage stage, Duration time) {
    Met met;
    met.reach(stage);
    met.world.run_for(time);
    return met.outcome();
  };
  CHECK(after_silence(Stage::requesting, seconds(50)) == Outcome::stays);  // the application's own timeout, 60 s
  CHECK(after_silence(Stage::awaiting_request, request_timeout - seconds(1)) == Outcome::stays);
  CHECK(after_silence(Stage::awaiting_request, request_timeout) == Outcome::cut);
  CHECK(after_silence(Stage::accepting, accept_timeout - seconds(1)) == Outcome::stays);
  CHECK(after_silence(Stage::accepting, accept_timeout) == Outcome::ends);
  Met offered;
  offered.reach(Stage::offered);
  offered.stage_is_offered = true;
  offered.world.run_for(seconds(300));
  CHECK(offered.outcome() == Outcome::stays);
  offered.go_on(Stage::offered);
  for (const Stage stage : {Stage::open_dialled, Stage::open_accepted}) CHECK(after_silence(stage, seconds(120)) == Outcome::ends);
  Met requesting;
  requesting.reach(Stage::requesting);
  requesting.world.run_for(seconds(61));
  REQUIRE(requesting.app.count(EventType::connect) == 1);
  CHECK(requesting.app.take(EventType::connect)->status == Status::timed_out);
  CHECK(requesting.outcome() == Outcome::ends);
}

TEST_CASE("endpoint_phases__dialling__accepted_refused_lost_or_silent") {
  SECTION("accepted: the request goes out") {
    Met met;
    met.dial();
    CHECK(met.run([&] { return met.peer.last(MessageKind::connect_request).has_value(); }));
  }
  SECTION("refused: the next router, and there is none") {
    Met met;
    met.peer.accepts = false;
    met.dial();
    REQUIRE(met.came(EventType::connect));
    CHECK(met.app.take(EventType::connect)->status == Status::unreachable);
  }
  SECTION("silent: as long as a router may take") {
    Met met;
    met.peer.freeze(true);
    met.dial();
    met.world.run_for(router_dial_timeout - seconds(1));
    CHECK(met.app.count(EventType::connect) == 0);
    met.world.run_for(seconds(2));
    REQUIRE(met.app.count(EventType::connect) == 1);
    CHECK(met.app.take(EventType::connect)->status == Status::unreachable);
  }
  SECTION("left") {
    Met met;
    met.peer.freeze(true);
    cci::ConnectOptions how;
    const auto made = met.app.endpoint->connect("cci://1:2:10.0.0.9:7000", how);
    REQUIRE(made);
    met.app.wake();
    met.world.run_for(milliseconds(50));
    met.app.endpoint->disconnect(*made);
    met.app.wake();
    met.world.run_for(seconds(100));
    CHECK(met.app.events.empty());
  }
}
