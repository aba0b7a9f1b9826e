// Swarms of endpoints that send messages and do RMA: in order, once, and within their regions, whatever the network does.
#include "tests/sim/cci_swarm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "tests/sim/seeds.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using testing::CciSwarmOptions;
using testing::CciSwarmResult;

namespace {

CciSwarmOptions draw(sim::Random& random) {
  CciSwarmOptions options;
  options.nodes = static_cast<unsigned>(random.between(2, 4));
  options.operations = static_cast<unsigned>(random.between(20, 300));
  options.receive_buffers = static_cast<uint32_t>(random.between(1, 32));
  constexpr size_t sizes[] = {100, 5'000, 64u << 10, 600'000};
  options.slot_bytes = sizes[random.below(random.chance(0.2) ? 4 : 3)];
  options.link.delay_max = random.between(Duration(100us), Duration(20ms));
  options.link.window_bytes = static_cast<uint32_t>(random.between(500, 500'000));
  options.link.split_chance = random.chance(0.5) ? 0.2 : 0.6;
  options.link.again_chance = random.chance(0.5) ? 0.01 : 0.2;
  if (random.chance(0.6)) {
    options.link.reset_mean = random.between(Duration(10ms), Duration(1s));
    options.link.dial_failure_chance = 0.2;
    options.resets = static_cast<unsigned>(random.below(4));
    options.cuts = static_cast<unsigned>(random.below(2));
  }
  if (random.chance(0.5)) {  // the network keeps for long what an application gave up
    options.leave_chance = 0.01;
    options.stops = static_cast<unsigned>(random.below(4));
    options.cuts = static_cast<unsigned>(random.below(3));
    options.cut_max = 20s;
  }
  if (random.chance(0.4)) options.link.card.emplace();
  return options;
}

}  // namespace

TEST_CASE("swarm__messages_and_rma__in_order_once_and_within_their_regions") {
  CciSwarmResult sum;
  uint64_t runs = 0, with_cards = 0;
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t seed = testing::first_seed(); seed < testing::first_seed() + testing::seed_count(20); ++seed, ++runs) {
    sim::Random random(seed * 0x51ed + 3);
    const CciSwarmOptions options = draw(random);
    const CciSwarmResult result = testing::run_cci_swarm(seed, options);
    INFO("seed " << seed << ", nodes " << options.nodes << ", slots of " << options.slot_bytes << ", buffers "
                 << options.receive_buffers << ", window " << options.link.window_bytes << ", " << result.connections
                 << " connections");
    CHECK(result.violation == "");
    if (!result.violation.empty()) std::fprintf(stderr, "failed: cci seed %llu\n", static_cast<unsigned long long>(seed));
    with_cards += options.link.card ? 1u : 0u;
    sum.messages += result.messages;
    sum.writes += result.writes;
    sum.reads += result.reads;
    sum.looks += result.looks;
    sum.waits += result.waits;
    sum.refused += result.refused;
    sum.failed += result.failed;
    sum.connections += result.connections;
    sum.events += result.events;
    sum.heap_bytes = std::max(sum.heap_bytes, result.heap_bytes);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "cci: %llu runs, %llu messages, %llu writes, %llu reads, %llu looks, %llu waits, %llu refused, %llu failed, %llu "
      "connections, %zu bytes of memory; "
      "%.4f s a "
      "seed; %.0f events a second\n",
      number(runs), number(sum.messages), number(sum.writes), number(sum.reads), number(sum.looks), number(sum.waits),
      number(sum.refused), number(sum.failed), number(sum.connections), sum.heap_bytes, seconds / static_cast<double>(runs),
      static_cast<double>(sum.events) / seconds);
  if (runs >= 20) {  // a replay of one seed need not have what a run of many must
    CHECK(sum.messages > 0);
    CHECK(sum.writes > 0);
    CHECK(sum.reads > 0);
    CHECK(sum.looks > 0);
    CHECK(sum.waits > 0);
    CHECK(sum.refused > 0);
    CHECK(sum.failed > 0);
    CHECK(with_cards > 0);
  }
}

TEST_CASE("swarm__messages_and_rma_with_the_same_seed__same_trace") {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    sim::Random random(seed);
    const CciSwarmOptions options = draw(random);
    const uint64_t hash = testing::run_cci_swarm(seed, options).trace_hash;
    CHECK(hash == testing::run_cci_swarm(seed, options).trace_hash);
    CHECK(hash != testing::run_cci_swarm(seed + 100, options).trace_hash);
  }
}
