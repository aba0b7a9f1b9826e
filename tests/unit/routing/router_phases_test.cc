// The life of a routed connection at a router (PairPhase), and of its links to other routers (LinkPhase), as tables: what each
// message does in each phase, from either side. `accepting` is over before any message can come, and `closing` takes none.
#include <catch2/catch.hpp>
#include <set>

#include "routing/router/relayed_connections.h"
#include "tests/unit/routing/kinds.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* router_uri = "sim://10.0.0.1:7000";
const std::string destination = "cci://1:2:10.0.0.77:7000";

enum class Outcome : uint8_t {
  stays,    // and what comes next in this phase still does its work
  counted,  // the same, and it is counted as what no honest peer sends
  passes,   // the other side hears it, or what is answered for it
  moves,    // to the next phase
  ends,     // the connection is over, nobody's fault
  cut,      // it is over, and counted
};
using Kinds = std::set<MessageKind>;

std::vector<uint8_t> numbers_to_try() {
  std::vector<uint8_t> numbers;
  for (unsigned number = 0; number < 256; ++number) {
    const auto byte = static_cast<uint8_t>(number);
    if (kind_with(byte) || number == 0 || number == 255) numbers.push_back(byte);  // one of the unknown at either end
  }
  return numbers;
}

struct Network {
  explicit Network(std::vector<std::string> peers = {})
      : fabric(world, {}), left(world, fabric, "left", "10.0.0.66"), right(world, fabric, "right", "10.0.0.77") {
    left.accepts = !peers.empty();
    right.accepts = true;
    RouterOptions options;
    options.fragment_bytes = 64u << 10;
    options.memory_bytes = 16u * (64u << 10);
    router = std::make_unique<RouterNode>(
        world, fabric, "router",
        std::vector<DeviceSpec>{{"left", "10.0.0.1", {1, 1}, std::move(peers)}, {"right", "10.0.0.1", {1, 2}, {}}}, options);
    world.run_for(milliseconds(20));
  }
  bool run(const std::function<bool()>& done) { return left.run(done, seconds(5)); }
  [[nodiscard]] uint64_t rejected() const { return router->counters.get(Counter::routed_rejected) - before; }
  void look() { before = router->counters.get(Counter::routed_rejected); }

  sim::World world{1};
  sim::Fabric fabric;
  RawPeer left, right;
  std::unique_ptr<RouterNode> router;
  uint64_t before = 0;
};

// --- A connection: the initiator is on the left, the destination on the right ---

enum class Stage : uint8_t { awaiting_request, dialling, requesting, open };
constexpr uint8_t stages_count = 4;

Outcome expected(Stage stage, int side, std::optional<MessageKind> kind) {
  if (!kind) return Outcome::cut;
  if (kind == MessageKind::bye) return Outcome::ends;  // whoever gives up says so at any time
  switch (stage) {
    case Stage::awaiting_request:
      return kind == MessageKind::connect_request ? Outcome::moves : Outcome::cut;
    case Stage::dialling:  // the initiator has nothing to say until it has its answer
      return Outcome::cut;
    case Stage::requesting:
      if (side == 0) return Outcome::cut;
      if (kind == MessageKind::connect_reply) return Outcome::moves;
      return kind == MessageKind::connect_pending ? Outcome::passes : Outcome::cut;
    case Stage::open:
      if (kind == MessageKind::connect_ack) return side == 0 ? Outcome::passes : Outcome::cut;
      if (Kinds{MessageKind::message, MessageKind::message_ack, MessageKind::keepalive, MessageKind::keepalive_ack,
                MessageKind::fragment_ack, MessageKind::mailbox_hint}
              .contains(*kind))
        return Outcome::passes;
      if (kind == MessageKind::fragment_released) return Outcome::counted;  // of a fragment that is not there
      // The router's own business: the fragment cannot be pulled, and the asker hears so; that an end watches is for hops.
      if (Kinds{MessageKind::write_request, MessageKind::read_request, MessageKind::end_to_end_keepalive}.contains(*kind))
        return Outcome::stays;
      return Outcome::cut;  // only routers stop as planned, for one, and only what was asked for is answered
  }
  return Outcome::cut;
}

