// Many routers: a torus of them, and the loss of one.
#pragma once
#include "tests/unit/routing/routed_world.h"

namespace ccixfer::routing::test {

inline constexpr Duration hop_keepalive = std::chrono::seconds(5);  // by default

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

inline void fail_one(uint32_t side, double half_open_chance) {
  sim::LinkOptions links;
  links.half_open_chance = half_open_chance;
  Torus torus(side, 7, links);
  REQUIRE(torus.all_know(torus.count, std::chrono::seconds(30)));
  torus.site.world.run_for(std::chrono::seconds(1));
  const Instant failed = torus.site.world.now();
  torus.site.kill(torus.count / 2);
  CHECK(torus.all_know(torus.count - 1, 3 * hop_keepalive));
  CHECK(torus.site.world.now() - failed <= 3 * hop_keepalive);
}

}  // namespace ccixfer::routing::test
