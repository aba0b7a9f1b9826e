// A router's planned stop: its record is withdrawn, nothing new is taken, both ends of what is open are told, and what does not
// move ends with the reason.
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Of a parallel site: the router, 1 or 2, that has the only connection.
size_t carrier(const Site& site) { return site.routers[1]->counters.get(Counter::routed_connections) > 0 ? 1 : 2; }

void drain(Site& site, size_t index) {
  site.routers[index]->router->drain();
  site.world.wake(site.routers[index]->node);
}

}  // namespace

TEST_CASE("router_drain__both_ends_are_told_and_the_connection_works_until_they_leave") {
  Site site;
  site.parallel(2);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const size_t draining = carrier(site);
  RouterNode& router = *site.routers[draining];
  drain(site, draining);
  REQUIRE(
      site.run([&] { return site.left->count(EventType::draining) + site.right->count(EventType::draining) == 2; }, seconds(1)));
  CHECK(site.left->take(EventType::draining)->connection == connection);
  CHECK(site.right->take(EventType::draining)->connection == site.right->accepted);
  site.world.run_for(milliseconds(100));
  CHECK(site.routers[0]->router->routers_known() == 2);  // the other routers know that it goes, and it still runs
  CHECK_FALSE(router.router->drained());
  CHECK(site.send(*site.left, connection, "still here") == Status::success);
  // A new connection goes through the other router.
  const uint64_t before = router.counters.get(Counter::routed_connections);
  for (int i = 0; i < 8; ++i) site.connect(*site.left, *site.right);
  CHECK(router.counters.get(Counter::routed_connections) == before);
  CHECK(site.left->count(EventType::draining) == 0);
  site.left->endpoint->disconnect(connection);
  site.left->wake();
  CHECK(site.run([&] { return router.router->drained(); }, seconds(1)));
  CHECK(site.left->count(EventType::disconnected) == 0);
}

TEST_CASE("router_drain__nobody_moves__ends_with_the_reason_after_the_stated_time") {
  Site site;
  site.chain(2);
  site.connect(*site.left, *site.right);
  drain(site, 0);
  const Instant begun = site.world.now();
  REQUIRE(site.run([&] { return site.left->count(EventType::disconnected) > 0; }, seconds(30)));
  CHECK(site.world.now() - begun >= drain_timeout);
  CHECK(site.world.now() - begun < drain_timeout + seconds(1));
  CHECK(site.left->take(EventType::disconnected)->reason.find("stops") != std::string::npos);
  CHECK(site.run([&] { return site.routers[0]->router->drained() && site.right->count(EventType::disconnected) > 0; }, seconds(1)));
}

TEST_CASE("router_drain__a_peer_that_takes_nothing__does_not_hold_it_up") {
  Site site;
  site.chain(1);
  site.connect(*site.left, *site.right);
  site.fabric.cut("lan1", "10.0.0.2");
  drain(site, 0);
  CHECK(site.run([&] { return site.routers[0]->router->drained(); }, drain_timeout + drain_flush_timeout + milliseconds(1)));
}

TEST_CASE("router_drain__connects_under_way__take_another_way_or_hear_why_not") {
  {
    Site site;
    site.chain(1);
    site.right->answer = App::Answer::none;
    REQUIRE(site.left->endpoint->connect(site.right->uri(), {}));
    site.left->wake();
    REQUIRE(site.run([&] { return site.right->count(EventType::connect_request) > 0; }));
    drain(site, 0);
    REQUIRE(site.run([&] { return site.left->count(EventType::connect) > 0; }, seconds(1)));
    const cci::Event event = std::move(*site.left->take(EventType::connect));
    CHECK(event.status == Status::no_route);
    CHECK(event.reason.find("stops") != std::string::npos);
    CHECK(site.run([&] { return site.routers[0]->router->drained(); }, seconds(3)));
    CHECK(site.connect_event(*site.left, site.right->uri()).status == Status::unreachable);
  }
  Site site;
  site.parallel(2);
  site.right->answer = App::Answer::none;
  REQUIRE(site.left->endpoint->connect(site.right->uri(), {}));
  site.left->wake();
  REQUIRE(site.run([&] { return site.right->count(EventType::connect_request) > 0; }));
  site.right->answer = App::Answer::accept;
  drain(site, site.routers[1]->router->connections_open() > 0 ? 1 : 2);
  REQUIRE(site.run([&] { return site.left->count(EventType::connect) > 0; }, seconds(5)));
  CHECK(site.left->take(EventType::connect)->status == Status::success);
}

TEST_CASE("router_drain__one_in_the_middle__the_others_pass_it_on_once") {
  Site site;
  site.chain(2);
  site.connect(*site.left, *site.right);
  drain(site, 1);  // the second of two: the first passes it on
  REQUIRE(site.run([&] { return site.left->count(EventType::draining) > 0 && site.right->count(EventType::draining) > 0; },
                   seconds(1)));
  CHECK(site.left->count(EventType::draining) == 1);
  CHECK(site.right->count(EventType::draining) == 1);
}

TEST_CASE("router_drain__a_connect_whose_next_hop_does_not_answer__hears_why_not_at_once") {
  Site site;
  site.chain(1);
  site.fabric.cut("lan2", "10.0.0.2");
  REQUIRE(site.left->endpoint->connect(site.right->uri(), {}));
  site.left->wake();
  site.world.run_for(milliseconds(100));
  REQUIRE(site.routers[0]->router->connections_open() > 0);
  drain(site, 0);
  REQUIRE(site.run([&] { return site.left->count(EventType::connect) > 0; }, seconds(1)));
  const cci::Event event = std::move(*site.left->take(EventType::connect));
  CHECK(event.status == Status::no_route);
  CHECK(event.reason.find("stops") != std::string::npos);
}

// It will be gone in a moment: who took it for a neighbour would send its connections there.
TEST_CASE("router_drain__a_router_that_dials_it__is_refused") {
  Site site;
  site.chain(1);
  site.connect(*site.left, *site.right);
  drain(site, 0);
  site.world.run_for(milliseconds(100));
  const uint64_t refused = site.routers[0]->counters.get(Counter::connections_refused);
  site.add_router("new", {{"lan2", "10.0.0.77", {1, 2}, {"sim://10.0.0.1:7000"}}, {"lan3", "10.0.0.1", {1, 3}, {}}});
  site.world.run_for(seconds(2));
  CHECK_FALSE(site.routers[0]->router->drained());
  CHECK(site.routers[1]->router->links_open() == 0);
  CHECK(site.routers[0]->counters.get(Counter::connections_refused) > refused);
}