struct Connection : Network {
  void reach(Stage stage) {
    REQUIRE(left.connect(router_uri, ports::Role::hop));
    world.run_for(milliseconds(20));
    if (stage == Stage::dialling) right.freeze(true);
    if (stage != Stage::awaiting_request) say_request();
    if (stage == Stage::requesting || stage == Stage::open) await_request();
    if (stage == Stage::open) go_on(Stage::requesting);
    world.run_for(milliseconds(20));
    left.received.clear();
    right.received.clear();
    look();
  }
  void say_request() {
    ConnectRequest request = RawPeer::usual_request(destination);
    request.timeout = seconds(60);
    REQUIRE(left.say(request) == Status::success);
  }
  void await_request() {
    REQUIRE(run([&] { return right.last(MessageKind::connect_request).has_value(); }));
  }
  // The step that leads on from a phase: so it is still in it.
  void go_on(Stage stage) {
    switch (stage) {
      case Stage::awaiting_request:
        say_request();
        return await_request();
      case Stage::dialling:
        right.freeze(false);
        return await_request();
      case Stage::requesting:
        REQUIRE(right.say(ConnectReply{Status::success, {}, 1392, 1u << 16, {}, 0}) == Status::success);
        REQUIRE(run([&] { return left.last(MessageKind::connect_reply).has_value(); }));
        CHECK(decode_connect_reply(*left.last(MessageKind::connect_reply))->status == Status::success);
        return;
      case Stage::open: {
        for (RawPeer* from : {&left, &right}) {
          RawPeer& to = from == &left ? right : left;
          to.received.clear();
          from->say_plain(MessageKind::keepalive);
          REQUIRE(run([&] { return to.last(MessageKind::keepalive).has_value(); }));
        }
      }
    }
  }
  Outcome outcome(Stage stage, int side) {
    world.run_for(milliseconds(200));
    if (left.gone) return rejected() == 0 ? Outcome::ends : Outcome::cut;
    const RawPeer& other = side == 0 ? right : left;
    if (stage == Stage::awaiting_request && other.last(MessageKind::connect_request)) return Outcome::moves;
    if (stage == Stage::requesting && other.last(MessageKind::connect_reply)) return Outcome::moves;
    if (!other.received.empty()) return Outcome::passes;
    return rejected() == 0 ? Outcome::stays : Outcome::counted;
  }
};

// --- A link ---

enum class LinkStage : uint8_t { greeting_by_us, greeting_by_the_router, open };
constexpr uint8_t link_stages_count = 3;

Outcome expected(LinkStage stage, std::optional<MessageKind> kind) {
  if (!kind) return Outcome::cut;
  if (stage != LinkStage::open) return kind == MessageKind::router_hello ? Outcome::moves : Outcome::cut;
  return Kinds{MessageKind::record, MessageKind::keepalive, MessageKind::keepalive_ack}.contains(*kind) ? Outcome::stays
                                                                                                        : Outcome::cut;
}

struct LinkedNetwork : Network {
  explicit LinkedNetwork(LinkStage stage)
      : Network(stage == LinkStage::greeting_by_the_router ? std::vector<std::string>{"sim://10.0.0.66:7000"}
                                                           : std::vector<std::string>{}) {
    if (stage == LinkStage::greeting_by_the_router) {
      REQUIRE(run([&] { return left.answered; }));
    } else {
      REQUIRE(left.connect(router_uri, ports::Role::router));
    }
    REQUIRE(run([&] { return left.last(MessageKind::router_hello).has_value(); }));
    if (stage == LinkStage::open) say_hello();
    world.run_for(milliseconds(20));
    left.received.clear();
    look();
  }
  void say_hello() {
    left.say(RouterHello{99, {1, 1}, "sim://10.0.0.66:7000"});
    REQUIRE(run([&] { return left.last(MessageKind::record).has_value(); }));  // its own: the link is open
  }
  void go_on(LinkStage stage) {
    if (stage != LinkStage::open) return say_hello();
    left.received.clear();
    left.say_plain(MessageKind::keepalive);
    REQUIRE(run([&] { return left.last(MessageKind::keepalive_ack).has_value(); }));
  }
  Outcome outcome(LinkStage stage) {
    world.run_for(milliseconds(200));
    if (left.gone) return rejected() == 0 ? Outcome::ends : Outcome::cut;
    if (stage != LinkStage::open && left.last(MessageKind::record)) return Outcome::moves;
    return rejected() == 0 ? Outcome::stays : Outcome::counted;
  }
};

int as_number(Outcome outcome) { return static_cast<int>(outcome); }

}  // namespace

TEST_CASE("router_phases__each_message_in_each_phase_from_either_side__as_the_table_says") {
  for (uint8_t at = 0; at < stages_count; ++at) {
    const auto stage = static_cast<Stage>(at);
    for (const int side : {0, 1}) {
      if (side == 1 && stage < Stage::requesting) continue;  // there is nobody yet
      for (const uint8_t number : numbers_to_try()) {
        CAPTURE(static_cast<int>(stage), side, static_cast<int>(number));
        Connection met;
        met.reach(stage);
        RawPeer& from = side == 0 ? met.left : met.right;
        from.send(message_with(number, destination, {1, 1}));
        const Outcome outcome = met.outcome(stage, side);
        REQUIRE(as_number(outcome) == as_number(expected(stage, side, kind_with(number))));
        if (outcome == Outcome::stays || outcome == Outcome::counted || outcome == Outcome::passes) met.go_on(stage);
        if (outcome == Outcome::ends || outcome == Outcome::cut) {
          met.world.run_for(seconds(10));  // a dial under way is let go
          REQUIRE((stage < Stage::requesting || met.right.gone));
          REQUIRE(met.router->router->fragments_in_use() == 0);
          REQUIRE((outcome == Outcome::ends || met.rejected() == 1));
        }
      }
    }
  }
}

