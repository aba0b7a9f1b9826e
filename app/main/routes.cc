// `ccixfer routes`: the topology and the route table, of configuration files or of a running router.
#include <fmt/format.h>

#include "app/main/commands.h"
#include "app/main/topology.h"
#include "app/main/uri.h"

namespace ccixfer::program {
namespace {

CommandEnd of_configuration(const Process& process, const RoutesCommand& command) {
  std::vector<Config> configs;
  for (const std::string& file : command.places) {
    auto config = load_config(file);
    if (!config) return {config.error(), {}};
    for (const std::string& warning : config->warnings) process.reporter.warn(warning);
    configs.push_back(std::move(*config));
  }
  if (configs.empty() || command.common.config_file) configs.insert(configs.begin(), process.config);
  if (configs.front().file.empty()) {
    return {{ErrorKind::usage, "no configuration: routes: name the configuration files of routers, or the URI of a running one"},
            {}};
  }
  const auto topology = topology_of(configs);
  if (!topology) return {topology.error(), {}};
  report::Reporter& out = process.reporter;
  for (const TopologyRouter& router : topology->routers)
    out.event(report::router_event(out.seconds(), router.name, router.devices));
  for (const TopologyRoute& route : topology->routes) {
    out.event(report::route_event(out.seconds(), {route.from, route.to, route.subnets, topology->metrics, route.cost}));
  }
  for (const std::string& line : topology_text(*topology)) out.output(line);
  return {};
}

}  // namespace

CommandEnd run_routes(const Process& process, const RoutesCommand& command) {
  if (command.places.size() == 1 && command.places.front().find("://") != std::string::npos) {
    return run_routes_of_router(process, command);
  }
  return of_configuration(process, command);
}

}  // namespace ccixfer::program
