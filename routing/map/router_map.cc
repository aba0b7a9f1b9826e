#include "routing/map/router_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace ccixfer::routing {
namespace {

constexpr uint64_t terabit_per_s = 1'000'000'000'000;
constexpr Cost infinite{{std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max(),
                         std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max()}};

bool contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

uint64_t metric_of(Metric metric, const DeviceRecord& device) {
  switch (metric) {
    case Metric::bandwidth:
      return bandwidth_metric(device.rate_bits_per_s, device.capabilities);
    case Metric::hops:
      return 1;
    case Metric::capabilities:
      return (device.capabilities & capability_zero_copy) != 0 ? 0 : 1;
    case Metric::latency:
      return std::min(device.latency_ns, latency_ns_max);
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
    base_.push_back(places_.size());
    for (uint32_t d = 0; d < records_[r].devices.size(); ++d) {
      const Place place{r, d};
      const DeviceRecord& dev = device(place);
      places_.push_back(place);
      Subnet& subnet = subnets_[dev.subnet];
      if (subnet.places.empty()) subnet.index = subnets_.size() - 1;
      subnet.places.push_back(place);
      subnet.wan = subnet.wan || dev.wan;
      if (dev.wan) wan_.push_back(place);
      Cost cost;
      for (size_t i = 0; i < std::min(order_.size(), metrics_max); ++i) cost.value[i] = metric_of(order_[i], dev);
      // No edge costs nothing (routing §VI.A.3); routers that disagree about a subnet: the dearer one counts.
      if (cost == Cost{}) cost.value[std::min(order_.size(), metrics_max - 1)] = 1;
      subnet.cost = std::max(subnet.cost, cost);
    }
  }
  for (const Place place : places_) subnet_of_.push_back(find(device(place).subnet));
  group_wan_devices();
}

// By all that wans_join() asks of one side.
void RouterMap::group_wan_devices() {
  std::map<std::tuple<uint32_t, std::string_view, std::vector<uint32_t>>, size_t> groups;
  wan_group_.resize(places_.size());
  for (const Place place : wan_) {
    const DeviceRecord& dev = device(place);
    wan_group_[state(place)] = groups.try_emplace({dev.subnet.as, scheme_of(dev), dev.wan_to}, groups.size()).first->second;
  }
  wan_groups_ = groups.size();
}

const RouterMap::Subnet* RouterMap::find(SubnetId subnet) const {
  const auto found = subnets_.find(subnet);
  return found == subnets_.end() ? nullptr : &found->second;
}

Cost RouterMap::cost(SubnetId subnet) const {
  const Subnet* found = find(subnet);
  return found == nullptr ? Cost{} : found->cost;
}

std::vector<SubnetId> RouterMap::subnets() const {
  std::vector<SubnetId> all;
  for (const auto& [id, subnet] : subnets_) all.push_back(id);
  return all;
}

bool RouterMap::is_wan(SubnetId subnet) const {
  const Subnet* found = find(subnet);
  return found != nullptr && found->wan;
}

bool RouterMap::joined(const DeviceRecord& a, const DeviceRecord& b) const { return a.subnet == b.subnet || wans_join(a, b); }

bool RouterMap::passable(const DeviceRecord& device, uint32_t source_as, uint32_t to_as) const {
  // Nothing passes through a third AS, not even from its WAN device back to the WAN.
  if (device.subnet.as != source_as && device.subnet.as != to_as) return false;
  if (!device.wan) return device.transit;
  return source_as != to_as && (device.wan_to.empty() || contains(device.wan_to, source_as) || contains(device.wan_to, to_as));
}

std::vector<RouterMap::Place> RouterMap::neighbours(const DeviceRecord& from) const {
  std::vector<Place> found;
  if (const Subnet* same = find(from.subnet)) found = same->places;
  if (from.wan) {
    for (const Place place : wan_) {
      if (device(place).subnet != from.subnet && joined(from, device(place))) found.push_back(place);
    }
  }
  return found;
}

bool RouterMap::wan_to_wan(SubnetId from, SubnetId to) const { return from != to && is_wan(from) && is_wan(to); }

bool RouterMap::is_on(uint32_t router, SubnetId subnet) const {
  const auto& all = records_[router].devices;
  return std::any_of(all.begin(), all.end(), [&](const DeviceRecord& dev) { return dev.subnet == subnet; });
}

// Dijkstra from the destination backwards, over two kinds of nodes: traffic that leaves a router by a device, and traffic that has
// arrived at one. A subnet is an edge between all its routers: the first arrival on it prices it for all the others, the second one
// for the first, and no later one can be cheaper. So is what WAN devices join that are equal in all that decides on it: with many
// of them each arrival would else look at all the others.
struct RouterMap::Search {
  const RouterMap& map;
  uint32_t source_as;
  uint32_t to_as;
  std::vector<Cost> arrive;  // by state
  std::vector<bool> left;    // by state: its leaving is settled
  struct Arrivals {
    uint32_t first = UINT32_MAX;  // router
    bool from_two = false;
    // Whether it can make anything cheaper.
    bool add(uint32_t router) {
      if (from_two || first == router) return false;
      from_two = first != UINT32_MAX;
      first = std::min(first, router);
      return true;
    }
  };
  std::vector<Arrivals> arrivals;         // by subnet
  std::vector<Arrivals> wan_arrivals;     // by group of WAN devices
  using Entry = std::pair<Cost, size_t>;  // leaving by the device of that state costs so much
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;

