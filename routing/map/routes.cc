// The table of all routes, for `ccixfer routes`: enumerated, not used for forwarding.
#include <algorithm>

#include "routing/map/router_map.h"

namespace ccixfer::routing {
namespace {

constexpr size_t route_subnets_max = 9;  // eight routers
constexpr size_t steps_max = 200'000;    // of the search: a dense map must not hang the command
constexpr size_t found_max = 16 * RouterMap::routes_max;

using Next = std::vector<std::pair<SubnetId, bool>>;  // a subnet one router away, and whether it may be passed through

}  // namespace

Next RouterMap::next_subnets(SubnetId from, uint32_t source_as, SubnetId to) const {
  std::map<SubnetId, bool> found;
  for (const Place start : find(from)->places) {
    for (const Place place : neighbours(device(start))) {
      for (const DeviceRecord& out : records_[place.router].devices) {
        if (out.subnet == from || wan_to_wan(device(place).subnet, out.subnet) || wan_to_wan(from, out.subnet)) continue;
        bool& pass = found[out.subnet];
        pass = pass || passable(out, source_as, to.as);
      }
    }
  }
  return {found.begin(), found.end()};
}

std::vector<Route> RouterMap::routes(SubnetId from, SubnetId to, bool* cut) const {
  if (cut != nullptr) *cut = false;
  if (from == to || find(from) == nullptr || find(to) == nullptr) return {};
  if (from.as == to.as && wan_to_wan(from, to)) return {};
  std::map<SubnetId, Next> known;
  const auto next_of = [&](SubnetId subnet) -> const Next& {
    const auto at = known.find(subnet);
    return at != known.end() ? at->second : known.emplace(subnet, next_subnets(subnet, from.as, to)).first->second;
  };
  const auto leads = [&](SubnetId subnet, SubnetId next) {
    const Next& all = next_of(subnet);
    const auto at = std::lower_bound(all.begin(), all.end(), std::pair{next, false});
    return at != all.end() && at->first == next && (at->second || next == to);
  };
  std::vector<Route> found;
  std::vector<SubnetId> path{from};
  size_t steps = 0;
  bool complete = true;
  // Depth first. A route contains a shorter one exactly when some subnet of it can be reached from an earlier one than the one
  // before it: such a step is not taken, so neither loops nor longer routes ever arise.
  const auto extend = [&](const auto& self) -> void {
    if (++steps > steps_max || found.size() >= found_max) {
      complete = false;
      return;
    }
    for (const auto& [subnet, pass] : next_of(path.back())) {
      const SubnetId& next = subnet;  // clang 14 takes no binding into a lambda
      if (!pass && next != to) continue;
      if (std::find(path.begin(), path.end(), next) != path.end()) continue;
      if (std::any_of(path.begin(), path.end() - 1, [&](SubnetId earlier) { return leads(earlier, next); })) continue;
      path.push_back(next);
      if (next == to) {
        Route route;
        route.subnets = path;
        for (const SubnetId& crossed : path) route.cost = route.cost + cost(crossed);
        found.push_back(std::move(route));
      } else if (path.size() < route_subnets_max) {
        self(self);
      }
      path.pop_back();
    }
  };
  extend(extend);
  std::stable_sort(found.begin(), found.end(), [](const Route& a, const Route& b) { return a.cost < b.cost; });
  if (found.size() > routes_max) {
    found.resize(routes_max);
    complete = false;
  }
  if (cut != nullptr) *cut = !complete;
  return found;
}

}  // namespace ccixfer::routing
