// The question for a map: what the asker makes of every answer and of none, and what a router lets be asked.
#include "routing/router/map_query.h"

#include <catch2/catch.hpp>

#include "routing/router/admin_desk.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* router_uri = "sim://10.0.0.1:7000";

// An asker, and a peer that answers as a router would, or as none would.
struct Asked {
  explicit Asked(const std::string& uri = router_uri, Duration timeout = seconds(5)) {
    peer.accepts = true;
    query.emplace(*app.endpoint, uri, timeout, 42);
    begun = world.now();
    app.wake();
    if (!query->done()) query->turn(world.now());
  }
  // What has come for the asker.
  void hear() {
    for (const cci::Event& event : app.events) CHECK(query->on_event(event) == (event.context == 42));
    app.events.clear();
    app.wake();
    query->turn(world.now());
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(10)) {
    return world.run_until([&] { return hear(), done(); }, after(world.now(), at_most)) == sim::RunEnd::reached;
  }
  void await_question() {
    REQUIRE(run([&] { return peer.last(MessageKind::map_request).has_value(); }));
  }
  void answer(MessageKind kind, const std::optional<RouterRecord>& record = {}) {
    std::vector<std::byte> raw, message;
    if (record) REQUIRE(encode_record(*record, raw));
    encode_record_message(kind, raw, message);
    while (peer.send(message) == Status::no_buffers) run([] { return false; }, milliseconds(1));
  }
  void check_failed(ErrorKind kind, const std::string& words) {
    REQUIRE(run([&] { return query->done(); }));
    REQUIRE_FALSE(query->result());
    CHECK(query->result().error().kind == kind);
    INFO(query->result().error().message);
    CHECK(query->result().error().message.find(words) != std::string::npos);
    CHECK(query->next_deadline() == never);
  }

  sim::World world{6};
  sim::Fabric fabric{world, {}};
  RawPeer peer{world, fabric, "lan", "10.0.0.1"};
  App app{world, fabric, "lan", "10.0.0.9", {9, 9}, {}};
  std::optional<MapQuery> query;
  Instant begun{};
};

