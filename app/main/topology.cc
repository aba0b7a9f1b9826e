#include "app/main/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "app/devices/devices.h"
#include "core/base/units.h"
#include "routing/map/router_map.h"
#include "transports/inet/address.h"

namespace ccixfer::program {
namespace {

// A device of another host: its interfaces are not ours, so only what the file says counts.
routing::DeviceRecord record_of(const DeviceConfig& device) {
  routing::DeviceRecord record;
  record.subnet = *device.subnet;
  record.rate_bits_per_s = device.rate_bits_per_s.value_or(routing::rate_unknown_bits_per_s);
  record.capabilities = device.capabilities.value_or(0);
  record.transit = device.transit;
  record.wan = device.wan;
  record.wan_to = device.wan_to;
  if (device.transport == "shm") {
    record.uri = "shm://" + (device.shm_name.empty() ? "any" : device.shm_name);
    return record;
  }
  const std::string host = device.ip.empty() ? (device.interface.empty() ? "any" : device.interface) : device.ip;
  record.uri = host.find(':') == std::string::npos ? fmt::format("{}://{}:{}", device.transport, host, device.port)
                                                   : fmt::format("{}://[{}]:{}", device.transport, host, device.port);
  return record;
}

// Why forwarding takes the first of `cost`s: by what metric it is the cheapest.
std::string reason_of(const routing::Route& chosen, const std::vector<routing::Route>& all,
                      const std::vector<std::string>& metrics) {
  if (chosen.is_static) return "static route";
  const routing::Route* next = nullptr;
  size_t equals = 0;
  for (const routing::Route& route : all) {
    if (route.subnets == chosen.subnets) continue;
    if (next == nullptr) next = &route;
    equals += route.cost == chosen.cost ? 1u : 0u;
  }
  if (next == nullptr) return "the only one";
  if (equals > 0) return fmt::format("as cheap as {} other{}: they share", equals, equals == 1 ? "" : "s");
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (chosen.cost.value[i] != next->cost.value[i])
      return fmt::format("{} {} against {}", metrics[i], chosen.cost.value[i], next->cost.value[i]);
  }
  return "the cheapest";
}

void add_pair(Topology& topology, const routing::RouterMap& map, routing::SubnetId from, routing::SubnetId to) {
  bool cut = false;
  std::vector<routing::Route> routes = map.routes(from, to, &cut);
  const auto chosen = map.chosen(from, to);
  const auto same = [&](const routing::Route& route) { return chosen && route.subnets == chosen->subnets; };
  if (chosen && std::none_of(routes.begin(), routes.end(), same)) routes.insert(routes.begin(), *chosen);
  if (cut)
    topology.notes.push_back(
        fmt::format("{} -> {}: more than {} routes: the list is cut", name_of(from), name_of(to), routes.size()));
  for (const routing::Route& route : routes) {
    TopologyRoute line;
    line.from = name_of(from);
    line.to = name_of(to);
    for (const routing::SubnetId subnet : route.subnets) line.subnets.push_back(name_of(subnet));
    line.cost.assign(route.cost.value.begin(), route.cost.value.begin() + static_cast<std::ptrdiff_t>(topology.metrics.size()));
    line.chosen = same(route);
    if (line.chosen) line.reason = reason_of(*chosen, routes, topology.metrics);
    topology.routes.push_back(std::move(line));
  }
}

// "W*" of a public WAN, "W4" of one that serves AS4 only; with its number where that is not unique.
std::string label_of(const routing::RouterMap& map, routing::SubnetId subnet) {
  if (!map.is_wan(subnet)) return fmt::format("{}", subnet.subnet);
  const auto plain = [&](routing::SubnetId id) {
    std::set<uint32_t> to;
    for (const routing::RouterRecord& record : map.records()) {
      for (const routing::DeviceRecord& device : record.devices) {
        if (device.subnet == id && device.wan) to.insert(device.wan_to.begin(), device.wan_to.end());
      }
    }
    return to.empty() ? std::string("W*") : fmt::format("W{}", fmt::join(to, "+"));
  };
  const std::string label = plain(subnet);
  for (const routing::SubnetId other : map.subnets()) {
    if (other != subnet && other.as == subnet.as && map.is_wan(other) && plain(other) == label)
      return fmt::format("{}({})", label, subnet.subnet);
  }
  return label;
}

void add_subnets(Topology& topology, const routing::RouterMap& map) {
  std::map<routing::SubnetId, const routing::DeviceRecord*> device_of;
  for (const routing::RouterRecord& record : map.records()) {
    for (const routing::DeviceRecord& device : record.devices) device_of.emplace(device.subnet, &device);
  }
  for (const auto& [id, device] : device_of) {
    const routing::Cost cost = map.cost(id);
    std::string about =
        fmt::format("{}, {}, cost {}", device->uri.substr(0, device->uri.find("://")), format_link_rate(device->rate_bits_per_s),
                    fmt::join(cost.value.begin(), cost.value.begin() + static_cast<std::ptrdiff_t>(topology.metrics.size()), "/"));
    if (!device->transit && !device->wan) about += ", no transit";
    topology.subnets.push_back({id, label_of(map, id), std::move(about), map.is_wan(id)});
  }
}

Result<void> add_routes(Topology& topology, std::vector<routing::RouterRecord> records, std::vector<routing::StaticRoute> statics) {
  const auto metrics = routing::parse_metrics(topology.metrics);
  if (!metrics) return tl::unexpected(metrics.error());
  const routing::RouterMap map(std::move(records), *metrics, std::move(statics));
  topology.problems = problems_of(map);
  add_subnets(topology, map);
  const std::vector<routing::SubnetId> subnets = map.subnets();
  size_t pairs = 0;
  for (const routing::SubnetId from : subnets) {
    for (const routing::SubnetId to : subnets) {
      if (from != to && ++pairs <= pairs_listed_max) add_pair(topology, map, from, to);
    }
  }
  if (pairs > pairs_listed_max)
    topology.notes.push_back(fmt::format("{} pairs of subnets: the list is cut after {}", pairs, pairs_listed_max));
  return {};
}

// Two routers that say different things about one subnet.
Result<void> check_same(const std::string& what, const std::string& mine, const std::pair<std::string, std::string>& theirs,
                        const Config& config, const DeviceConfig& device, std::string_view remedy) {
  if (theirs.first == mine) return {};
  return fail(ErrorKind::usage, fmt::format("{}: device.{}.{}: subnet {} is {} here and {} in {}: {}", config.file, device.name,
                                            what, name_of(*device.subnet), mine, theirs.first, theirs.second, remedy));
}

using Addresses = std::map<std::pair<routing::SubnetId, std::string>, std::string>;  // and who has it

// That of all interfaces is no address of its own: the router that runs finds out which it has, and tells that.
bool is_any_address(const std::string& ip) {
  inet::Address address;
  return ip.empty() || (inet::numeric_address(ip, 0, address) && inet::is_wildcard(address));
}

// No two routers have one address, where the files say which it is: also of one file that is given twice.
Result<void> check_address(Addresses& addresses, const Config& config, const DeviceConfig& device, const std::string& uri) {
  if (is_any_address(device.ip) || device.port == 0) return {};
  const auto [at, is_new] = addresses.try_emplace({*device.subnet, uri}, config.file);
  if (is_new) return {};
  return fail(ErrorKind::usage, fmt::format("{}: device.{}: {} of subnet {} stands in {} too: give each router its own address",
                                            config.file, device.name, uri, name_of(*device.subnet), at->second));
}

}  // namespace

