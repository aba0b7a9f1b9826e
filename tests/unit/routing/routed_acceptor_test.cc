// Routed connections at the acceptor, from a hop to the application's decision.
#include "routing/transport/routed_acceptor.h"

#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_parts.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using test::RoutedParts;

namespace {

RoutedOptions usual_options() {
  RoutedOptions options;
  options.subnet = {1, 2};
  options.fragment_bytes_max = 1u << 20;
  options.pending_requests_max = 2;
  return options;
}

ConnectRequest usual_request() {
  ConnectRequest request;
  request.destination = "cci://1:2:10.0.0.9:7000";
  request.source = {1, 1};
  request.max_send_bytes = 900;
  request.fragment_bytes = 2u << 20;
  return request;
}

struct Met : RoutedParts {
  ~Met() { acceptor.drop_waiting(); }
  // A hop comes, and is accepted below as far as that may be.
  RoutedConnection* hop(uint32_t index) {
    acceptor.on_hop(request(index));
    return connections.find_by_lower({index, 1});
  }
  RoutedConnection& accepted_hop(uint32_t index = 7) {
    RoutedConnection* connection = hop(index);
    REQUIRE(connection != nullptr);
    auto event = happens([&](ports::TransportSink& sink) { sink.on_accepted({index, 1}, Status::success, {1016}); });
    REQUIRE(event);
    acceptor.on_hop_accepted(*connection, *event, now);
    return *connection;
  }
  RoutedConnection& offered(uint32_t index = 7) {
    RoutedConnection& connection = accepted_hop(index);
    acceptor.on_request(connection, bytes_of(usual_request()));
    REQUIRE(connection.phase == Phase::offered);
    return connection;
  }
  RoutedOptions options = usual_options();
  RoutedAcceptor acceptor{options, *lower, connections, post, ender, above, counters};
};

}  // namespace

TEST_CASE("routed_acceptor__a_hop_asks_for_us__the_application_decides_with_least_lengths") {
  Met met;
  RoutedConnection& connection = met.accepted_hop();
  CHECK(connection.phase == Phase::awaiting_request);
  CHECK(met.connections.timer(connection) == met.now + request_timeout);
  met.acceptor.on_request(connection, RoutedParts::bytes_of(usual_request()));
  CHECK(met.above.asked == std::vector<ports::ConnectionId>{connection.id});
  CHECK(connection.path.limits.max_send_bytes == 900);
  CHECK(connection.path.fragment_bytes == 1u << 20);
  CHECK(met.connections.timer(connection) == never);
}

TEST_CASE("routed_acceptor__a_request_that_is_malformed_or_not_for_us__is_rejected") {
  Met met;
  RoutedConnection& connection = met.accepted_hop();
  ConnectRequest request = usual_request();
  std::vector<std::byte> message;
  switch (GENERATE(0, 1, 2)) {
    case 0:
      message.resize(5);
      break;
    case 1:
      request.destination = "cci://1:3:10.0.0.9:7000";
      message = RoutedParts::bytes_of(request);
      break;
    default:
      request.crossed = hops_max + 1;
      message = RoutedParts::bytes_of(request);
  }
  met.acceptor.on_request(connection, message);
  CHECK_FALSE(met.ender.rejected.empty());
  CHECK(met.above.asked.empty());
}

TEST_CASE("routed_acceptor__more_hops_than_may_be_undecided__wait_until_one_is_decided") {
  Met met;
  RoutedConnection& first = met.offered(1);
  RoutedConnection& second = met.offered(2);
  CHECK(met.hop(3) == nullptr);
  CHECK(met.hop(4) == nullptr);
  met.acceptor.take_waiting();
  CHECK(met.log->accepted.size() == 2);
  REQUIRE(met.acceptor.accept(first) == Status::success);
  met.acceptor.take_waiting();
  CHECK(met.log->accepted.size() == 3);
  met.acceptor.forget(second);
  met.acceptor.take_waiting();
  CHECK(met.log->accepted.size() == 4);
  met.acceptor.forget(first);  // it was decided
  CHECK(met.hop(5) == nullptr);
}

TEST_CASE("routed_acceptor__a_hop_whose_acceptance_fails__leaves_its_place_to_another") {
  Met met;
  RoutedConnection& connection = *met.hop(1);
  const ports::ConnectionId id = connection.id;
  auto event = met.happens([&](ports::TransportSink& sink) { sink.on_accepted({1, 1}, Status::timed_out, {}); });
  met.acceptor.on_hop_accepted(connection, *event, met.now);
  CHECK(met.connections.find(id) == nullptr);
  CHECK(met.hop(2) != nullptr);
  CHECK(met.hop(3) != nullptr);
  CHECK(met.hop(4) == nullptr);
}

TEST_CASE("routed_acceptor__accepted__says_so_and_waits_from_the_next_turn_on") {
  Met met;
  RoutedConnection& connection = met.offered();
  REQUIRE(met.acceptor.accept(connection) == Status::success);
  const auto reply = decode_connect_reply(met.last_said());
  REQUIRE(reply);
  CHECK(reply->status == Status::success);
  CHECK(reply->max_send_bytes == 900);
  CHECK(reply->fragment_bytes == 1u << 20);
  CHECK(met.connections.timer(connection) == never);
  CHECK(met.count_active() == 1);
  met.acceptor.stamp(connection, met.now);
  CHECK(met.connections.timer(connection) == met.now + accept_timeout);
  met.acceptor.stamp(connection, met.now + accept_timeout);
  CHECK(met.connections.timer(connection) == met.now + accept_timeout);
}

TEST_CASE("routed_acceptor__rejected__the_peer_hears_why_and_the_application_hears_no_more") {
  Met met;
  RoutedConnection& connection = met.offered();
  REQUIRE(met.acceptor.reject(connection, "busy") == Status::success);
  const auto reply = decode_connect_reply(met.last_said());
  REQUIRE(reply);
  CHECK(reply->status == Status::refused);
  CHECK(reply->reason == "busy");
  CHECK(met.ender.closed == Status::refused);
  CHECK_FALSE(met.ender.told_peer);
  CHECK(connection.end.left);
}

TEST_CASE("routed_acceptor__too_late__a_request_is_a_fault_and_an_acknowledgement_is_not") {
  Met met;
  RoutedConnection& silent = met.accepted_hop(1);
  met.acceptor.on_timeout(silent);
  CHECK(met.ender.rejected == "no connect request in time");
  RoutedConnection& unacknowledged = met.offered(2);
  REQUIRE(met.acceptor.accept(unacknowledged) == Status::success);
  met.acceptor.on_timeout(unacknowledged);
  CHECK(met.ender.closed == Status::timed_out);
  CHECK(met.ender.told_peer);
}
