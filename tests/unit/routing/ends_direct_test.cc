// A routing endpoint and a neighbour on its own subnet: directly, without any router.
#include <catch2/catch.hpp>

#include "routing/transport/routed_connection.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* app_uri = "sim://10.0.0.2:7000";

struct Met {
  Met() : peer(world, fabric, "lan", "10.0.0.66"), app(world, fabric, "lan", "10.0.0.2", {1, 1}, {}) {
    app.answer = App::Answer::none;
    peer.accepts = true;
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(5)) { return peer.run(done, at_most); }
  bool came(EventType type) {
    return run([&] { return app.count(type) > 0; });
  }
  void rest() { world.run_for(milliseconds(50)); }
  // The neighbour dials; the request is there.
  cci::Event offered() {
    peer.answered = false;
    cci::ConnectOptions how;
    how.attribute = cci::Attribute::reliable_unordered;
    how.data = as_bytes("hello");
    REQUIRE(peer.endpoint->connect(app_uri, how));
    peer.wake();
    REQUIRE(came(EventType::connect_request));
    return std::move(*app.take(EventType::connect_request));
  }
  cci::Event dial(Duration timeout = seconds(5)) {
    cci::ConnectOptions how;
    how.timeout = timeout;
    how.context = 5;
    REQUIRE(app.endpoint->connect("cci://1:1:10.0.0.66:7000", how));
    app.wake();
    REQUIRE(run([&] { return app.count(EventType::connect) > 0; }, seconds(20)));
    return std::move(*app.take(EventType::connect));
  }
  Status rma(cci::Connection connection, cci::RmaOptions options) {
    options.context = 11;
    const Status status = app.endpoint->rma(connection, options);
    if (status != Status::success) return status;
    app.wake();
    REQUIRE(came(EventType::send));
    const auto event = app.take(EventType::send);
    CHECK(event->context == 11);
    return event->status;
  }

  sim::World world{7};
  sim::Fabric fabric{world, {}};
  RawPeer peer;
  App app;
};

}  // namespace

TEST_CASE("routed_direct__a_neighbours_request__is_offered_as_it_is_and_decided") {
  Met met;
  enum class Does { accepts, rejects, lets_go };
  for (const Does does : {Does::accepts, Does::rejects, Does::lets_go}) {
    CAPTURE(static_cast<int>(does));
    {
      cci::Event request = met.offered();
      CHECK(request.role == ports::Role::application);
      CHECK(request.attribute == cci::Attribute::reliable_unordered);
      CHECK(as_text(request.data()) == "hello");
      if (does == Does::accepts) REQUIRE(met.app.endpoint->accept(request, 9) == Status::success);
      if (does == Does::rejects) REQUIRE(met.app.endpoint->reject(request, "not today") == Status::success);
    }
    met.app.wake();
    REQUIRE(met.run([&] { return met.peer.answered; }));
    CHECK(static_cast<bool>(met.peer.connection) == (does == Does::accepts));
    if (does == Does::rejects) CHECK(met.peer.words == "not today");
    if (does != Does::accepts) {
      CHECK(met.app.events.empty());
      continue;
    }
    REQUIRE(met.came(EventType::accept));
    const auto accepted = met.app.take(EventType::accept);
    CHECK(accepted->status == Status::success);
    CHECK(accepted->context == 9);
    CHECK(met.app.endpoint->max_send_bytes(accepted->connection) > 0);
    met.peer.send(std::vector<std::byte>(3, std::byte{4}));
    REQUIRE(met.came(EventType::receive));
    CHECK(met.app.take(EventType::receive)->data().size() == 3);
    met.peer.endpoint->disconnect(met.peer.connection);
    met.peer.wake();
    REQUIRE(met.came(EventType::disconnected));
    CHECK(met.app.take(EventType::disconnected)->context == 9);
    met.app.events.clear();
  }
}

TEST_CASE("routed_direct__the_neighbour_has_left_before_accept__is_told_and_nothing_is_left") {
  Met met;
  cci::Event request = met.offered();
  met.fabric.reset_network("lan");
  met.rest();
  const Status status = met.app.endpoint->accept(request, 9);
  met.app.wake();
  met.rest();
  if (status == Status::success) {
    REQUIRE(met.app.count(EventType::accept) == 1);
    CHECK(met.app.take(EventType::accept)->status != Status::success);
  }
  CHECK(met.app.events.empty());
  const cci::Event again = met.dial();
  CHECK(again.status == Status::success);
}