std::string name_of(routing::SubnetId subnet) { return fmt::format("{}:{}", subnet.as, subnet.subnet); }

std::vector<routing::StaticRoute> static_routes_of(const Config& config) {
  uint32_t own_as = 0;
  for (const DeviceConfig& device : config.devices) {
    if (device.subnet) own_as = device.subnet->as;
  }
  std::vector<routing::StaticRoute> statics;
  for (const StaticRoute& route : config.router.static_routes) {
    routing::StaticRoute fixed;
    fixed.from = {own_as, route.from};
    fixed.to = {route.to_as.value_or(own_as), route.to_subnet};
    for (const uint32_t subnet : route.via) fixed.via.push_back({own_as, subnet});
    statics.push_back(std::move(fixed));
  }
  return statics;
}

namespace {

// Between subnets that are here, over one that no router has: such a route can never hold.
std::vector<std::string> lacking_of(const std::vector<Config>& configs, const Topology& topology) {
  std::set<routing::SubnetId> known;
  for (const TopologyRouter& router : topology.routers) known.insert(router.subnets.begin(), router.subnets.end());
  std::vector<std::string> lacking;
  for (const Config& config : configs) {
    for (const routing::StaticRoute& route : static_routes_of(config)) {
      if (!known.contains(route.from) || !known.contains(route.to)) continue;
      for (const routing::SubnetId& subnet : route.via) {
        if (known.contains(subnet)) continue;
        lacking.push_back(fmt::format("{}: router.static.via: no router is on subnet {}, so {} does not reach {}: name others",
                                      config.file, name_of(subnet), name_of(route.from), name_of(route.to)));
      }
    }
  }
  return lacking;
}

}  // namespace

