// The initiator's way to an open routed connection, over one router after the other.
#include "routing/transport/routed_dialler.h"

#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_parts.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::RoutedParts;

namespace {

RoutedOptions usual_options() {
  RoutedOptions options;
  options.subnet = {1, 1};
  options.routers = {"fake://a", "fake://b"};
  options.fragment_bytes_max = 1u << 20;
  return options;
}

struct Met : RoutedParts {
  RoutedConnection& dial() {
    ports::DialRequest request;
    request.uri = "cci://1:2:10.0.0.9:7000";
    request.timeout = seconds(60);
    const auto id = dialler.dial(request);
    REQUIRE(id);
    RoutedConnection& connection = *connections.find(*id);
    connections.serve_active([this](RoutedConnection& each) { dialler.start(each, now); });
    return connection;
  }
  void answers_dial(RoutedConnection& connection, Status status = Status::success, std::string_view why = {}) {
    auto event = connected(connection.hop.connection(), status, why);
    REQUIRE(event);
    dialler.on_hop_connected(connection, *event, now);
  }
  RoutedConnection& ask() {
    RoutedConnection& connection = dial();
    answers_dial(connection);
    REQUIRE(connection.phase == Phase::requesting);
    return connection;
  }
  bool reply(RoutedConnection& connection, const ConnectReply& answer) {
    return dialler.on_reply(connection, bytes_of(answer), now);
  }
  RoutedOptions options = usual_options();
  RoutedDialler dialler{options, *lower, connections, post, entropy, above, counters};
};

ConnectReply refusal(Status status, std::string reason) { return {status, std::move(reason), 0, 0, {}, 0}; }

}  // namespace

TEST_CASE("routed_dialler__no_router__ends_in_the_first_turn_as_no_route") {
  Met met;
  met.options.routers.clear();
  met.dial();
  CHECK(met.above.connected == Status::no_route);
  CHECK_FALSE(met.connections.any_active());
  CHECK(met.connections.find({0, 1}) == nullptr);
}

TEST_CASE("routed_dialler__several_connections__begin_with_different_routers") {
  Met met;
  met.dial();
  met.dial();
  REQUIRE(met.log->dialled.size() == 2);
  CHECK(met.log->dialled[0] != met.log->dialled[1]);
}

TEST_CASE("routed_dialler__a_router_takes_the_hop__is_asked_for_the_way_with_our_lengths") {
  Met met;
  met.ask();
  const auto request = decode_connect_request(met.last_said());
  REQUIRE(request);
  CHECK(request->destination == "cci://1:2:10.0.0.9:7000");
  CHECK(request->source == SubnetId{1, 1});
  CHECK(request->max_send_bytes == 1000);
  CHECK(request->fragment_bytes == 1u << 20);
  CHECK(request->timeout == seconds(60));
}

TEST_CASE("routed_dialler__the_far_end_accepts__the_least_lengths_hold_and_it_hears_so") {
  Met met;
  RoutedConnection& connection = met.ask();
  met.now += milliseconds(3);
  ConnectReply reply{Status::success, {}, 900, 2u << 20, {}, 7'000'000};
  reply.hops.push_back({"sim", "b", 1, 2, milliseconds(1), 5});
  CHECK(met.reply(connection, reply));
  CHECK(connection.path.limits.max_send_bytes == 900);
  CHECK(connection.path.fragment_bytes == 1u << 20);
  REQUIRE(connection.path.hops.size() == 2);
  CHECK(connection.path.hops[0].transport == "fake");
  CHECK(connection.path.hops[0].node == met.log->dialled.back());
  CHECK(connection.path.hops[0].round_trip == milliseconds(3));
  CHECK(connection.path.hops[0].rate_bits_per_s == 7'000'000);
  CHECK(connection.path.hops[1].node == "b");
  CHECK(met.said().back() == MessageKind::connect_ack);
  CHECK(connection.attempts == nullptr);
}

TEST_CASE("routed_dialler__a_router_fails__the_next_is_dialled_and_the_last_one_ends_it") {
  Met met;
  RoutedConnection& connection = met.dial();
  const ports::ConnectionId id = connection.id;
  switch (GENERATE(0, 1, 2, 3)) {
    case 0:
      met.answers_dial(connection, Status::unreachable, "nobody");
      break;
    case 1:
      met.answers_dial(connection);
      met.dialler.on_hop_lost(connection, "lost", met.now);
      break;
    case 2:
      met.answers_dial(connection);
      met.dialler.on_bye(connection, "stops", met.now);
      break;
    default:
      met.answers_dial(connection);
      CHECK_FALSE(met.reply(connection, refusal(Status::no_route, "no way")));
  }
  REQUIRE(met.log->dialled.size() == 2);
  CHECK(met.log->dialled[0] != met.log->dialled[1]);
  CHECK(connection.phase == Phase::dialling);
  CHECK_FALSE(met.above.connected);
  met.answers_dial(connection, Status::version, "version 9");
  CHECK(met.above.connected);
  CHECK(met.connections.find(id) == nullptr);
}

TEST_CASE("routed_dialler__the_far_end_refuses__no_other_router_is_asked") {
  Met met;
  RoutedConnection& connection = met.ask();
  const ports::ConnectionId id = connection.id;
  CHECK_FALSE(met.reply(connection, refusal(Status::refused, "not today")));
  CHECK(met.above.connected == Status::refused);
  CHECK(met.above.words == "not today");
  CHECK(met.log->dialled.size() == 1);
  CHECK(met.log->disconnected.size() == 1);
  CHECK(met.connections.find(id) == nullptr);
}

TEST_CASE("routed_dialler__a_malformed_reply__is_counted_and_ends_it") {
  Met met;
  RoutedConnection& connection = met.ask();
  CHECK_FALSE(met.dialler.on_reply(connection, as_bytes("xyz"), met.now));
  CHECK(met.above.connected == Status::error);
  CHECK(met.counters.get(Counter::routed_rejected) == 1);
}

TEST_CASE("routed_dialler__its_time_is_over__says_who_has_not_answered") {
  Met met;
  RoutedConnection& connection = met.ask();
  CHECK(met.connections.timer(connection) == met.now + seconds(60));
  CHECK(met.dialler.on_connect_pending(connection, RoutedParts::bytes_of(ConnectPending{"far router", true})));
  CHECK_FALSE(met.dialler.on_connect_pending(connection, as_bytes("xyz")));
  met.dialler.on_timeout(connection);
  CHECK(met.above.connected == Status::timed_out);
  CHECK(met.above.words.find("far router") != std::string::npos);
}

TEST_CASE("routed_dialler__the_application_leaves__nothing_is_told") {
  Met met;
  RoutedConnection& connection = met.dial();
  const ports::ConnectionId id = connection.id;
  met.dialler.drop(connection);
  CHECK(met.log->disconnected.size() == 1);
  CHECK_FALSE(met.above.connected);
  CHECK(met.connections.find(id) == nullptr);
}