TEST_CASE("routed_direct__a_dial__ends_as_the_neighbour_says_or_does_not") {
  Met met;
  SECTION("accepts") {
    const cci::Event event = met.dial();
    CHECK(event.status == Status::success);
    CHECK(event.context == 5);
    CHECK(event.connection);
  }
  SECTION("refuses") {
    met.peer.accepts = false;
    const cci::Event event = met.dial();
    CHECK(event.status == Status::refused);
    CHECK_FALSE(event.connection);
  }
  SECTION("is silent") {
    met.peer.freeze(true);
    const Instant begun = met.world.now();
    const cci::Event event = met.dial(seconds(3));
    CHECK(event.status == Status::timed_out);
    CHECK(met.world.now() - begun >= seconds(3));
    CHECK(met.world.now() - begun < seconds(4));
  }
  met.rest();
  CHECK(met.app.events.empty());
}

TEST_CASE("routed_direct__rma__both_ways_with_its_status_and_its_source_free_again") {
  Met met;
  const cci::Connection connection = met.dial().connection;
  std::vector<std::byte> mine(100'000, std::byte{1}), theirs(mine.size(), std::byte{2});
  cci::RmaOptions options;
  options.local = met.app.memory->register_region(MutableBytes(mine), 0);
  options.remote.handle = met.peer.memory->register_region(MutableBytes(theirs), cci::access_write | cci::access_read);
  options.length_bytes = mine.size();
  options.local_completion = true;
  CHECK(met.rma(connection, options) == Status::success);
  CHECK(theirs == mine);
  CHECK(met.app.count(EventType::local_completion) == 1);
  met.app.events.clear();
  options.local_completion = false;
  std::fill(theirs.begin(), theirs.end(), std::byte{3});
  options.write = false;
  CHECK(met.rma(connection, options) == Status::success);
  CHECK(mine == theirs);
  options.remote.handle.key ^= 1;
  CHECK(met.rma(connection, options) == Status::rma_handle);
  options.write = true;
  CHECK(met.rma(connection, options) == Status::rma_handle);
  CHECK(met.app.memory->deregister_region(options.local) == Status::success);
  // Left in the middle of one: it ends, and then there is nothing.
  options.remote.handle.key ^= 1;
  options.local = met.app.memory->register_region(MutableBytes(mine), 0);
  met.peer.freeze(true);
  options.context = 12;
  REQUIRE(met.app.endpoint->rma(connection, options) == Status::success);
  met.app.endpoint->disconnect(connection);
  met.app.wake();
  REQUIRE(met.run([&] { return met.app.count(EventType::send) > 0; }, seconds(120)));
  CHECK(met.app.take(EventType::send)->context == 12);
  met.rest();
  CHECK(met.app.events.empty());
}

TEST_CASE("routed_direct__watched_by_its_application__silence_is_told_and_ends_nothing") {
  Met met;
  const cci::Connection connection = met.dial().connection;
  REQUIRE(met.app.endpoint->set_keepalive(connection, seconds(8)) == Status::success);
  met.app.wake();
  met.world.run_for(seconds(20));
  CHECK(met.app.count(EventType::keepalive_timed_out) == 0);
  met.peer.freeze(true);
  met.world.run_for(seconds(100));
  CHECK(met.app.count(EventType::keepalive_timed_out) == 1);
  CHECK(met.app.count(EventType::disconnected) == 0);
}

TEST_CASE("routed_end__as_many_connections_as_there_may_be__more_are_refused_until_one_ends") {
  Met met;
  const auto routed = [&] { return met.app.endpoint->connect("cci://1:2:10.0.0.9:7000", {}); };
  for (uint32_t i = 0; i < routed_connections_max; ++i) REQUIRE(routed());
  const auto one_more = routed();
  REQUIRE_FALSE(one_more);
  CHECK(one_more.error().kind == ErrorKind::network);
  CHECK(one_more.error().message == "too many connections");
  CHECK_FALSE(met.app.endpoint->connect("cci://1:1:10.0.0.66:7000", {}));  // a direct one is one as well
  met.app.wake();
  REQUIRE(met.run([&] { return met.app.count(EventType::connect) == routed_connections_max; }));
  CHECK(met.app.take(EventType::connect)->status == Status::no_route);
  met.app.events.clear();
  CHECK(met.dial().status == Status::success);
}
