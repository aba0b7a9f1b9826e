// What becomes of a connect at a router: whom it asks, in what words, which of several answers the initiator gets, and when.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "routing/router/relayed_connections.h"
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

enum class Does : uint8_t { replies, leaves, says_bye, lies };
struct Step {  // of a router that is asked
  Does does = Does::replies;
  Status status = Status::no_route;
  std::string reason = {};
};

// An initiator on the left; on the middle, beside one another, routers that say they lead to the destination; on the right, subnet
// 1:3, where the router itself leads.
struct Ways {
  explicit Ways(size_t others) : fabric(world, {}), initiator(world, fabric, "left", "10.0.0.66") {
    RouterOptions options;
    options.fragment_bytes = 64u << 10;
    options.memory_bytes = 16u * (64u << 10);
    node = std::make_unique<RouterNode>(world, fabric, "router",
                                        std::vector<DeviceSpec>{{"left", "10.0.0.1", {1, 1}, {}, false, {}, 1'000'000'000},
                                                                {"mid", "10.9.0.1", {1, 9}, {}, false, {}, 2'000'000'000},
                                                                {"right", "10.3.0.1", {1, 3}, {}, false, {}, 3'000'000'000}},
                                        options);
    world.run_for(milliseconds(20));
    for (size_t i = 0; i < others; ++i) add_router(fmt::format("10.9.0.{}", 10 + i), 100 + i);
  }
  // That it leads to the destination's subnet; it is dialled where it says.
  void add_router(const std::string& address, uint64_t id, const std::string& said = {}) {
    auto peer = std::make_unique<RawPeer>(world, fabric, "mid", address);
    peer->accepts = true;
    REQUIRE(peer->greet("sim://10.9.0.1:7000", id, {1, 9}));
    RouterRecord record{id, 1, false, {}};
    const std::string uri = said.empty() ? peer->endpoint->uri() : said;
    record.devices.push_back({{1, 9}, 2'000'000'000, 0, true, false, {}, uri, 0});
    record.devices.push_back({{1, 2}, 2'000'000'000, 0, true, false, {}, "sim://10.2.0.1:7000", 0});
    REQUIRE(peer->tell(record));
    peer->requests.clear();
    peers.push_back(std::move(peer));
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(20)) { return initiator.run(done, at_most); }
  void ask(const ConnectRequest& what) {
    REQUIRE(initiator.connect(router_uri, ports::Role::hop));
    asked_at = world.now();
    REQUIRE(initiator.say(what) == Status::success);
  }
  void ask(const std::string& to = destination, Duration timeout = seconds(60)) {
    ConnectRequest usual = RawPeer::usual_request(to);
    usual.timeout = timeout;
    ask(usual);
  }
  // The one that has the request now.
  RawPeer& asked() {
    RawPeer* found = nullptr;
    REQUIRE(run([&] {
      for (auto& peer : peers) found = peer->last(MessageKind::connect_request) ? peer.get() : found;
      return found != nullptr;
    }));
    request = *decode_connect_request(*found->last(MessageKind::connect_request));
    found->received.clear();
    return *found;
  }
  void act(RawPeer& peer, const Step& step) {
    switch (step.does) {
      case Does::replies: {
        ConnectReply reply{step.status, step.reason, 1392, 1u << 16, {}, 0};
        REQUIRE(peer.say(reply) == Status::success);
        return;
      }
      case Does::leaves:
        peer.endpoint->disconnect(peer.connection);
        peer.wake();
        return;
      case Does::says_bye:
        peer.say(Bye{step.status, step.reason});
        return;
      case Does::lies:
        peer.send({static_cast<std::byte>(MessageKind::connect_reply), {}, {}, {}, std::byte{1}});
        return;
    }
  }
  ConnectReply answer(Duration at_most = seconds(20)) {
    REQUIRE(run([&] { return initiator.last(MessageKind::connect_reply).has_value(); }, at_most));
    answered_after = world.now() - asked_at;
    return *decode_connect_reply(*initiator.last(MessageKind::connect_reply));
  }
  [[nodiscard]] size_t times_asked() const {
    size_t count = 0;
    for (const auto& peer : peers) count += peer->requests.size();
    return count;
  }
  [[nodiscard]] uint64_t counted(Counter counter) const { return node->counters.get(counter); }
  void nothing_is_left() {
    initiator.endpoint->disconnect(initiator.connection);
    initiator.wake();
    CHECK(run([&] { return node->router->connections_open() == 0; }, seconds(15)));
  }
  // How many connects may be under way besides those that are.
  size_t room(const std::string& address = "10.0.0.68") {
    RawPeer many(world, fabric, "left", address);
    size_t taken = 0;
    while (taken <= connections_setting_up_max && many.connect(router_uri, ports::Role::hop)) ++taken;
    many_words = many.words;
    return taken;
  }

  sim::World world{3};
  sim::Fabric fabric;
  RawPeer initiator;
  std::unique_ptr<RouterNode> node;
  std::vector<std::unique_ptr<RawPeer>> peers;
  ConnectRequest request;
  Instant asked_at{};
  Duration answered_after{};
  std::string many_words;
};

}  // namespace

TEST_CASE("router_ways__what_two_routers_answer__the_one_that_knows_most_is_believed") {
  struct Row {
    std::vector<Step> steps;
    Status status;
    std::string reason;  // some of its words
  };
  const Step no_way_a{Does::replies, Status::no_route, "a"}, no_way_b{Does::replies, Status::no_route, "b"};
  const Step unreachable_a{Does::replies, Status::unreachable, "a"}, unreachable_b{Does::replies, Status::unreachable, "b"};
  const Step leaves{Does::leaves, {}, {}};
  const std::string no_way(to_string(Status::no_route)), no_answer(to_string(Status::unreachable));
  const std::vector<Row> rows = {
      {{no_way_a, no_way_b}, Status::no_route, "b"},
      {{no_way_a, unreachable_b}, Status::unreachable, "b"},
      {{unreachable_a, no_way_b}, Status::unreachable, "a"},
      {{unreachable_a, unreachable_b}, Status::unreachable, "b"},
      {{unreachable_a, leaves}, Status::unreachable, "a"},
      {{leaves, no_way_b}, Status::no_route, "b"},
      {{leaves, leaves}, Status::no_route, "sim://10.9.0."},
      {{{Does::replies, Status::no_route, ""}, {Does::replies, Status::no_route, ""}}, Status::no_route, no_way},
      {{{Does::replies, Status::unreachable, ""}, no_way_b}, Status::unreachable, no_answer},
      {{{Does::replies, Status::refused, "a"}}, Status::refused, "a"},
      {{{Does::replies, Status::timed_out, "a"}}, Status::timed_out, "a"},
      {{{Does::replies, Status::version, "a"}}, Status::version, "a"},
      {{no_way_a, {Does::replies, Status::refused, "b"}}, Status::refused, "b"},
      {{{Does::says_bye, Status::timed_out, "a"}}, Status::refused, "a"},
      {{{Does::replies, Status::success, ""}}, Status::success, ""},
      {{no_way_a, {Does::replies, Status::success, ""}}, Status::success, ""},
      {{leaves, {Does::replies, Status::success, ""}}, Status::success, ""},
  };
  Ways ways(2);
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const Row& row = rows[i];
    const uint64_t refused = ways.counted(Counter::connections_refused), opened = ways.counted(Counter::routed_connections);
    for (auto& peer : ways.peers) peer->requests.clear();
    ways.ask();
    for (const Step& step : row.steps) ways.act(ways.asked(), step);
    const ConnectReply reply = ways.answer();
    CHECK(reply.status == row.status);
    INFO(reply.reason);
    CHECK(reply.reason.find(row.reason) != std::string::npos);
    CHECK(ways.times_asked() == row.steps.size());
    const bool good = row.status == Status::success;
    CHECK(ways.counted(Counter::connections_refused) == refused + (good ? 0 : 1));
    CHECK(ways.counted(Counter::routed_connections) == opened + (good ? 1 : 0));
    if (!good) CHECK(ways.run([&] { return ways.initiator.gone; }, seconds(1)));
    ways.nothing_is_left();
  }
  CHECK(ways.counted(Counter::routed_rejected) == 0);
  CHECK(ways.room() == connections_setting_up_max / 2);  // each of them has left
}

TEST_CASE("router_ways__a_reply_that_is_none__ends_it_and_is_counted") {
  Ways ways(2);
  ways.ask();
  ways.act(ways.asked(), {Does::lies, {}, {}});
  REQUIRE(ways.run([&] { return ways.initiator.gone; }, seconds(2)));
  CHECK(ways.counted(Counter::routed_rejected) == 1);
  CHECK(ways.times_asked() == 1);
  ways.nothing_is_left();
}

TEST_CASE("router_ways__more_routers_than_are_tried__as_many_are_asked_and_no_two_twice") {
  Ways ways(candidates_tried_max + 2);
  ways.ask();
  for (size_t i = 0; i < candidates_tried_max; ++i) ways.act(ways.asked(), {Does::replies, Status::no_route, fmt::format("{}", i)});
  const ConnectReply reply = ways.answer();
  CHECK(reply.status == Status::no_route);
  CHECK(reply.reason == fmt::format("{}", candidates_tried_max - 1));
  for (const auto& peer : ways.peers) CHECK(peer->requests.size() <= 1);
  CHECK(ways.times_asked() == candidates_tried_max);
}

TEST_CASE("router_ways__equals__take_turns_from_one_connect_to_the_next") {
  Ways ways(3);
  for (int i = 0; i < 9; ++i) {
    ways.ask();
    ways.act(ways.asked(), {Does::replies, Status::refused, "no"});
    static_cast<void>(ways.answer());
  }
  for (const auto& peer : ways.peers) CHECK(peer->requests.size() == 3);
}

TEST_CASE("router_ways__a_router_that_does_not_answer__is_no_way_and_the_next_is_asked") {
  Ways ways(0);
  SECTION("silent: as long as a hop may take") {
    ways.add_router("10.9.0.10", 100);
    ways.peers[0]->freeze(true);
    ways.ask();
    const ConnectReply reply = ways.answer();
    CHECK(reply.status == Status::no_route);
    CHECK(reply.reason.find("sim://10.9.0.10:7000") != std::string::npos);
    CHECK(ways.answered_after >= hop_dial_timeout);
    CHECK(ways.answered_after < hop_dial_timeout + milliseconds(100));
  }
  SECTION("refuses") {
    ways.add_router("10.9.0.10", 100);
    ways.peers[0]->accepts = false;
    ways.ask();
    const ConnectReply reply = ways.answer();
    CHECK(reply.status == Status::no_route);
    CHECK(reply.reason.find("sim://10.9.0.10:7000: ") == 0);
    CHECK(ways.answered_after < milliseconds(100));
  }
  SECTION("what it says of itself cannot be dialled") {
    ways.add_router("10.9.0.10", 100, "sim://10.9.0.10:nowhere");
    ways.ask();
    const ConnectReply reply = ways.answer();
    CHECK(reply.status == Status::no_route);
    CHECK(reply.reason.find("sim://10.9.0.10:nowhere: ") == 0);
    CHECK(ways.answered_after < milliseconds(100));
  }
  ways.nothing_is_left();
}

TEST_CASE("router_ways__a_destination_that_does_not_answer__is_named_and_unreachable") {
  Ways ways(0);
  const std::string there = "cci://1:3:10.3.0.77:7000";
  std::unique_ptr<RawPeer> end;
  std::string to = there, word = "sim://10.3.0.77:7000";
  Status status = Status::unreachable;
  Duration least{0};
  SECTION("not there at all") {}
  SECTION("cannot be dialled") { to = "cci://1:3:10.3.0.77:nowhere", word = "sim://10.3.0.77:nowhere: "; }
  SECTION("refuses") {
    end = std::make_unique<RawPeer>(ways.world, ways.fabric, "right", "10.3.0.77");
    status = Status::refused;
  }
  SECTION("cut off") {
    end = std::make_unique<RawPeer>(ways.world, ways.fabric, "right", "10.3.0.77");
    ways.fabric.cut("right", "10.3.0.77");
  }
  SECTION("silent") {
    end = std::make_unique<RawPeer>(ways.world, ways.fabric, "right", "10.3.0.77");
    end->freeze(true);
    least = hop_dial_timeout;
  }
  ways.ask(to);
  const ConnectReply reply = ways.answer();
  INFO(reply.reason);
  CHECK(reply.status == status);
  CHECK(reply.reason.find(word) != std::string::npos);
  CHECK(ways.answered_after >= least);
  CHECK(ways.answered_after < hop_dial_timeout + milliseconds(100));
  ways.nothing_is_left();
}

TEST_CASE("router_ways__the_destination_s_own_answers__go_to_the_initiator_as_they_are") {
  Ways ways(0);
  ways.peers.push_back(std::make_unique<RawPeer>(ways.world, ways.fabric, "right", "10.3.0.77"));
  ways.peers[0]->accepts = true;
  struct Row {
    Step step;
    Status status;
    std::string reason;
  };
  for (const Row& row : std::vector<Row>{{{Does::replies, Status::unreachable, "x"}, Status::unreachable, "x"},
                                         {{Does::replies, Status::refused, "x"}, Status::refused, "x"},
                                         {{Does::leaves, {}, {}}, Status::unreachable, "sim://10.3.0.77:7000"},
                                         {{Does::says_bye, Status::error, "x"}, Status::refused, "x"}}) {
    ways.ask("cci://1:3:10.3.0.77:7000");
    ways.act(ways.asked(), row.step);
    const ConnectReply reply = ways.answer();
    CHECK(reply.status == row.status);
    CHECK(reply.reason.find(row.reason) != std::string::npos);
    ways.nothing_is_left();
  }
}

TEST_CASE("router_ways__the_request__goes_on_with_one_router_more_and_the_least_sizes") {
  Ways ways(2);
  ConnectRequest first = RawPeer::usual_request(destination);
  const uint32_t hop_bytes = [&] {
    REQUIRE(ways.initiator.connect(router_uri, ports::Role::hop));
    return ways.initiator.hop_payload_bytes();
  }();
  SECTION("what is asked for is little") { first.max_send_bytes = 1000, first.fragment_bytes = 8192; }
  SECTION("what is asked for is much") { first.max_send_bytes = 1u << 20, first.fragment_bytes = 1u << 30; }
  SECTION("for ever") { first.timeout = forever; }
  first.role = ports::Role::application;
  first.attribute = ports::Attribute::reliable_unordered;
  first.data = {std::byte{1}, std::byte{2}};
  if (first.timeout != forever) first.timeout = seconds(10);
  ways.ask(first);
  RawPeer& a = ways.asked();
  CHECK(ways.request.destination == destination);
  CHECK(ways.request.source == SubnetId{1, 1});
  CHECK(ways.request.crossed == 1);
  CHECK(ways.request.attribute == first.attribute);
  CHECK(ways.request.data == first.data);
  CHECK(ways.request.max_send_bytes == std::min(first.max_send_bytes, hop_bytes));
  CHECK(ways.request.fragment_bytes == std::min(first.fragment_bytes, 64u << 10));
  ways.world.run_for(seconds(4));
  ways.act(a, {Does::replies, Status::no_route, "no"});
  RawPeer& b = ways.asked();
  if (first.timeout == forever) {
    CHECK(ways.request.timeout <= connect_time_max);  // not for ever, as it was asked: the next router knows when we give up
    CHECK(ways.request.timeout > connect_time_max - seconds(10));
  } else {
    CHECK(ways.request.timeout < seconds(6));
    CHECK(ways.request.timeout > seconds(5));
  }
  // And the answer comes back with this hop before those beyond it.
  ConnectReply reply{Status::success, {}, 900, 4096, {}, 0};
  reply.hops.push_back({"sim", "beyond", 7, 8, milliseconds(3), 5});
  SECTION("its sizes are the least") {}
  SECTION("or those of the way here") { reply.max_send_bytes = 1u << 20, reply.fragment_bytes = 1u << 30; }
  ways.world.run_for(milliseconds(100));
  REQUIRE(b.say(reply) == Status::success);
  const ConnectReply got = ways.answer();
  CHECK(got.status == Status::success);
  CHECK(got.max_send_bytes == std::min({reply.max_send_bytes, first.max_send_bytes, hop_bytes}));
  CHECK(got.fragment_bytes == std::min({reply.fragment_bytes, first.fragment_bytes, 64u << 10}));
  CHECK(got.rate_bits_per_s == 1'000'000'000);  // of the initiator's own network
  REQUIRE(got.hops.size() == 2);
  CHECK(got.hops[0].transport == "sim");
  CHECK(got.hops[0].node == b.endpoint->uri());
  CHECK(SubnetId{got.hops[0].as, got.hops[0].subnet} == SubnetId{1, 9});
  CHECK(got.hops[0].rate_bits_per_s == 2'000'000'000);
  CHECK(got.hops[0].round_trip >= milliseconds(100));
  CHECK(got.hops[0].round_trip < milliseconds(150));
  CHECK(got.hops[1].node == "beyond");
}

TEST_CASE("router_ways__no_answer_in_the_requests_time__timed_out_naming_who_is_waited_for") {
  Ways ways(1);
  RawPeer& peer = *ways.peers[0];
  std::string words;
  SECTION("it has the request") { words = "sim://10.9.0.10:7000 does not answer: it has the request"; }
  SECTION("no connection to it comes about") {
    peer.freeze(true);
    words = "sim://10.9.0.10:7000 does not answer: no connection to it comes about";
  }
  SECTION("another router has said that it knows no way") {
    ways.add_router("10.9.0.11", 101);
    words = "no way there";
  }
  ways.ask(destination, seconds(3));
  if (ways.peers.size() == 2) ways.act(ways.asked(), {Does::replies, Status::no_route, "no way there"});
  const ConnectReply reply = ways.answer();
  CHECK(reply.status == Status::timed_out);
  CHECK(reply.reason == words);
  CHECK(ways.answered_after >= seconds(3));
  CHECK(ways.answered_after < seconds(3) + milliseconds(50));
  ways.nothing_is_left();
}

TEST_CASE("router_ways__a_hop_silent_for_a_second__the_initiator_is_told_its_name_once") {
  Ways ways(2);
  const auto told = [&] {
    std::vector<ConnectPending> all;
    for (const auto& each : ways.initiator.received) {
      if (kind_of(Bytes(each)) == MessageKind::connect_pending) all.push_back(*decode_connect_pending(Bytes(each)));
    }
    return all;
  };
  SECTION("each that is asked has a second of its own") {
    ways.ask();
    RawPeer& a = ways.asked();
    ways.world.run_for(hop_patience - milliseconds(50));
    CHECK(told().empty());
    ways.act(a, {Does::replies, Status::no_route, "no"});
    RawPeer& b = ways.asked();
    ways.world.run_for(hop_patience - milliseconds(50));
    CHECK(told().empty());
    ways.world.run_for(milliseconds(100));
    REQUIRE(told().size() == 1);
    CHECK(told()[0].node == b.endpoint->uri());
    CHECK(told()[0].asked);
    ways.world.run_for(seconds(20));
    CHECK(told().size() == 1);
  }
  SECTION("one that cannot be connected to: before it is asked") {
    for (auto& peer : ways.peers) peer->freeze(true);
    ways.ask();
    ways.world.run_for(hop_patience + milliseconds(50));
    REQUIRE(told().size() == 1);
    CHECK_FALSE(told()[0].asked);
    for (auto& peer : ways.peers) peer->freeze(false);
    RawPeer& a = ways.asked();  // connected now, and it has another second
    ways.world.run_for(hop_patience + milliseconds(50));
    REQUIRE(told().size() == 2);
    CHECK(told()[1].node == a.endpoint->uri());
    CHECK(told()[1].asked);
  }
  SECTION("what it says itself of one beyond takes the place of that") {
    ways.ask();
    RawPeer& a = ways.asked();
    a.say(ConnectPending{"sim://10.77.0.1:7000", false});
    ways.world.run_for(seconds(5));
    REQUIRE(told().size() == 1);
    CHECK(told()[0].node == "sim://10.77.0.1:7000");
    CHECK_FALSE(told()[0].asked);
  }
}

// Nobody may hold a place among those that are being set up for as long as he likes.
TEST_CASE("router_ways__a_connect_without_a_timeout__has_that_of_the_router") {
  Ways ways(1);
  ways.ask(destination, forever);
  static_cast<void>(ways.asked());  // and it says nothing
  CHECK(ways.request.timeout <= connect_time_max);
  const ConnectReply reply = ways.answer(connect_time_max + seconds(1));
  CHECK(reply.status == Status::timed_out);
  CHECK(ways.answered_after > connect_time_max - seconds(1));
  ways.nothing_is_left();
}

TEST_CASE("router_ways__connects_of_one_peer_under_way__leave_room_for_the_others") {
  Ways ways(1);
  RawPeer many(ways.world, ways.fabric, "left", "10.0.0.67");
  ConnectRequest request = RawPeer::usual_request(destination);
  request.timeout = std::chrono::minutes(1);
  size_t taken = 0;
  for (; taken < connections_setting_up_max && many.connect(router_uri, ports::Role::hop); ++taken) many.say(request);
  CHECK(taken == connections_setting_up_max / 2);
  CHECK(ways.room() == connections_setting_up_of_peer_max);
  ways.world.run_for(request.timeout + seconds(15));
  CHECK(ways.node->router->connections_open() == 0);
  CHECK(ways.room("10.0.0.69") == connections_setting_up_max / 2);
}

TEST_CASE("router_ways__connects_under_way__as_many_as_there_may_be_room_when_they_end") {
  Ways ways(0);
  const uint64_t refused = ways.counted(Counter::connections_refused);
  RawPeer first(ways.world, ways.fabric, "left", "10.0.0.69"), second(ways.world, ways.fabric, "left", "10.0.0.70"),
      many(ways.world, ways.fabric, "left", "10.0.0.67");
  std::vector<cci::Connection> open;
  const auto take = [&](RawPeer& peer, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      REQUIRE(peer.connect(router_uri, ports::Role::hop));
      open.push_back(peer.connection);
    }
  };
  take(first, connections_setting_up_max / 2);
  take(second, connections_setting_up_of_peer_max);
  take(many, connections_setting_up_of_peer_max);
  CHECK(ways.counted(Counter::connections_refused) == refused);
  CHECK_FALSE(many.connect(router_uri, ports::Role::hop));
  CHECK(many.words.find("too many connections") != std::string::npos);
  CHECK(ways.counted(Counter::connections_refused) > refused);
  many.endpoint->disconnect(open.back());
  many.wake();
  ways.world.run_for(milliseconds(100));
  CHECK(many.connect(router_uri, ports::Role::hop));
  CHECK_FALSE(many.connect(router_uri, ports::Role::hop));
  ways.world.run_for(hop_request_timeout + seconds(1));  // who says nothing does not keep its place
  CHECK(ways.node->router->connections_open() == 0);
  CHECK(ways.room() == connections_setting_up_max / 2);
}

TEST_CASE("router_ways__a_leg_of_an_open_connection_is_lost__the_other_hears_which_hop") {
  struct Row {
    int who;  // -1: the initiator, 0: the router beyond
    bool bye;
    std::string words;
  };
  for (const Row& row : std::vector<Row>{{-1, false, "a hop is lost: the side of the initiator"},
                                         {0, false, "a hop is lost: sim://10.9.0.10:7000"},
                                         {-1, true, "enough"},
                                         {0, true, "enough"}}) {
    CAPTURE(row.who, row.bye);
    Ways ways(1);
    ways.ask();
    RawPeer& beyond = ways.asked();
    ways.act(beyond, {Does::replies, Status::success, {}});
    REQUIRE(ways.answer().status == Status::success);
    RawPeer& who = row.who < 0 ? ways.initiator : beyond;
    RawPeer& other = row.who < 0 ? beyond : ways.initiator;
    const cci::Connection hop = other.connection;
    const uint64_t lost = ways.counted(Counter::connections_lost);
    other.gone = false;
    if (row.bye) {
      who.say(Bye{Status::timed_out, "enough"});
    } else {
      who.endpoint->disconnect(who.connection);
      who.wake();
    }
    REQUIRE(ways.run([&] { return other.gone; }, seconds(2)));
    CHECK(other.lost == hop);
    REQUIRE(other.last(MessageKind::bye));
    const auto bye = decode_bye(*other.last(MessageKind::bye));
    CHECK(bye->status == (row.bye ? Status::timed_out : Status::disconnected));
    CHECK(bye->reason.find(row.words) == 0);
    CHECK(ways.counted(Counter::connections_lost) == lost + (row.bye ? 0 : 2));  // the hop, and what went over it
    CHECK(ways.run([&] { return ways.node->router->connections_open() == 0; }, seconds(2)));
  }
}

TEST_CASE("router_ways__a_connect_pending_that_is_none__ends_the_connect_and_is_counted") {
  Ways ways(1);
  ways.ask();
  RawPeer& peer = ways.asked();
  peer.send({static_cast<std::byte>(MessageKind::connect_pending), {}, {}, {}, std::byte{9}});
  REQUIRE(ways.run([&] { return ways.initiator.gone; }, seconds(2)));
  CHECK(ways.counted(Counter::routed_rejected) == 1);
  CHECK_FALSE(ways.initiator.last(MessageKind::connect_pending));
}
