// Links between routers, flooded records, the map, administrators.
#include "routing/router/map_query.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Asks a router for its map over `network`.
class Asker final : public sim::Actor {
 public:
  Asker(Site& site, const std::string& network, const std::string& address)
      : app_(site.world, site.fabric, network, address, {9, 9}, {}), site_(site) {}
  Result<std::vector<RouterRecord>> ask(const std::string& uri) {
    MapQuery query(*app_.endpoint, uri, seconds(5), 42);
    app_.wake();
    site_.run(
        [&] {
          query.turn(site_.world.now());
          for (const cci::Event& event : app_.events) {
            query.on_event(event);
            app_.wake();
          }
          app_.events.clear();
          return query.done();
        },
        seconds(10));
    query.turn(site_.world.now());
    REQUIRE(query.done());
    return query.result();
  }
  void turn(Instant) override {}
  [[nodiscard]] Instant next_deadline() const override { return never; }

 private:
  App app_;
  Site& site_;
};

}  // namespace

TEST_CASE("router_records__chain__every_router_knows_all") {
  Site site;
  site.chain(4);
  site.world.run_for(seconds(2));
  Asker first(site, "lan1", "10.0.0.200");
  const auto records = first.ask("sim://10.0.0.1:7000");
  REQUIRE(records);
  CHECK(records->size() == 4);
  for (const RouterRecord& record : *records) CHECK(record.devices.size() == 2);
}

TEST_CASE("router_records__steady_state__no_storm") {
  Site site;
  site.chain(4);
  site.world.run_for(seconds(5));
  uint64_t before = 0;
  for (const auto& router : site.routers) before += router->counters.get(Counter::records_received);
  site.world.run_for(seconds(90));
  uint64_t after_all = 0;
  for (const auto& router : site.routers) after_all += router->counters.get(Counter::records_received);
  // Three refreshes of four records, each heard at most once a link and direction (three links).
  CHECK(after_all - before <= 3 * 4 * 6);
  CHECK(after_all > before);
}

TEST_CASE("router_records__router_out_of_reach__aged_out") {
  Site site;
  site.chain(3);
  site.world.run_for(seconds(1));
  // The middle one is lost, which its neighbours tell; of the one behind it nobody can say that it is gone.
  site.kill(1);
  site.world.run_for(seconds(20));
  Asker asker(site, "lan1", "10.0.0.200");
  const auto before = asker.ask("sim://10.0.0.1:7000");
  REQUIRE(before);
  CHECK(before->size() == 2);
  site.world.run_for(seconds(130));
  const auto later = asker.ask("sim://10.0.0.1:7000");
  REQUIRE(later);
  CHECK(later->size() == 1);
  CHECK(site.connect_event(*site.left, site.right->uri()).status == Status::no_route);
}

TEST_CASE("router_records__drain__withdrawn_at_once_and_existing_connections_stay") {
  Site site;
  site.parallel(2);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const size_t used = site.routers[1]->counters.get(Counter::routed_connections) > 0 ? 1 : 2;
  RouterNode& draining = *site.routers[used];
  draining.router->drain();
  site.world.wake(draining.node);
  site.world.run_for(seconds(1));
  CHECK_FALSE(draining.router->drained());
  const uint64_t before = draining.counters.get(Counter::routed_connections);
  for (int i = 0; i < 8; ++i) site.connect(*site.left, *site.right);
  CHECK(draining.counters.get(Counter::routed_connections) == before);
  CHECK(site.send(*site.left, connection, "still") == Status::success);
  site.left->endpoint->disconnect(connection);
  site.left->wake();
  CHECK(site.run([&] { return draining.router->drained(); }, seconds(20)));
}

