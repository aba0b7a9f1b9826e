// Four routers in a ring, where a tree's luck does not help: records would circle, and full routers could wait for one another.
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t ring_size = 4;
SubnetId lan(uint32_t i) { return {1, 1 + i % ring_size}; }
SubnetId arc(uint32_t i) { return {1, 11 + i % ring_size}; }  // between router i and router i + 1
std::string lan_name(uint32_t i) { return "lan" + std::to_string(i % ring_size); }
std::string arc_name(uint32_t i) { return "arc" + std::to_string(i % ring_size); }

// Clockwise, by static routes: from lan i over arcs i and i + 1 to lan i + 2.
void make_ring(Site& site) {
  for (uint32_t i = 0; i < ring_size; ++i) site.options.static_routes.push_back({lan(i), lan(i + 2), {lan(i), arc(i), arc(i + 1)}});
  for (uint32_t i = 0; i < ring_size; ++i) {
    site.add_router("r" + std::to_string(i), {{lan_name(i), "10.0.0.1", lan(i), {}},
                                              {arc_name(i), "10.9.0.1", arc(i), {"sim://10.9.0.2:7000"}},
                                              {arc_name(i + ring_size - 1), "10.9.0.2", arc(i + ring_size - 1), {}}});
  }
  site.settle();
}

}  // namespace

TEST_CASE("routing_ring__records_of_a_router_beside_it__are_passed_on_once") {
  // A router's own record ends at itself; one from beside the ring would go round for ever.
  Site site(2);
  make_ring(site);
  site.add_router("tail", {{lan_name(0), "10.0.0.9", lan(0), {"sim://10.0.0.1:7000"}}, {"far", "10.0.0.1", {1, 99}, {}}});
  site.settle();
  site.world.run_for(seconds(5));
  uint64_t before = 0, later = 0;
  for (const auto& router : site.routers) before += router->counters.get(Counter::records_received);
  site.world.run_for(seconds(90));
  for (const auto& router : site.routers) later += router->counters.get(Counter::records_received);
  // Three refreshes of five records over five links, at most both ways.
  CHECK(later - before <= 3 * 5 * 10);
  CHECK(later - before >= 3 * 5 * 4);
}

TEST_CASE("routing_ring__all_clockwise_with_one_buffer_a_class__no_deadlock") {
  // T1: without classes, every router fills with data that waits for the next one, for ever.
  const uint64_t seed = GENERATE(1u, 2u, 3u);
  Site site(seed);
  site.options.memory_bytes = 8u * site.options.fragment_bytes;
  make_ring(site);
  std::vector<std::unique_ptr<App>> apps;
  for (uint32_t i = 0; i < ring_size; ++i) {
    apps.push_back(std::make_unique<App>(site.world, site.fabric, lan_name(i), "10.0.0.2", lan(i),
                                         std::vector<std::string>{"sim://10.0.0.1:7000"}));
  }
  constexpr size_t bytes = 4u << 20;
  const auto data = pattern(bytes, 7);
  std::vector<std::vector<std::byte>> targets(ring_size, std::vector<std::byte>(bytes));
  std::vector<cci::Connection> connections;
  for (uint32_t i = 0; i < ring_size; ++i) {
    const cci::Event event = site.connect_event(*apps[i], apps[(i + 2) % ring_size]->uri());
    INFO(event.reason);
    REQUIRE(event.status == Status::success);
    CHECK(apps[i]->endpoint->hops(event.connection).size() == 4);
    CHECK(apps[i]->endpoint->hops(event.connection)[1].subnet == arc(i).subnet);
    connections.push_back(event.connection);
  }
  for (uint32_t i = 0; i < ring_size; ++i) {
    App& to = *apps[(i + 2) % ring_size];
    cci::RmaOptions rma;
    rma.local = apps[i]->memory->register_region(Bytes(data));
    rma.remote.handle = to.memory->register_region(MutableBytes(targets[i]), cci::access_write);
    rma.length_bytes = bytes;
    REQUIRE(apps[i]->endpoint->rma(connections[i], rma) == Status::success);
  }
  for (const auto& app : apps) app->wake();
  CHECK(site.run(
      [&] {
        for (const auto& app : apps) {
          if (app->count(EventType::send) == 0) return false;
        }
        return true;
      },
      seconds(60)));
  for (const auto& target : targets) CHECK(target == data);
}

TEST_CASE("routing_ring__a_router_dies__connects_go_the_other_way") {
  Site site(4);
  make_ring(site);
  App from(site.world, site.fabric, lan_name(0), "10.0.0.2", lan(0), {"sim://10.0.0.1:7000"});
  App to(site.world, site.fabric, lan_name(3), "10.0.0.2", lan(3), {"sim://10.0.0.1:7000"});
  site.kill(1);
  const cci::Event event = site.connect_event(from, to.uri());
  CHECK(event.status == Status::success);
}
