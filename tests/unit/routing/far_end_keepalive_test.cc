// What follows from the silence of a far end, and when an open connection is looked at again.
#include "routing/transport/far_end_keepalive.h"

#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_parts.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::seconds;
using test::RoutedParts;

namespace {

struct Met : RoutedParts {
  void look_at(Instant at) {
    now = at;
    keepalive.look(connection, now);
  }
  RoutedConnection& connection = add();
  FarEndKeepalive keepalive{seconds(15), *lower, connections, post, ender, above};
};

}  // namespace

TEST_CASE("far_end_keepalive__silence__asks_three_times_and_then_ends_the_connection") {
  Met met;
  met.keepalive.begin(met.connection, met.now);
  CHECK(met.connections.timer(met.connection) == met.now + seconds(15));
  for (size_t probes = 1; probes <= keepalive_probes_max; ++probes) {
    met.look_at(met.connections.timer(met.connection));
    CHECK(met.said() == std::vector<MessageKind>(probes, MessageKind::keepalive));
  }
  CHECK_FALSE(met.ender.closed);
  met.look_at(met.connections.timer(met.connection));
  CHECK(met.ender.closed == Status::timed_out);
  CHECK(met.ender.told_peer);
}

TEST_CASE("far_end_keepalive__asked_by_the_application__tells_the_hops_and_hears_once") {
  Met met;
  const cci::Connection hop = met.connection.hop.connection();
  REQUIRE(met.lower->set_keepalive(hop, seconds(5)) == Status::success);
  met.keepalive.begin(met.connection, met.now);
  CHECK(met.said().empty());
  met.keepalive.ask(met.connection, seconds(8));
  CHECK(met.lower->keepalive(hop) == Duration::zero());
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::end_to_end_keepalive});
  CHECK(met.count_active() == 1);
  met.look_at(met.now);
  met.look_at(met.connections.timer(met.connection));
  CHECK(met.said().back() == MessageKind::keepalive);
  CHECK(met.above.silent == 0);
  met.look_at(met.connections.timer(met.connection));
  CHECK(met.above.silent == 1);
  CHECK(met.connections.timer(met.connection) == never);
  CHECK_FALSE(met.ender.closed);
}

TEST_CASE("far_end_keepalive__asked_before_it_is_open__the_hops_hear_when_it_is") {
  Met met;
  met.connection.phase = Phase::requesting;
  met.keepalive.ask(met.connection, seconds(8));
  CHECK(met.said().empty());
  met.connection.phase = Phase::open;
  met.keepalive.begin(met.connection, met.now);
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::end_to_end_keepalive});
}

TEST_CASE("far_end_keepalive__the_application_has_gone__hears_of_no_silence") {
  Met met;
  met.keepalive.ask(met.connection, seconds(8));
  met.look_at(met.now);
  met.connection.end.left = true;
  met.look_at(met.now + seconds(8));
  CHECK(met.above.silent == 0);
}

TEST_CASE("far_end_keepalive__a_message_or_the_end_is_due_before__the_timer_is_set_to_that") {
  Met met;
  met.keepalive.begin(met.connection, met.now);
  met.connection.end.deadline = met.now + seconds(10);
  met.look_at(met.now);
  CHECK(met.connections.timer(met.connection) == met.now + seconds(10));
  met.connection.messages.sender.open(4, false);
  met.connection.messages.sender.push({}, {}, seconds(3));
  met.connection.messages.sender.stamp(met.now);
  met.look_at(met.now);
  CHECK(met.connections.timer(met.connection) == met.now + seconds(3));
}
