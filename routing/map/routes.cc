// The table of all routes, for `ccixfer routes`: enumerated, not used for forwarding.
#include <algorithm>

#include "routing/map/router_map.h"

namespace ccixfer::routing {
namespace {

constexpr size_t route_subnets_max = 9;  // eight routers
constexpr size_t steps_max = 200'000;    // of the search: a dense map must not hang the command

bool is_within(const std::vector<SubnetId>& shorter, const std::vector<SubnetId>& longer) {
  if (shorter.size() >= longer.size()) return false;
  size_t at = 0;
  for (const SubnetId& subnet : longer) {
    if (at < shorter.size() && shorter[at] == subnet) ++at;
  }
  return at == shorter.size();
}

}  // namespace

std::vector<Route> RouterMap::routes(SubnetId from, SubnetId to) const {
  if (from == to || by_subnet_.count(from) == 0 || by_subnet_.count(to) == 0) return {};
  if (from.as == to.as && wan_to_wan(from, to)) return {};
  std::vector<std::vector<SubnetId>> found;
  size_t steps = 0;
  std::vector<SubnetId> path{from};
  // Depth first over subnets; `via` is how the last subnet was entered (any device on it will do).
  const auto extend = [&](const auto& self, const DeviceRecord& via) -> void {
    if (path.size() >= route_subnets_max || found.size() >= 4 * routes_max || ++steps > steps_max) return;
    std::vector<SubnetId> tried;
    for (const Place place : neighbours(via)) {
      for (const DeviceRecord& out : records_[place.router].devices) {
        if (std::find(path.begin(), path.end(), out.subnet) != path.end()) continue;
        if (std::find(tried.begin(), tried.end(), out.subnet) != tried.end() || wan_to_wan(path.back(), out.subnet)) continue;
        if (out.subnet != to && !passable(out, from.as, to.as)) continue;
        tried.push_back(out.subnet);
        path.push_back(out.subnet);
        if (out.subnet == to) {
          found.push_back(path);
        } else {
          self(self, out);
        }
        path.pop_back();
      }
    }
  };
  extend(extend, device(by_subnet_.at(from).front()));

  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<Route> kept;
  for (const auto& subnets : found) {
    const auto contained = [&](const Route& route) { return route.subnets == subnets || is_within(route.subnets, subnets); };
    if (std::any_of(kept.begin(), kept.end(), contained)) continue;
    Route route;
    route.subnets = subnets;
    for (const SubnetId& subnet : subnets) route.cost = route.cost + cost(subnet);
    kept.push_back(std::move(route));
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Route& a, const Route& b) { return a.cost < b.cost; });
  if (kept.size() > routes_max) kept.resize(routes_max);
  return kept;
}

}  // namespace ccixfer::routing
