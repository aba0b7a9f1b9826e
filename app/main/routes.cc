// `ccixfer routes`: the topology and the route table, of configuration files or of a running router.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "app/bench/failed_connect.h"
#include "app/main/commands.h"
#include "app/main/question.h"
#include "app/main/topology.h"
#include "core/base/units.h"
#include "routing/router/map_query.h"

namespace ccixfer::program {
namespace {

constexpr Duration query_timeout = std::chrono::seconds(5);

void print(const Process& process, const RoutesCommand& command, const Topology& topology) {
  report::Reporter& out = process.reporter;
  for (const std::string& problem : topology.problems) out.warn(problem);
  for (const std::string& warning : topology.warnings) out.warn(warning);
  if (command.dot) {
    for (const std::string& line : topology_dot(topology)) out.output(line);
    return;
  }
  for (const TopologyRouter& router : topology.routers) out.event(report::router_event(out.seconds(), router.name, router.devices));
  for (const TopologyRoute& route : topology.routes) {
    out.event(report::route_event(out.seconds(),
                                  {route.from, route.to, route.subnets, topology.metrics, route.cost, route.chosen, route.reason}));
  }
  for (const std::string& line : topology_text(topology)) out.output(line);
}

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
  print(process, command, *topology);
  return {};
}

class QueryHandler final : public LoopHandler {
 public:
  QueryHandler(const Process& process, cci::Endpoint& endpoint, const std::string& uri)
      : process_(process), endpoint_(endpoint), address_(uri), query_(endpoint, uri, query_timeout, 1) {}

  bool turn(Instant now) override {
    process_.reporter.set_now(now);
    endpoint_.turn(now);
    while (auto event = endpoint_.get_event()) static_cast<void>(query_.on_event(*event));
    query_.turn(now);
    return !query_.done() && !interrupted_;
  }
  Instant next_deadline() const override { return std::min(endpoint_.next_deadline(), query_.next_deadline()); }
  void on_signal(int number, Instant) override { interrupted_ = interrupted_ || number != SIGUSR1; }
  const ports::HopInfo& router() const { return query_.router(); }
  Result<std::vector<routing::RouterRecord>> result() const {
    if (!query_.done()) return fail(ErrorKind::interrupted, "interrupted: by a signal: ask again");
    if (!query_.result()) return tl::unexpected(with_remedy(query_.result().error()));
    return query_.result();
  }

 private:
  Error with_remedy(const Error& error) const {
    if (const auto& [status, reason] = query_.refused(); status != Status::success) {
      Error refused = bench::failed_connect(status, reason, address_, "check that a router runs there and can be reached");
      refused.kind = error.kind;  // a router may say in words that we may not ask
      return refused;
    }
    if (error.kind == ErrorKind::usage) return error;
    const bool lost = error.kind == ErrorKind::network;
    return {error.kind, fmt::format("{}: {}", error.message, lost ? "try again" : "name a router of this version, which runs")};
  }

  const Process& process_;
  cci::Endpoint& endpoint_;
  const std::string address_;
  routing::MapQuery query_;
  bool interrupted_ = false;
};

CommandEnd of_router(const Process& process, const RoutesCommand& command) {
  auto question = Question::open(process, command.common, command.places.front());
  if (!question) return {question.error(), {}};
  const std::string& address = (*question)->address();
  QueryHandler handler(process, *(*question)->node().endpoint, address);
  process.loop.run(handler);
  auto records = handler.result();
  if (!records) return {records.error(), {}};
  const auto topology = topology_of_records(std::move(*records), process.config.router.metric);
  if (!topology) return {topology.error(), {}};
  const ports::HopInfo& router = handler.router();
  if (!router.peer.empty() && !command.dot) {
    process.reporter.output(fmt::format("asked {}: {}, {}", address, printable(router.peer), printable(router.protection)));
  }
  print(process, command, *topology);
  return {};
}

}  // namespace

CommandEnd run_routes(const Process& process, const RoutesCommand& command) {
  if (command.places.size() == 1 && command.places.front().find("://") != std::string::npos) {
    return of_router(process, command);
  }
  return of_configuration(process, command);
}

}  // namespace ccixfer::program