  Search(const RouterMap& m, uint32_t from_as, uint32_t as)
      : map(m),
        source_as(from_as),
        to_as(as),
        arrive(m.places_.size(), infinite),
        left(m.places_.size()),
        arrivals(m.subnets_.size()),
        wan_arrivals(m.wan_groups_) {}

  void arrived(Place place, const Cost& distance) {
    arrive[map.state(place)] = distance;
    const DeviceRecord& dev = map.device(place);
    const auto leave = [&](Place out) {
      const size_t at = map.state(out);
      if (out.router == place.router || left[at] || !map.passable(map.device(out), source_as, to_as)) return;
      queue.push({distance + map.subnet_of_[at]->cost, at});
    };
    const Subnet* subnet = map.subnet_of_[map.state(place)];
    if (arrivals[subnet->index].add(place.router)) {
      for (const Place out : subnet->places) leave(out);
    }
    if (!dev.wan || !wan_arrivals[map.wan_group_[map.state(place)]].add(place.router)) return;
    for (const Place out : map.wan_) {
      if (map.device(out).subnet != dev.subnet && map.joined(map.device(out), dev)) leave(out);
    }
  }

  void run() {
    while (!queue.empty()) {
      const auto [cost, at] = queue.top();
      queue.pop();
      if (left[at]) continue;
      left[at] = true;
      const Place out = map.places_[at];
      const auto devices = static_cast<uint32_t>(map.records_[out.router].devices.size());
      for (uint32_t d = 0; d < devices; ++d) {
        const size_t in = map.base_[out.router] + d;
        if (arrive[in] != infinite) continue;
        if (d != out.device && map.subnet_of_[in]->wan && map.subnet_of_[at]->wan) continue;  // from WAN to WAN: never
        arrived({out.router, d}, cost);
      }
    }
  }
};

// Cost to `to` for traffic that has arrived at each place.
std::vector<Cost> RouterMap::distances(uint32_t source_as, SubnetId to) const {
  Search search(*this, source_as, to.as);
  if (const Subnet* subnet = find(to)) {
    for (const Place place : subnet->places) search.queue.push({subnet->cost, state(place)});
  } else if (source_as != to.as) {
    for (const Place place : wan_) {
      const DeviceRecord& dev = device(place);
      if (dev.subnet.as == to.as) {
        search.arrived(place, Cost{});
      } else if (contains(dev.reaches, to.as) && passable(dev, source_as, to.as)) {
        search.queue.push({cost(dev.subnet), state(place)});
      }
    }
  }
  search.run();
  return std::move(search.arrive);
}

bool RouterMap::static_next(SubnetId source, SubnetId in, SubnetId to, SubnetId& next) const {
  for (const StaticRoute& route : statics_) {
    if (route.from != source || route.to != to) continue;
    const auto at = std::find(route.via.begin(), route.via.end(), in);
    if (at == route.via.end() || at + 1 == route.via.end()) continue;
    next = *(at + 1);
    return true;
  }
  return false;
}

std::vector<NextHop> RouterMap::next_hops(uint64_t router, SubnetId source, SubnetId in, SubnetId to) const {
  const auto me = std::lower_bound(records_.begin(), records_.end(), router,
                                   [](const RouterRecord& record, uint64_t id) { return record.router < id; });
  if (me == records_.end() || me->router != router || (source.as == to.as && wan_to_wan(source, to))) return {};
  // A subnet of our own AS that nobody has: other border routers do not know better.
  const auto is_ours = [&](const DeviceRecord& dev) { return dev.subnet.as == to.as; };
  if (find(to) == nullptr && std::any_of(me->devices.begin(), me->devices.end(), is_ours)) return {};
  const std::vector<Cost> distance = distances(source.as, to);
  SubnetId pinned;
  const bool is_static = static_next(source, in, to, pinned);
  const bool on_pinned = is_static && is_on(static_cast<uint32_t>(me - records_.begin()), pinned);
  std::vector<NextHop> hops;
  std::vector<Cost> after_hop;  // what is left once the next router has it
  for (uint32_t d = 0; d < me->devices.size(); ++d) {
    const DeviceRecord& out = me->devices[d];
    // A static route over a subnet that is not ours: back to a router that is on it.
    if (wan_to_wan(in, out.subnet) || (is_static && out.subnet != (on_pinned ? pinned : in))) continue;
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
      if (is_static && !on_pinned && !is_on(place.router, pinned)) continue;
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

// Walks downhill along the distances.
std::optional<Route> RouterMap::cheapest(SubnetId from, SubnetId source, SubnetId to) const {
  if (find(from) == nullptr || find(to) == nullptr || from == to || (from.as == to.as && wan_to_wan(from, to))) return std::nullopt;
  const std::vector<Cost> distance = distances(source.as, to);
  Route route;
  std::vector<Place> arrived;  // where traffic may be that went over the last subnet
  for (const Place place : find(from)->places) {
    for (const Place next : neighbours(device(place))) arrived.push_back(next);
  }
  route.subnets.push_back(from);
  while (route.subnets.back() != to) {
    if (arrived.empty()) return std::nullopt;
    const Place at = *std::min_element(arrived.begin(), arrived.end(),
                                       [&](Place a, Place b) { return distance[state(a)] < distance[state(b)]; });
    const Cost left = distance[state(at)];
    if (left == infinite) return std::nullopt;
    arrived.clear();
    for (const DeviceRecord& out : records_[at.router].devices) {
      if (!arrived.empty() || route.subnets.back() == to) break;
      if (wan_to_wan(device(at).subnet, out.subnet)) continue;
      if (out.subnet == to && cost(to) == left) {
        route.subnets.push_back(to);
      } else if (passable(out, source.as, to.as)) {
        for (const Place next : neighbours(out)) {
          if (next.router != at.router && distance[state(next)] != infinite && cost(out.subnet) + distance[state(next)] == left)
            arrived.push_back(next);
        }
        if (!arrived.empty()) route.subnets.push_back(out.subnet);
      }
    }
  }
  for (const SubnetId& subnet : route.subnets) route.cost = route.cost + cost(subnet);
  return route;
}

std::optional<Route> RouterMap::chosen(SubnetId from, SubnetId to) const {
  for (const StaticRoute& fixed : statics_) {
    if (fixed.from != from || fixed.to != to || fixed.via.empty() || fixed.via.front() != from) continue;
    Route route;
    route.subnets = fixed.via;
    if (route.subnets.back() != to) {
      const auto rest = cheapest(fixed.via.back(), from, to);
      if (!rest) return std::nullopt;
      route.subnets.insert(route.subnets.end(), rest->subnets.begin() + 1, rest->subnets.end());
    }
    for (const SubnetId& subnet : route.subnets) route.cost = route.cost + cost(subnet);
    route.is_static = true;
    return route;
  }
  return cheapest(from, from, to);
}

}  // namespace ccixfer::routing
