#include "routing/map/router_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <queue>

namespace ccixfer::routing {
namespace {

constexpr uint64_t terabit_per_s = 1'000'000'000'000;
constexpr uint64_t rate_unknown_bits_per_s = 1'000'000'000;
constexpr Cost infinite{{std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max(),
                         std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max()}};

bool contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string_view scheme_of(std::string_view uri) { return uri.substr(0, uri.find("://")); }

uint64_t metric_of(Metric metric, const DeviceRecord& device) {
  switch (metric) {
    case Metric::bandwidth:
      return bandwidth_metric(device.rate_bits_per_s, device.capabilities);
    case Metric::hops:
      return 1;
    case Metric::capabilities:
      return (device.capabilities & capability_zero_copy) != 0 ? 0 : 1;
    case Metric::latency:
      return device.latency_ns;
  }
  return 0;
}

}  // namespace

Result<std::vector<Metric>> parse_metrics(const std::vector<std::string>& names) {
  std::vector<Metric> order;
  for (const std::string& name : names) {
    Metric metric = Metric::bandwidth;
    if (name == "hops") {
      metric = Metric::hops;
    } else if (name == "capabilities") {
      metric = Metric::capabilities;
    } else if (name == "latency") {
      metric = Metric::latency;
    } else if (name != "bandwidth") {
      return fail(ErrorKind::usage, fmt::format("metric '{}': expected bandwidth, capabilities, latency or hops", name));
    }
    if (std::find(order.begin(), order.end(), metric) != order.end())
      return fail(ErrorKind::usage, fmt::format("metric '{}' twice", name));
    order.push_back(metric);
  }
  if (order.empty()) return fail(ErrorKind::usage, "no routing metric");
  return order;
}

Cost operator+(const Cost& a, const Cost& b) {
  Cost sum;
  for (size_t i = 0; i < metrics_max; ++i) {
    const uint64_t room = std::numeric_limits<uint64_t>::max() - a.value[i];
    sum.value[i] = b.value[i] > room ? std::numeric_limits<uint64_t>::max() : a.value[i] + b.value[i];
  }
  return sum;
}

uint64_t bandwidth_metric(uint64_t rate_bits_per_s, uint8_t capabilities) {
  const uint64_t rate = rate_bits_per_s == 0 ? rate_unknown_bits_per_s : rate_bits_per_s;
  const uint64_t metric = std::max<uint64_t>(1, terabit_per_s / rate);
  const bool native = (capabilities & capability_zero_copy) != 0 && (capabilities & capability_os_bypass) != 0;
  return native ? metric : 2 * metric;
}

RouterMap::RouterMap(std::vector<RouterRecord> records, std::vector<Metric> order, std::vector<StaticRoute> statics)
    : records_(std::move(records)), order_(std::move(order)), statics_(std::move(statics)) {
  // In the order of their ids, so that equal records give equal maps whatever the order in which they were heard.
  std::sort(records_.begin(), records_.end(), [](const RouterRecord& a, const RouterRecord& b) { return a.router < b.router; });
  for (uint32_t r = 0; r < records_.size(); ++r) {
    base_.push_back(states_);
    states_ += records_[r].devices.size();
    for (uint32_t d = 0; d < records_[r].devices.size(); ++d) {
      const Place place{r, d};
      const DeviceRecord& dev = device(place);
      by_subnet_[dev.subnet].push_back(place);
      if (dev.wan) wan_.push_back(place);
      is_wan_[dev.subnet] = is_wan_[dev.subnet] || dev.wan;
      Cost cost;
      for (size_t i = 0; i < std::min(order_.size(), metrics_max); ++i) cost.value[i] = metric_of(order_[i], dev);
      // No edge costs nothing (routing §VI.A.3); routers that disagree about a subnet: the dearer one counts.
      if (cost == Cost{}) cost.value[std::min(order_.size(), metrics_max - 1)] = 1;
      Cost& known = cost_[dev.subnet];
      known = std::max(known, cost);
    }
  }
}

Cost RouterMap::cost(SubnetId subnet) const {
  const auto found = cost_.find(subnet);
  return found == cost_.end() ? Cost{} : found->second;
}

std::vector<SubnetId> RouterMap::subnets() const {
  std::vector<SubnetId> all;
  for (const auto& [subnet, places] : by_subnet_) all.push_back(subnet);
  return all;
}

bool RouterMap::joined(const DeviceRecord& a, const DeviceRecord& b) const {
  if (a.subnet == b.subnet) return true;
  if (!a.wan || !b.wan || a.subnet.as == b.subnet.as || scheme_of(a.uri) != scheme_of(b.uri)) return false;
  if (a.wan_to.empty() && b.wan_to.empty()) return true;
  return contains(a.wan_to, b.subnet.as) && contains(b.wan_to, a.subnet.as);
}

bool RouterMap::passable(const DeviceRecord& device, uint32_t source_as, uint32_t to_as) const {
  if (device.wan) {
    return source_as != to_as && (device.wan_to.empty() || contains(device.wan_to, source_as) || contains(device.wan_to, to_as));
  }
  return device.transit && (device.subnet.as == source_as || device.subnet.as == to_as);
}

std::vector<RouterMap::Place> RouterMap::neighbours(const DeviceRecord& from) const {
  std::vector<Place> found;
  if (const auto same = by_subnet_.find(from.subnet); same != by_subnet_.end()) found = same->second;
  if (from.wan) {
    for (const Place place : wan_) {
      if (device(place).subnet != from.subnet && joined(from, device(place))) found.push_back(place);
    }
  }
  return found;
}

bool RouterMap::wan_to_wan(SubnetId from, SubnetId to) const {
  const auto a = is_wan_.find(from);
  const auto b = is_wan_.find(to);
  return from != to && a != is_wan_.end() && b != is_wan_.end() && a->second && b->second;
}

// Cost to `to` for traffic that has arrived at each place: Dijkstra from the destination backwards.
std::vector<Cost> RouterMap::distances(uint32_t source_as, SubnetId to) const {
  std::vector<Cost> distance(states_, infinite);
  using Entry = std::pair<Cost, std::pair<uint32_t, uint32_t>>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto leave_by = [&](Place out, const Cost& beyond) {  // traffic at out.router may leave by out.device and pay `beyond`
    const RouterRecord& router = records_[out.router];
    for (uint32_t d = 0; d < router.devices.size(); ++d) {
      if (wan_to_wan(router.devices[d].subnet, device(out).subnet)) continue;
      Cost& known = distance[state({out.router, d})];
      if (beyond < known) {
        known = beyond;
        queue.push({beyond, {out.router, d}});
      }
    }
  };
  if (const auto places = by_subnet_.find(to); places != by_subnet_.end()) {
    for (const Place place : places->second) leave_by(place, cost(to));
  }
  while (!queue.empty()) {
    const auto [reached, at] = queue.top();
    queue.pop();
    const Place place{at.first, at.second};
    if (distance[state(place)] < reached) continue;
    for (const Place out : neighbours(device(place))) {
      if (out.router == place.router || !passable(device(out), source_as, to.as)) continue;
      leave_by(out, reached + cost(device(out).subnet));
    }
  }
  return distance;
}

const StaticRoute* RouterMap::static_route(SubnetId source, SubnetId in, SubnetId to, SubnetId& next) const {
  for (const StaticRoute& route : statics_) {
    if (route.from != source || route.to != to) continue;
    const auto at = std::find(route.via.begin(), route.via.end(), in);
    if (at == route.via.end() || at + 1 == route.via.end()) continue;
    next = *(at + 1);
    return &route;
  }
  return nullptr;
}

std::vector<NextHop> RouterMap::next_hops(uint64_t router, SubnetId source, SubnetId in, SubnetId to) const {
  const auto me = std::lower_bound(records_.begin(), records_.end(), router,
                                   [](const RouterRecord& record, uint64_t id) { return record.router < id; });
  if (me == records_.end() || me->router != router || (source.as == to.as && wan_to_wan(source, to))) return {};
  const std::vector<Cost> distance = distances(source.as, to);
  SubnetId pinned;
  const bool is_static = static_route(source, in, to, pinned) != nullptr;
  std::vector<NextHop> hops;
  std::vector<Cost> after_hop;  // what is left once the next router has it
  for (uint32_t d = 0; d < me->devices.size(); ++d) {
    const DeviceRecord& out = me->devices[d];
    if (wan_to_wan(in, out.subnet) || (is_static && out.subnet != pinned)) continue;
    if (out.subnet == to) {
      hops.push_back({d, true, 0, {}, 0, cost(to)});
      after_hop.push_back(Cost{});
      continue;
    }
    // Back over the subnet it came from, to a router that fits better: the client chose among its routers at random.
    if (!passable(out, source.as, to.as) && (out.subnet != in || in != source)) continue;
    for (const Place place : neighbours(out)) {
      const Cost& left = distance[state(place)];
      if (records_[place.router].router == router || left == infinite) continue;
      hops.push_back({d, false, records_[place.router].router, device(place).uri, 0, cost(out.subnet) + left});
      after_hop.push_back(left);
    }
  }
  if (hops.empty()) return hops;
  const Cost best =
      std::min_element(hops.begin(), hops.end(), [](const NextHop& a, const NextHop& b) { return a.cost < b.cost; })->cost;
  // A fallback must be nearer to the destination than we are, or two routers could hand a request back and forth.
  std::vector<NextHop> downhill;
  for (size_t i = 0; i < hops.size(); ++i) {
    if (is_static || after_hop[i] < best) downhill.push_back(std::move(hops[i]));
  }
  std::stable_sort(downhill.begin(), downhill.end(), [](const NextHop& a, const NextHop& b) { return a.cost < b.cost; });
  for (size_t i = 1; i < downhill.size(); ++i)
    downhill[i].rank = downhill[i - 1].rank + (downhill[i].cost == downhill[i - 1].cost ? 0 : 1);
  return downhill;
}

}  // namespace ccixfer::routing