RouterRecord some(uint64_t id) {
  RouterRecord record{id, 1, false, {}};
  record.devices.push_back({{1, 5}, 1'000'000'000, 0, true, false, {}, "sim://10.0.0.5:7000", 0});
  return record;
}

struct Routed {
  Routed() {
    RouterOptions options;
    options.fragment_bytes = 64u << 10;
    options.memory_bytes = 16u * (64u << 10);
    node = std::make_unique<RouterNode>(world, fabric, "router",
                                        std::vector<DeviceSpec>{{"lan", "10.0.0.1", {1, 1}, {}}, {"right", "10.3.0.1", {1, 3}, {}}},
                                        options);
    world.run_for(milliseconds(20));
  }
  sim::World world{6};
  sim::Fabric fabric{world, {}};
  std::unique_ptr<RouterNode> node;
};

}  // namespace

TEST_CASE("map_query__answered__the_records_in_their_order_and_the_connection_is_given_back") {
  Asked asked;
  CHECK(asked.query->next_deadline() == asked.begun + seconds(5));
  asked.await_question();
  asked.answer(MessageKind::map_record, some(1));
  asked.answer(MessageKind::map_record, some(2));
  asked.run([] { return false; }, milliseconds(50));
  CHECK_FALSE(asked.query->done());
  asked.answer(MessageKind::map_end);
  REQUIRE(asked.run([&] { return asked.query->done(); }));
  REQUIRE(asked.query->result());
  CHECK(*asked.query->result() == std::vector<RouterRecord>{some(1), some(2)});
  CHECK(asked.query->next_deadline() == never);
  CHECK(asked.run([&] { return asked.peer.gone; }));
  // Nothing that comes later changes it.
  asked.query->turn(asked.world.now() + seconds(60));
  cci::Event late;
  late.type = EventType::disconnected;
  late.context = 42;
  CHECK(asked.query->on_event(late));
  CHECK(asked.query->result());
  late.context = 41;
  CHECK_FALSE(asked.query->on_event(late));
}

TEST_CASE("map_query__of_an_address_that_is_none__done_at_once_with_the_reason") {
  Asked asked("nothing");
  REQUIRE(asked.query->done());
  REQUIRE_FALSE(asked.query->result());
  CHECK(asked.query->result().error().kind == ErrorKind::usage);
}

TEST_CASE("map_query__events_of_others__are_not_its_own") {
  Asked asked;
  cci::Event event;
  event.type = EventType::disconnected;
  event.context = 43;
  CHECK_FALSE(asked.query->on_event(event));
  CHECK_FALSE(asked.query->done());
  event.type = EventType::send;
  event.context = 42;
  CHECK(asked.query->on_event(event));
  CHECK_FALSE(asked.query->done());
}

TEST_CASE("map_query__refused_or_nobody_there__no_answer_with_the_words") {
  Asked asked(GENERATE(as<std::string>{}, router_uri, "sim://10.0.0.77:7000"));
  asked.peer.accepts = false;
  asked.check_failed(ErrorKind::no_answer, "sim://10.0.0.");
}

TEST_CASE("map_query__not_let_in_or_no_way__the_kind_says_which") {
  const auto [status, kind] = GENERATE(table<Status, ErrorKind>({{Status::version, ErrorKind::protocol},
                                                                 {Status::no_route, ErrorKind::no_route},
                                                                 {Status::not_authenticated, ErrorKind::authentication},
                                                                 {Status::not_authorised, ErrorKind::not_authorised}}));
  Asked asked;
  cci::Event event;
  event.type = EventType::connect;
  event.context = 42;
  event.status = status;
  event.reason = "they speak 9";
  CHECK(asked.query->on_event(event));
  asked.check_failed(kind, "they speak 9");
  CHECK(asked.query->refused().status == status);
  CHECK(asked.query->refused().reason == "they speak 9");
}

TEST_CASE("map_query__refused_in_words__the_kind_is_that_of_the_words") {
  const auto [words, kind] = GENERATE(table<std::string, ErrorKind>(
      {{std::string(words_of_no_grant) + "we may not ask here", ErrorKind::not_authorised}, {"too many", ErrorKind::no_answer}}));
  Asked asked;
  cci::Event event;
  event.type = EventType::connect;
  event.context = 42;
  event.status = Status::refused;
  event.reason = words;
  CHECK(asked.query->on_event(event));
  asked.check_failed(kind, std::string(router_uri) + ": " + words);
}

TEST_CASE("map_query__the_router_takes_the_question_and_says_nothing__no_answer_in_time") {
  Asked asked;
  asked.await_question();
  asked.answer(MessageKind::map_record, some(1));
  asked.run([] { return false; }, asked.begun + seconds(5) - milliseconds(1) - asked.world.now());
  CHECK_FALSE(asked.query->done());
  asked.run([] { return false; }, milliseconds(2));
  asked.check_failed(ErrorKind::no_answer, "no answer in time: somebody is there, who may be no router");
  CHECK(asked.run([&] { return asked.peer.gone; }));
}

TEST_CASE("map_query__the_router_leaves__a_network_error") {
  Asked asked;
  SECTION("before the end of its answer") {
    asked.await_question();
    asked.answer(MessageKind::map_record, some(1));
    asked.peer.endpoint->disconnect(asked.peer.connection);
    asked.check_failed(ErrorKind::network, router_uri);
  }
  SECTION("without a word") {
    cci::Event event;
    event.type = EventType::disconnected;
    event.context = 42;
    CHECK(asked.query->on_event(event));
    asked.check_failed(ErrorKind::network, "the router left");
  }
  SECTION("before it could be asked") {
    cci::Event event;  // of a connection that is no more
    event.type = EventType::connect;
    event.context = 42;
    CHECK(asked.query->on_event(event));
    asked.check_failed(ErrorKind::network, "cannot ask");
  }
}

TEST_CASE("map_query__an_answer_that_no_router_gives__protocol_error_and_the_end") {
  Asked asked;
  asked.await_question();
  SECTION("a record that is none") {
    std::vector<std::byte> message;
    encode_record_message(MessageKind::map_record, as_bytes("not a record"), message);
    asked.peer.send(message);
  }
  SECTION("a record that nobody asked for") { asked.answer(MessageKind::record, some(1)); }
  SECTION("another message") { asked.peer.say_plain(MessageKind::keepalive); }
  SECTION("no routing message at all") { asked.peer.send({std::byte{255}, {}, {}, {}}); }
  asked.check_failed(ErrorKind::protocol, "not the answer of a router");
  CHECK(asked.run([&] { return asked.peer.gone; }));
}

TEST_CASE("map_query__as_many_records_as_there_may_be__taken_and_not_one_more") {
  constexpr size_t most = 1 + records_max + foreign_records_max;  // the router's own, and all that it hears
  const size_t count = most + GENERATE(0u, 1u);
  Asked asked("sim://10.0.0.1:7000", seconds(60));
  asked.await_question();
  for (size_t i = 0; i < count && !asked.query->done(); ++i) asked.answer(MessageKind::map_record, some(i + 1));
  asked.answer(MessageKind::map_end);
  if (count > most) return asked.check_failed(ErrorKind::protocol, "not the answer of a router");
  REQUIRE(asked.run([&] { return asked.query->done(); }));
  REQUIRE(asked.query->result());
  CHECK(asked.query->result()->size() == count);
}

TEST_CASE("map_query__let_go_unanswered__the_router_is_left") {
  Asked asked;
  asked.await_question();
  asked.query.reset();
  asked.app.wake();
  CHECK(asked.peer.run([&] { return asked.peer.gone; }, seconds(2)));
}

TEST_CASE("router_admin__as_many_as_there_may_be__more_are_refused_until_one_has_left") {
  Routed met;
  RawPeer asker(met.world, met.fabric, "lan", "10.0.0.9");
  std::vector<cci::Connection> open;
  for (size_t i = 0; i < admins_max; ++i) {
    REQUIRE(asker.connect(router_uri, ports::Role::admin));
    open.push_back(asker.connection);
  }
  CHECK_FALSE(asker.connect(router_uri, ports::Role::admin));
  CHECK(asker.words.find("too many administrators") != std::string::npos);
  asker.endpoint->disconnect(open.front());
  asker.wake();
  met.world.run_for(milliseconds(50));
  CHECK(asker.connect(router_uri, ports::Role::admin));
  CHECK_FALSE(asker.connect(router_uri, ports::Role::admin));
}

TEST_CASE("router_admin__asks_twice__is_answered_each_time_and_is_not_shown_who_has_left") {
  Routed met;
  RawPeer router(met.world, met.fabric, "lan", "10.0.0.66"), asker(met.world, met.fabric, "lan", "10.0.0.9");
  REQUIRE(router.greet(router_uri, 66, {1, 1}));
  REQUIRE(router.tell(some(50)));
  REQUIRE(router.tell(some(51)));
  REQUIRE(router.tell({51, 2, true, {}}));
  REQUIRE(asker.connect(router_uri, ports::Role::admin));
  for (int i = 0; i < 2; ++i) {
    asker.received.clear();
    asker.say_plain(MessageKind::map_request);
    REQUIRE(asker.run([&] { return asker.last(MessageKind::map_end).has_value(); }, seconds(2)));
    REQUIRE(asker.received.size() == 3);
    const auto own = decode_record(record_of(Bytes(asker.received[0])));
    REQUIRE(own);
    CHECK(own->devices.size() == 2);
    CHECK(decode_record(record_of(Bytes(asker.received[1]))) == some(50));
    CHECK(kind_of(Bytes(asker.received[0])) == MessageKind::map_record);
    CHECK(kind_of(Bytes(asker.received[1])) == MessageKind::map_record);
    CHECK(kind_of(Bytes(asker.received[2])) == MessageKind::map_end);
  }
  CHECK_FALSE(asker.gone);
  CHECK(met.node->counters.get(Counter::routed_rejected) == 0);
}

TEST_CASE("router_admin__is_pinged__stays_and_still_answers_a_question") {
  Routed met;
  RawPeer asker(met.world, met.fabric, "lan", "10.0.0.9");
  REQUIRE(asker.connect(router_uri, ports::Role::admin));
  for (int i = 0; i < 3; ++i) asker.send(std::vector<std::byte>(ping_message_bytes));
  met.world.run_for(milliseconds(50));
  CHECK_FALSE(asker.gone);
  asker.say_plain(MessageKind::map_request);
  REQUIRE(asker.run([&] { return asker.last(MessageKind::map_end).has_value(); }, seconds(2)));
  CHECK(met.node->counters.get(Counter::routed_rejected) == 0);
  const bool is_longer = GENERATE(true, false);
  asker.send(
      std::vector<std::byte>(is_longer ? ping_message_bytes + 1 : ping_message_bytes, is_longer ? std::byte{0} : std::byte{1}));
  CHECK(asker.run([&] { return asker.gone; }, seconds(2)));
}

TEST_CASE("router_admin__a_long_answer_to_a_slow_reader__arrives_whole") {
  const bool impatient = GENERATE(false, true);
  Routed met;
  RawPeer router(met.world, met.fabric, "lan", "10.0.0.66"), asker(met.world, met.fabric, "lan", "10.0.0.9");
  REQUIRE(router.greet(router_uri, 66, {1, 1}));
  constexpr size_t count = 1000;  // more than a connection has under way
  for (uint64_t id = 0; id < count; ++id) {
    std::vector<std::byte> raw, message;
    REQUIRE(encode_record(some(1000 + id), raw));
    encode_record_message(MessageKind::record, raw, message);
    while (router.send(message) == Status::no_buffers) met.world.run_for(milliseconds(1));
  }
  met.world.run_for(seconds(1));
  REQUIRE(met.node->router->routers_known() == 1 + count);
  REQUIRE(asker.connect(router_uri, ports::Role::admin));
  asker.say_plain(MessageKind::map_request);
  if (impatient) asker.say_plain(MessageKind::map_request);
  asker.turn(met.world.now());  // it goes out, and then it does not read for a while
  asker.freeze(true);
  met.world.run_for(seconds(1));
  asker.freeze(false);
  if (impatient) {
    REQUIRE(asker.run([&] { return asker.gone; }, seconds(5)));
    CHECK(asker.received.size() <= count + 1);
    CHECK_FALSE(asker.last(MessageKind::map_end));
    CHECK(met.node->counters.get(Counter::routed_rejected) == 1);
  } else {
    REQUIRE(asker.run([&] { return asker.last(MessageKind::map_end).has_value(); }, seconds(5)));
    CHECK(asker.received.size() == count + 2);
    CHECK(met.node->counters.get(Counter::routed_rejected) == 0);
  }
}

TEST_CASE("router_admin__says_anything_else__counted_and_closed") {
  Routed met;
  RawPeer asker(met.world, met.fabric, "lan", "10.0.0.9");
  REQUIRE(asker.connect(router_uri, ports::Role::admin));
  asker.say_plain(GENERATE(MessageKind::keepalive, MessageKind::map_end));
  REQUIRE(asker.run([&] { return asker.gone; }, seconds(2)));
  CHECK(asker.received.empty());
  CHECK(met.node->counters.get(Counter::routed_rejected) == 1);
}
