// Which hop is tried first.
#include "routing/router/hop_turns.h"

#include <catch2/catch.hpp>
#include <map>

#include "transports/sim/random.h"

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

// Ranks as they are given; hop i leads over device i.
std::vector<NextHop> hops_with(const std::vector<uint32_t>& ranks) {
  std::vector<NextHop> hops;
  for (const uint32_t rank : ranks) {
    NextHop& hop = hops.emplace_back();
    hop.device = static_cast<uint32_t>(hops.size() - 1);
    hop.rank = rank;
  }
  return hops;
}

}  // namespace

TEST_CASE("hop_turns__equally_good_hops__take_turns_and_no_worse_one_is_before_them") {
  sim::SimEntropy entropy(3);
  HopTurns turns(entropy);
  std::map<uint32_t, int> first;
  for (int i = 0; i < 30; ++i) {
    const auto hops = turns.next(hops_with({0, 0, 0, 1}));
    REQUIRE(hops.size() == 4);
    ++first[hops.back().device];
    CHECK(hops.front().device == 3);
  }
  CHECK(first == std::map<uint32_t, int>{{0, 10}, {1, 10}, {2, 10}});
}

TEST_CASE("hop_turns__more_than_are_tried__the_worst_are_left_out") {
  sim::SimEntropy entropy(3);
  HopTurns turns(entropy);
  const auto hops = turns.next(hops_with({0, 1, 2, 3, 4, 5}));
  REQUIRE(hops.size() == candidates_tried_max);
  CHECK(hops.back().device == 0);
  CHECK(hops.front().device == candidates_tried_max - 1);
}