Result<Topology> topology_of(const std::vector<Config>& configs) {
  Topology topology;
  std::vector<routing::RouterRecord> records;
  std::vector<routing::StaticRoute> statics;
  std::map<routing::SubnetId, std::pair<std::string, std::string>> transports, rates;  // of a subnet: what, and who said so
  Addresses addresses;
  for (const Config& config : configs) {
    routing::RouterRecord record;
    record.router = records.size() + 1;
    record.instance = 1;
    TopologyRouter router;
    router.name = config.file;
    for (const DeviceConfig& device : config.devices) {
      if (!device.subnet) continue;
      const auto& transport = transports.try_emplace(*device.subnet, device.transport, config.file).first->second;
      if (auto same = check_same("subnet", device.transport, transport, config, device, "a subnet has exactly one transport");
          !same)
        return tl::unexpected(same.error());
      if (device.rate_bits_per_s) {
        const std::string rate = format_link_rate(*device.rate_bits_per_s);
        const auto& known = rates.try_emplace(*device.subnet, rate, config.file).first->second;
        if (auto same = check_same("rate", rate, known, config, device, "give the same rate in both, or number one of them anew");
            !same)
          return tl::unexpected(same.error());
      }
      record.devices.push_back(record_of(device));
      if (auto alone = check_address(addresses, config, device, record.devices.back().uri); !alone)
        return tl::unexpected(alone.error());
      const std::string rate = device.rate_bits_per_s ? format_link_rate(*device.rate_bits_per_s) : "rate unknown";
      router.subnets.push_back(*device.subnet);
      router.devices.push_back(fmt::format("{}: subnet {}, {}, {}{}{}", device.name, name_of(*device.subnet),
                                           record.devices.back().uri, rate, device.wan ? ", wan" : "",
                                           device.transit ? "" : ", no transit"));
    }
    if (record.devices.empty())
      return fail(ErrorKind::usage, fmt::format("no routing device: {}: give devices as, subnet and router", config.file));
    std::set<routing::SubnetId> joined(router.subnets.begin(), router.subnets.end());
    if (joined.size() < 2) {
      return fail(ErrorKind::usage, fmt::format("{}: device: it is on subnet {} only: a router joins two subnets or more",
                                                config.file, name_of(*joined.begin())));
    }
    if (!topology.metrics.empty() && topology.metrics != config.router.metric) {
      return fail(ErrorKind::usage, fmt::format("{}: router.metric: it differs from that of {}: all routers need the same",
                                                config.file, configs.front().file));
    }
    topology.metrics = config.router.metric;
    for (routing::StaticRoute& route : static_routes_of(config)) statics.push_back(std::move(route));
    records.push_back(std::move(record));
    topology.routers.push_back(std::move(router));
  }
  topology.warnings = strangers_of(configs, records);
  if (auto added = add_routes(topology, std::move(records), std::move(statics)); !added) return tl::unexpected(added.error());
  for (std::string& island : islands_of(topology)) topology.warnings.push_back(std::move(island));
  const std::vector<std::string> lacking = lacking_of(configs, topology);
  topology.problems.insert(topology.problems.begin(), lacking.begin(), lacking.end());
  if (!topology.problems.empty()) return fail(ErrorKind::usage, topology.problems.front());
  return topology;
}

Result<Topology> topology_of_records(std::vector<routing::RouterRecord> records, const std::vector<std::string>& metric) {
  Topology topology;
  topology.metrics = metric;
  std::erase_if(records, [](const routing::RouterRecord& record) { return record.withdrawn; });
  for (const routing::RouterRecord& record : records) {
    TopologyRouter router;
    router.name = fmt::format("{:016x}", record.router);
    for (const routing::DeviceRecord& device : record.devices) {
      router.devices.push_back(
          fmt::format("subnet {}, {}, {}{}{}{}{}", name_of(device.subnet), printable(device.uri),
                      format_link_rate(device.rate_bits_per_s), device.wan ? ", wan" : "", device.transit ? "" : ", no transit",
                      device.latency_ns == 0 ? "" : fmt::format(", {}us", device.latency_ns / 1000),
                      device.reaches.empty() ? "" : fmt::format(", reaches AS {}", fmt::join(device.reaches, ", "))));
      router.subnets.push_back(device.subnet);
    }
    topology.routers.push_back(std::move(router));
  }
  if (auto added = add_routes(topology, std::move(records), {}); !added) return tl::unexpected(added.error());
  return topology;
}

}  // namespace ccixfer::program
