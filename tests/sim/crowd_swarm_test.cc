// Several sources and destinations transfer at once in one world: each tree arrives whole, and only where it was sent.
#include <catch2/catch.hpp>

#include "tests/sim/crowd.h"
#include "tests/sim/seeds.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using testing::Crowd;
using testing::CrowdOptions;
using testing::CrowdResult;

namespace {

CrowdOptions drawn(sim::Random& random) {
  CrowdOptions options;
  options.sources = static_cast<size_t>(random.between(2, 5));
  options.destinations = static_cast<size_t>(random.between(1, 3));
  options.router = random.chance(0.4);
  options.lanes = static_cast<uint16_t>(random.between(1, 3));
  options.tree.entries_max = random.chance(0.2) ? 80 : 15;
  options.tree.large_chance = 0.1;
  options.link.delay_max = random.between(Duration(100us), Duration(20ms));
  options.link.rate_bytes_per_s = random.chance(0.5) ? random.between(200'000, 5'000'000) : 1'000'000'000;
  options.link.window_bytes = static_cast<uint32_t>(random.between(2'000, 1'000'000));
  if (random.chance(0.6)) {
    options.crashes = static_cast<unsigned>(random.below(4));
    options.resets = static_cast<unsigned>(random.below(4));
    if (random.chance(0.5)) options.link.reset_mean = random.between(Duration(200ms), Duration(5s));
    options.link.half_open_chance = random.chance(0.3) ? 0.5 : 0;
  }
  return options;
}

}  // namespace

TEST_CASE("swarm__several_sources_and_destinations__each_tree_arrives_whole_and_only_there") {
  unsigned faults = 0, rivals = 0, commands = 0;
  const uint64_t seeds = testing::seed_count(10);
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + seeds; ++seed) {
    sim::Random random(seed * 0x51ed + 3);
    const CrowdResult result = Crowd(seed, drawn(random)).run();
    INFO("seed " << seed << ", " << result.commands << " commands, " << result.rivals << " of them rivals, " << result.faults
                 << " faults, " << result.failed_at_first << " failed at first, " << result.events << " events");
    CHECK(result.violation == "");
    faults += result.faults;
    rivals += result.rivals;
    commands += result.commands;
  }
  CHECK((seeds < 10 || (faults > 0 && rivals > 0 && commands > 2 * seeds)));
}
