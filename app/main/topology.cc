#include "app/main/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "app/main/devices.h"
#include "core/base/units.h"
#include "routing/map/router_map.h"

namespace ccixfer::program {
namespace {

std::string name_of(routing::SubnetId subnet) { return fmt::format("{}:{}", subnet.as, subnet.subnet); }

// A device of another host: its interfaces are not ours, so only what the file says counts.
routing::DeviceRecord record_of(const DeviceConfig& device) {
  routing::DeviceRecord record;
  record.subnet = *device.subnet;
  record.rate_bits_per_s = device.rate_bits_per_s.value_or(0);
  record.capabilities = device.capabilities.value_or(0);
  record.transit = device.transit;
  record.wan = device.wan;
  record.wan_to = device.wan_to;
  const std::string host = device.ip.empty() ? (device.interface.empty() ? "any" : device.interface) : device.ip;
  record.uri = host.find(':') == std::string::npos ? fmt::format("{}://{}:{}", device.transport, host, device.port)
                                                   : fmt::format("{}://[{}]:{}", device.transport, host, device.port);
  return record;
}

Result<void> add_routes(Topology& topology, std::vector<routing::RouterRecord> records, std::vector<routing::StaticRoute> statics) {
  const auto metrics = routing::parse_metrics(topology.metrics);
  if (!metrics) return tl::unexpected(metrics.error());
  const routing::RouterMap map(std::move(records), *metrics, std::move(statics));
  const std::vector<routing::SubnetId> subnets = map.subnets();
  for (const routing::SubnetId from : subnets) {
    for (const routing::SubnetId to : subnets) {
      if (from == to) continue;
      for (const routing::Route& route : map.routes(from, to)) {
        TopologyRoute line{name_of(from), name_of(to), {}, {}};
        for (const routing::SubnetId subnet : route.subnets) line.subnets.push_back(name_of(subnet));
        line.cost.assign(route.cost.value.begin(), route.cost.value.begin() + static_cast<std::ptrdiff_t>(metrics->size()));
        topology.routes.push_back(std::move(line));
      }
    }
  }
  return {};
}

}  // namespace

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

Result<Topology> topology_of(const std::vector<Config>& configs) {
  Topology topology;
  std::vector<routing::RouterRecord> records;
  std::vector<routing::StaticRoute> statics;
  std::map<routing::SubnetId, std::pair<std::string, std::string>> transports;  // of a subnet: transport and who said so
  for (const Config& config : configs) {
    routing::RouterRecord record;
    record.router = records.size() + 1;
    record.instance = 1;
    TopologyRouter router;
    router.name = config.file;
    for (const DeviceConfig& device : config.devices) {
      if (!device.subnet) continue;
      const auto [at, first] = transports.try_emplace(*device.subnet, device.transport, config.file);
      if (!first && at->second.first != device.transport) {
        return fail(ErrorKind::usage,
                    fmt::format("{}: device.{}.subnet: {} is {} here and {} in {}: a subnet has exactly one transport", config.file,
                                device.name, name_of(*device.subnet), device.transport, at->second.first, at->second.second));
      }
      record.devices.push_back(record_of(device));
      const std::string rate = device.rate_bits_per_s ? fmt::format("{}Mb/s", *device.rate_bits_per_s / 1'000'000) : "rate unknown";
      router.devices.push_back(fmt::format("{}: subnet {}, {}, {}{}{}", device.name, name_of(*device.subnet),
                                           record.devices.back().uri, rate, device.wan ? ", wan" : "",
                                           device.transit ? "" : ", no transit"));
    }
    if (record.devices.empty())
      return fail(ErrorKind::usage, fmt::format("no routing device: {}: give devices as, subnet and router", config.file));
    if (!topology.metrics.empty() && topology.metrics != config.router.metric) {
      return fail(ErrorKind::usage, fmt::format("{}: router.metric: it differs from that of {}: all routers need the same",
                                                config.file, configs.front().file));
    }
    topology.metrics = config.router.metric;
    for (routing::StaticRoute& route : static_routes_of(config)) statics.push_back(std::move(route));
    records.push_back(std::move(record));
    topology.routers.push_back(std::move(router));
  }
  if (auto added = add_routes(topology, std::move(records), std::move(statics)); !added) return tl::unexpected(added.error());
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
      router.devices.push_back(fmt::format("subnet {}, {}, {}Mb/s{}{}", name_of(device.subnet), printable(device.uri),
                                           device.rate_bits_per_s / 1'000'000, device.wan ? ", wan" : "",
                                           device.transit ? "" : ", no transit"));
    }
    topology.routers.push_back(std::move(router));
  }
  if (auto added = add_routes(topology, std::move(records), {}); !added) return tl::unexpected(added.error());
  return topology;
}

std::vector<std::string> topology_text(const Topology& topology) {
  std::vector<std::string> lines;
  for (const TopologyRouter& router : topology.routers) {
    lines.push_back(fmt::format("router {}", router.name));
    for (const std::string& device : router.devices) lines.push_back("  " + device);
  }
  lines.push_back(fmt::format("routes, cheapest first (cost: {})", fmt::join(topology.metrics, ", ")));
  for (const TopologyRoute& route : topology.routes) {
    lines.push_back(fmt::format("  {} -> {}: {} (cost {})", route.from, route.to, fmt::join(route.subnets, " > "),
                                fmt::join(route.cost, ", ")));
  }
  if (topology.routes.empty()) lines.push_back("  none");
  return lines;
}

}  // namespace ccixfer::program
