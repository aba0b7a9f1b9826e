// A power cut before each single call of the destination's disk, one after the other, until the transfer ends before it: every
// prefix of what a transfer does there is recovered from. What was not synced is dropped, kept or torn, by the seed (ALICE,
// Pillai et al., OSDI 2014, section 3, looks at applications in this way).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "tests/sim/seeds.h"
#include "tests/sim/swarm.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using testing::Swarm;
using testing::SwarmOptions;
using testing::SwarmResult;

namespace {

constexpr uint64_t calls_max = 5000;  // of so small a transfer; more is a fault of this test

// One seed drops what another one keeps: the usual number of seeds (250) means one of each kind here, which is some 140 worlds.
uint64_t seeds_of_each() { return std::max<uint64_t>(1, testing::seed_count(250) / 250); }

SwarmOptions a_few_files() {
  SwarmOptions options;
  options.tree.entries_min = 3;
  options.tree.entries_max = 6;
  options.tree.large_chance = 1;  // one of several pieces, which goes through the ledger
  options.tree.large_bytes_max = 6u << 20;
  options.lanes = 1;
  options.link.rate_bytes_per_s = 100'000'000;
  options.link.window_bytes = 500'000;
  return options;
}

void cut_before_each_call(SwarmOptions options, const char* what) {
  uint64_t runs = 0, cut = 0, resumed = 0;
  const uint64_t first = testing::first_seed();
  for (uint64_t seed = first; seed < first + seeds_of_each(); ++seed) {
    for (uint64_t call = 0; call < calls_max; ++call) {
      options.destination_crash_at_call = call;
      const SwarmResult result = Swarm(seed, options).run();
      INFO(what << ": seed " << seed << ", cut before call " << call << ": " << result.result.message
                << result.second_result.message);
      REQUIRE(result.violation == "");
      REQUIRE(result.result.kind == ErrorKind::ok);
      REQUIRE(result.second_result.kind == ErrorKind::ok);
      ++runs;
      resumed += result.resumed ? 1u : 0u;
      if (result.faults == 0) break;  // it ended before that call: there is no longer prefix
      ++cut;
      REQUIRE(call + 1 < calls_max);
    }
  }
  std::printf("%s: %llu worlds, %llu power cuts, %llu resumed\n", what, static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(cut), static_cast<unsigned long long>(resumed));
  CHECK(cut > 20 * seeds_of_each());
  CHECK(resumed > 0);
}

}  // namespace

TEST_CASE("prefix__power_cut_before_each_call_of_a_push__nothing_is_lost") { cut_before_each_call(a_few_files(), "push"); }

TEST_CASE("prefix__power_cut_before_each_call_of_a_pull__nothing_is_lost") {
  SwarmOptions options = a_few_files();
  options.pull = true;
  cut_before_each_call(options, "pull");
}

TEST_CASE("prefix__power_cut_before_each_call_over_older_files__nothing_is_lost") {
  SwarmOptions options = a_few_files();
  options.older_files = true;
  cut_before_each_call(options, "older files");
}

TEST_CASE("prefix__power_cut_before_each_call_without_times__nothing_is_lost") {
  SwarmOptions options = a_few_files();
  options.attributes = false;
  options.tree.links = false;
  cut_before_each_call(options, "without times");
}

TEST_CASE("prefix__power_cut_before_each_call_where_names_are_ordered__nothing_is_lost") {
  SwarmOptions options = a_few_files();
  options.disk.ordered_names = true;
  options.older_files = true;
  cut_before_each_call(options, "ordered names");
}
