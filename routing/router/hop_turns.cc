#include "routing/router/hop_turns.h"

#include <algorithm>

namespace ccixfer::routing {

std::vector<NextHop> HopTurns::next(std::vector<NextHop> hops) {
  if (!turn_) turn_ = entropy_.next_u64();
  ++*turn_;
  for (size_t i = 0, equals = 1; i < hops.size(); i += equals, equals = 1) {
    while (i + equals < hops.size() && hops[i + equals].rank == hops[i].rank) ++equals;
    const auto group = hops.begin() + static_cast<std::ptrdiff_t>(i);
    const auto first = static_cast<std::ptrdiff_t>(*turn_ % equals);
    std::rotate(group, group + first, group + static_cast<std::ptrdiff_t>(equals));
  }
  if (hops.size() > candidates_tried_max) hops.resize(candidates_tried_max);
  std::reverse(hops.begin(), hops.end());
  return hops;
}

}  // namespace ccixfer::routing
