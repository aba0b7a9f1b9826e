// The topology that configuration files of routers describe, as `ccixfer routes` shows it without any router running.
#pragma once
#include <string>
#include <vector>

#include "app/main/config.h"
#include "core/base/result.h"
#include "routing/map/router_map.h"

namespace ccixfer::program {

struct TopologyRoute {
  std::string from, to;              // "AS:SUBNET"
  std::vector<std::string> subnets;  // crossed, from and to included
  std::vector<uint64_t> cost;        // by the order of the metrics
};
struct TopologyRouter {
  std::string name;                  // the configuration's file
  std::vector<std::string> devices;  // "lan tcp 1:1 10Gb/s tcp://10.0.0.1:7000"
};
struct Topology {
  std::vector<std::string> metrics;
  std::vector<TopologyRouter> routers;
  std::vector<TopologyRoute> routes;  // of every pair of subnets, cheapest first
};

[[nodiscard]] std::vector<routing::StaticRoute> static_routes_of(
    const Config& config);  // numbers without an AS are of the first device's
// One configuration a router. usage: no routing device, a clash between the files (a subnet of two transports), metrics that
// differ.
[[nodiscard]] Result<Topology> topology_of(const std::vector<Config>& configs);
// The same of a running router's records.
[[nodiscard]] Result<Topology> topology_of_records(std::vector<routing::RouterRecord> records,
                                                   const std::vector<std::string>& metric);
[[nodiscard]] std::vector<std::string> topology_text(const Topology& topology);  // for people, a line each

}  // namespace ccixfer::program