TEST_CASE("router_phases__any_message_behind_a_bye__is_not_passed_on") {
  for (const int side : {0, 1}) {
    for (const uint8_t number : numbers_to_try()) {
      if (!kind_with(number)) continue;  // those are counted, wherever they come
      CAPTURE(side, static_cast<int>(number));
      Connection met;
      met.reach(Stage::open);
      RawPeer& from = side == 0 ? met.left : met.right;
      RawPeer& other = side == 0 ? met.right : met.left;
      from.say(Bye{Status::disconnected, "bye"});
      from.send(message_with(number, destination, {1, 1}));
      REQUIRE(met.outcome(Stage::open, side) == Outcome::ends);
      REQUIRE(other.gone);
      REQUIRE(other.received.size() == 1);  // the bye
    }
  }
}

TEST_CASE("router_phases__a_side_is_lost__the_other_hears_it_in_each_phase") {
  for (uint8_t at = 0; at < stages_count; ++at) {
    const auto stage = static_cast<Stage>(at);
    for (const int side : {0, 1}) {
      if (side == 1 && stage < Stage::requesting) continue;
      CAPTURE(static_cast<int>(stage), side);
      Connection met;
      met.reach(stage);
      met.fabric.reset_network(side == 0 ? "left" : "right");
      met.world.run_for(seconds(10));
      CHECK(met.left.gone);
      CHECK((stage < Stage::requesting || met.right.gone));
      CHECK(met.rejected() == 0);
      if (side == 0 || stage == Stage::open) continue;
      REQUIRE(met.left.last(MessageKind::connect_reply));  // no other way
      CHECK(decode_connect_reply(*met.left.last(MessageKind::connect_reply))->status == Status::unreachable);
    }
  }
}

TEST_CASE("router_phases__nobody_says_anything__each_phase_but_open_has_its_end") {
  const auto after_silence = [](Stage stage, Duration time) {
    Connection met;
    met.reach(stage);
    met.world.run_for(time);
    met.left.received.clear();  // connect_pending
    return met.outcome(stage, 0);
  };
  CHECK(after_silence(Stage::awaiting_request, hop_request_timeout - seconds(1)) == Outcome::stays);
  CHECK(after_silence(Stage::awaiting_request, hop_request_timeout) == Outcome::cut);
  CHECK(after_silence(Stage::dialling, hop_dial_timeout - seconds(1)) == Outcome::stays);
  CHECK(after_silence(Stage::dialling, hop_dial_timeout) == Outcome::ends);
  CHECK(after_silence(Stage::requesting, seconds(59)) == Outcome::stays);  // the request's own timeout
  CHECK(after_silence(Stage::requesting, seconds(60)) == Outcome::ends);
  CHECK(after_silence(Stage::open, seconds(300)) == Outcome::stays);  // the ends' business
}

TEST_CASE("link_phases__each_message_in_each_phase__as_the_table_says") {
  for (uint8_t at = 0; at < link_stages_count; ++at) {
    const auto stage = static_cast<LinkStage>(at);
    for (const uint8_t number : numbers_to_try()) {
      CAPTURE(static_cast<int>(stage), static_cast<int>(number));
      LinkedNetwork met(stage);
      met.left.send(message_with(number, destination, {1, 1}));
      const Outcome outcome = met.outcome(stage);
      REQUIRE(as_number(outcome) == as_number(expected(stage, kind_with(number))));
      if (outcome == Outcome::stays) met.go_on(stage);
      if (outcome == Outcome::cut) REQUIRE(met.rejected() == 1);
    }
  }
}

TEST_CASE("link_phases__lost_or_silent__ends_or_stays") {
  for (uint8_t at = 0; at < link_stages_count; ++at) {
    const auto stage = static_cast<LinkStage>(at);
    CAPTURE(static_cast<int>(stage));
    {
      LinkedNetwork met(stage);
      met.fabric.reset_network("left");
      CHECK(met.outcome(stage) == Outcome::ends);
      met.left.gone = false;
      REQUIRE(met.left.greet(router_uri, 98, {1, 1}));  // another link is welcome
    }
    LinkedNetwork met(stage);
    met.world.run_for(hop_request_timeout - seconds(1));
    CHECK(met.outcome(stage) == Outcome::stays);
    met.world.run_for(seconds(1));
    CHECK(met.outcome(stage) == (stage == LinkStage::open ? Outcome::stays : Outcome::cut));
  }
}