TEST_CASE("router_records__restart__adopts_a_higher_instance_and_is_used_again") {
  Site site;
  site.chain(2);
  site.world.run_for(seconds(200));  // its instance has grown
  const auto spec = [&] {
    return std::vector<DeviceSpec>{{"mid1", "10.9.0.2", {1, 11}, {"sim://10.9.0.1:7000"}}, {"lan2", "10.0.0.1", {1, 2}, {}}};
  };
  Asker asker(site, "lan1", "10.0.0.200");
  const auto instance_min = [](const Result<std::vector<RouterRecord>>& records) {
    REQUIRE(records);
    uint64_t least = UINT64_MAX;
    for (const RouterRecord& record : *records) least = std::min(least, record.instance);
    return least;
  };
  const uint64_t old_instance = instance_min(asker.ask("sim://10.0.0.1:7000"));
  CHECK(old_instance > 3);
  const sim::NodeId node = site.routers[1]->node;
  site.kill(1);
  site.world.run_for(seconds(3));
  site.restart(1, node, spec());
  site.world.run_for(seconds(20));
  const auto records = asker.ask("sim://10.0.0.1:7000");
  REQUIRE(records);
  REQUIRE(records->size() == 2);
  CHECK(instance_min(records) > old_instance);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  CHECK(site.send(*site.left, connection, "back") == Status::success);
}

TEST_CASE("router_links__two_that_dial_each_other__keep_one") {
  Site site;
  site.chain(2);
  site.world.run_for(seconds(30));
  CHECK(site.routers[0]->router->links_open() == 1);
  CHECK(site.routers[1]->router->links_open() == 1);
  const auto dialled = [&] {
    return site.routers[0]->counters.get(Counter::connections_accepted) +
           site.routers[1]->counters.get(Counter::connections_accepted);
  };
  const uint64_t before = dialled();
  site.world.run_for(seconds(120));
  CHECK(dialled() == before);  // whose dial lost takes the other's link for its own
}

TEST_CASE("router_links__peer_not_there_at_first__dialled_again") {
  Site site;
  site.add_router("r1", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"mid", "10.9.0.1", {1, 9}, {"sim://10.9.0.2:7000"}}});
  site.settle();  // ready though its peer is not there
  site.world.run_for(seconds(60));
  site.add_router("r2", {{"mid", "10.9.0.2", {1, 9}, {}}, {"lan2", "10.0.0.1", {1, 2}, {}}});
  CHECK(site.run([&] { return site.routers[0]->router->links_open() == 1; }, seconds(15)));
}

TEST_CASE("router_links__configured_with_itself__noticed_and_ready") {
  Site site;
  site.add_router("r1", {{"lan1", "10.0.0.1", {1, 1}, {"sim://10.0.0.1:7000"}}, {"lan2", "10.0.0.1", {1, 2}, {}}});
  site.settle();
  site.world.run_for(seconds(30));
  CHECK(site.routers[0]->router->links_open() == 0);
}

TEST_CASE("router_admin__not_a_router__an_error_that_says_so") {
  Site site;
  site.chain(1);
  Asker asker(site, "lan2", "10.0.0.200");
  const auto records = asker.ask("sim://10.0.0.99:7000");
  REQUIRE_FALSE(records);
  CHECK(records.error().kind == ErrorKind::no_answer);
}

TEST_CASE("router_create__bad_configuration__usage") {
  sim::World world(1);
  sim::SimEntropy entropy(1);
  Counters counters;
  auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  const auto none = Router::create(RouterOptions{}, {}, memory, entropy, counters);
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::usage);
}

TEST_CASE("router_create__memory_too_small_for_a_fragment_a_class__says_what_is_needed") {
  sim::SimEntropy entropy(1);
  Counters counters;
  auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  RouterOptions options;
  options.memory_bytes = 8 * 4096 - 1;
  const auto made = Router::create(options, std::vector<RouterDevice>(2), memory, entropy, counters);
  REQUIRE_FALSE(made);
  CHECK(made.error().kind == ErrorKind::usage);
  CHECK(made.error().message.find("at least 32768") != std::string::npos);
}

TEST_CASE("router__application_role__is_refused_with_words") {
  Site site;
  site.chain(1);
  const cci::Event event = site.connect_event(*site.left, "sim://10.0.0.1:7000");
  CHECK(event.status == Status::refused);
  CHECK(event.reason.find("router") != std::string::npos);
}
