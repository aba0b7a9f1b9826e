// Routers in parallel: what breaks or stops at one of them is carried by the other; and both carry more than one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>

#include "tests/sim/seeds.h"
#include "tests/sim/swarm.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using testing::Swarm;
using testing::SwarmOptions;
using testing::SwarmResult;

namespace {

constexpr uint64_t receiver_buffers = 8;  // of a simulated site: no more segments are in the air

// One large file over fast links, between two rows of two routers at most.
SwarmOptions large_file(sim::Random& random) {
  SwarmOptions options;
  options.routers = static_cast<unsigned>(random.between(1, 2));
  options.parallel = true;
  options.fragment_bytes = static_cast<uint32_t>(random.between(64u << 10, 1u << 20));
  options.lanes = static_cast<uint16_t>(random.between(1, 6));
  options.pull = random.chance(0.4);
  options.tree.entries_max = 3;
  options.tree.large_chance = 1;
  options.tree.large_bytes_min = 8u << 20;
  options.tree.large_bytes_max = 16u << 20;
  options.tree.links = false;
  options.link.delay_max = 2ms;
  options.link.rate_bytes_per_s = 8'000'000;
  options.link.window_bytes = 1'000'000;
  options.faults_within = 3s;
  return options;
}

void run_all(const char* kind, SwarmOptions (*draw)(sim::Random&), const std::function<void(const SwarmResult&)>& check) {
  uint64_t faults = 0, resent = 0;
  size_t heap_bytes = 0;
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + testing::seed_count(10); ++seed) {
    sim::Random random(seed * 0x9e37 + 17);
    const SwarmResult result = Swarm(seed, draw(random)).run();
    INFO(kind << ": seed " << seed << ", ended: " << error_row(result.result.kind).name << " " << result.result.message
              << ", after " << result.took.count() / 1'000'000 << " ms, " << result.faults << " faults, " << result.segments_resent
              << " resent");
    CHECK(result.violation == "");
    CHECK(result.result.kind == ErrorKind::ok);
    check(result);
    faults += result.faults;
    resent += result.segments_resent;
    heap_bytes = std::max(heap_bytes, result.heap_bytes);
  }
  std::printf("%s: %llu faults, %llu segments sent again, %zu bytes of memory\n", kind, static_cast<unsigned long long>(faults),
              static_cast<unsigned long long>(resent), heap_bytes);
  CHECK((faults > 0 || testing::seed_count(10) < 10));
}

SwarmOptions stop(sim::Random& random) {
  SwarmOptions options = large_file(random);
  options.router_stops = 1;
  return options;
}

SwarmOptions broken(sim::Random& random) {
  SwarmOptions options = large_file(random);
  options.link.half_open_chance = random.chance(0.5) ? 0.5 : 0;
  switch (random.below(3)) {
    case 0:
      options.router_crashes = 1;
      break;
    case 1:
      options.router_hangs = 1;
      break;
    default:
      options.router_cuts = 1;
  }
  return options;
}

SwarmOptions storm(sim::Random& random) {
  SwarmOptions options = large_file(random);
  options.router_stops = static_cast<unsigned>(random.below(4));
  options.router_crashes = static_cast<unsigned>(random.below(3));
  options.router_hangs = static_cast<unsigned>(random.below(2));
  options.router_cuts = static_cast<unsigned>(random.below(2));
  options.link.half_open_chance = random.chance(0.5) ? 0.5 : 0;
  options.faults_within = 10s;
  return options;
}

// The slowest links are those to the destination, one out of each router of the only row.
SwarmOptions rate_limited(bool parallel) {
  SwarmOptions options;
  options.routers = 1;
  options.parallel = parallel;
  options.fragment_bytes = 256u << 10;
  options.lanes = 0;  // as many as routers
  options.tree.entries_max = 1;
  options.tree.large_chance = 1;
  options.tree.large_bytes_min = options.tree.large_bytes_max = 40u << 20;
  options.tree.links = false;
  options.link.window_bytes = 1'000'000;
  options.last_link = options.link;
  options.last_link->rate_bytes_per_s = 2'000'000;
  return options;
}

}  // namespace

TEST_CASE("parallel_routers__one_stops_as_planned__no_segment_is_sent_twice") {
  run_all("planned stops", stop, [](const SwarmResult& result) { CHECK(result.segments_resent == 0); });
}

TEST_CASE("parallel_routers__one_dies_hangs_or_loses_a_subnet__only_what_was_on_it_again") {
  run_all("broken routers", broken,
          [](const SwarmResult& result) { CHECK(result.segments_resent <= receiver_buffers * result.faults); });
}

TEST_CASE("parallel_routers__stops_crashes_hangs_and_cuts__arrives_whole_and_durable") {
  run_all("storm", storm, [](const SwarmResult&) {});
}

TEST_CASE("parallel_routers__over_rate_limited_links__carry_more_than_one") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const SwarmResult one = Swarm(seed, rate_limited(false)).run();
    const SwarmResult two = Swarm(seed, rate_limited(true)).run();
    INFO("seed " << seed << ": " << one.took.count() / 1'000'000 << " ms through one, " << two.took.count() / 1'000'000
                 << " ms through two");
    REQUIRE(one.result.kind == ErrorKind::ok);
    REQUIRE(two.result.kind == ErrorKind::ok);
    REQUIRE(two.lanes_of_routers.size() == 2);
    CHECK(two.lanes_of_routers[0] > 0);
    CHECK(two.lanes_of_routers[1] > 0);
    CHECK(10 * one.took >= 16 * two.took);
  }
}
