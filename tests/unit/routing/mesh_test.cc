// Many routers: what a change costs in messages, and how long until all know.
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Duration keepalive = seconds(5);  // of a hop, by default

// side x side routers on a torus: each has a subnet with its right and one with its lower neighbour, and dials both.
struct Torus {
  Torus(uint32_t side, uint64_t seed, sim::LinkOptions links) : site(seed, links), count(side * side), link_count(2 * side * side) {
    site.options.fragment_bytes = 4096;
    site.options.memory_bytes = 8 * 4096;
    for (uint32_t r = 0; r < count; ++r) {
      const uint32_t row = r / side, column = r % side;
      const uint32_t left = row * side + (column + side - 1) % side, above = (row + side - 1) % side * side + column;
      const auto net = [](uint32_t subnet) { return "n" + std::to_string(subnet); };
      site.add_router("r" + std::to_string(r), {{net(2 * r), "10.0.0.1", {1, 2 * r}, {"sim://10.0.0.2:7000"}},
                                                {net(2 * r + 1), "10.0.0.1", {1, 2 * r + 1}, {"sim://10.0.0.2:7000"}},
                                                {net(2 * left), "10.0.0.2", {1, 2 * left}, {}},
                                                {net(2 * above + 1), "10.0.0.2", {1, 2 * above + 1}, {}}});
    }
  }
  bool all_know(size_t routers, Duration at_most) {
    return site.run(
        [&] {
          for (const auto& router : site.routers) {
            if (router != nullptr && router->router->routers_known() != routers) return false;
          }
          return true;
        },
        at_most);
  }
  uint64_t received() {
    uint64_t sum = 0;
    for (const auto& router : site.routers) sum += router == nullptr ? 0 : router->counters.get(Counter::records_received);
    return sum;
  }
  Site site;
  uint32_t count, link_count;
};

void fail_one(uint32_t side, double half_open_chance) {
  sim::LinkOptions links;
  links.half_open_chance = half_open_chance;
  Torus torus(side, 7, links);
  REQUIRE(torus.all_know(torus.count, seconds(30)));
  torus.site.world.run_for(seconds(1));
  const Instant failed = torus.site.world.now();
  torus.site.kill(torus.count / 2);
  CHECK(torus.all_know(torus.count - 1, 3 * keepalive));
  CHECK(torus.site.world.now() - failed <= 3 * keepalive);
}

}  // namespace

TEST_CASE("router_records__mesh_of_100_routers__messages_are_of_the_order_of_routers_times_links") {
  Torus torus(10, 3, {});
  REQUIRE(torus.all_know(100, seconds(30)));
  torus.site.world.run_for(seconds(2));
  // A link's opening brings what each side knows, once; later each record crosses each link at most once a direction.
  CHECK(torus.received() <= 4u * torus.count * torus.link_count);
  const uint64_t before = torus.received();
  torus.site.world.run_for(seconds(30));
  const uint64_t refresh = torus.received() - before;
  CHECK(refresh <= 2u * torus.count * torus.link_count);
  CHECK(refresh >= uint64_t{torus.count} * (torus.count - 1));
}

TEST_CASE("router_records__router_lost__all_know_within_three_keepalive_times") {
  fail_one(5, 0);
  fail_one(5, 1);  // no reset tells the neighbours: silence does
}

TEST_CASE("router_records__one_of_300_routers_lost__all_know_within_three_keepalive_times", "[.slow]") {
  fail_one(18, 1);  // 324
}
