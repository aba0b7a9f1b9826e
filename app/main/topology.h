// The topology and the table of routes that `ccixfer routes` shows: of configuration files of routers, without any of them running,
// or of the records of a running one.
// Bounds: pairs_listed_max (beyond, only the table's first pairs are listed, and it says so); RouterMap::routes_max a pair.
#pragma once
#include <string>
#include <vector>

#include "app/config/config.h"
#include "core/base/result.h"
#include "routing/map/router_map.h"

namespace ccixfer::program {

inline constexpr size_t pairs_listed_max = 4096;

struct TopologyRoute {
  std::string from, to;              // "AS:SUBNET"
  std::vector<std::string> subnets;  // crossed, from and to included
  std::vector<uint64_t> cost;        // by the order of the metrics
  bool chosen = false;               // forwarding takes it
  std::string reason;                // of the choice
};
struct TopologyRouter {
  std::string name;                  // the configuration's file, or the router's id
  std::vector<std::string> devices;  // "lan: subnet 1:1, tcp://10.0.0.1:7000, 10Gb/s"
  std::vector<routing::SubnetId> subnets;
};
struct TopologySubnet {
  routing::SubnetId id;
  std::string label;  // within its AS: the number; "W*" of a public WAN, "W4" of one that leads to AS4 only
  std::string about;  // "tcp, 10Gb/s, cost 100"
  bool wan = false;
};
struct Topology {
  std::vector<std::string> metrics;
  std::vector<TopologySubnet> subnets;
  std::vector<TopologyRouter> routers;
  std::vector<TopologyRoute> routes;  // of every pair of subnets, cheapest first
  std::vector<std::string> problems;  // of a running network; in configuration files they are errors
  std::vector<std::string> warnings;  // of configuration files: routers and AS that will not know of one another
  std::vector<std::string> notes;     // what is not shown
};

[[nodiscard]] std::vector<routing::StaticRoute> static_routes_of(
    const Config& config);  // numbers without an AS are of the first device's
// One configuration a router. usage: what problems_of() finds, a subnet of two transports or two rates, metrics that differ, a
// router with less than two routing devices.
[[nodiscard]] Result<Topology> topology_of(const std::vector<Config>& configs);
// The same of a running router's records.
[[nodiscard]] Result<Topology> topology_of_records(std::vector<routing::RouterRecord> records,
                                                   const std::vector<std::string>& metric);

// Subnets of an AS that cannot reach one another; with the remedy when both lead to the WAN. Source: routing §IV.C.3.
[[nodiscard]] std::vector<std::string> problems_of(const routing::RouterMap& map);

// Pairs of routers of these files that no chain of `router` lists joins, although they stand on one subnet or on WANs that meet. An
// address that the files do not say (interface, a host's name) may be anybody's. `records`: a router each, as the files have them.
[[nodiscard]] std::vector<std::string> strangers_of(const std::vector<Config>& configs,
                                                    const std::vector<routing::RouterRecord>& records);
// The AS that no route leads out of, beside others.
[[nodiscard]] std::vector<std::string> islands_of(const Topology& topology);

[[nodiscard]] std::vector<std::string> topology_text(const Topology& topology);   // for people, a line each
[[nodiscard]] std::vector<std::string> topology_table(const Topology& topology);  // an AS each, as Table I of the paper
[[nodiscard]] std::vector<std::string> topology_dot(const Topology& topology);    // for Graphviz
[[nodiscard]] std::string name_of(routing::SubnetId subnet);                      // "AS:SUBNET"

}  // namespace ccixfer::program
