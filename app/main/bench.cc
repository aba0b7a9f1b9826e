// `ccixfer bench`: the serving and the asking side of app/bench around one endpoint, and what people and scripts see of it.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "app/bench/asker.h"
#include "app/bench/server.h"
#include "app/config/uri.h"
#include "app/devices/node.h"
#include "app/main/bench_row.h"
#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/main/plot.h"
#include "app/main/process_trust.h"
#include "app/main/uri_file.h"
#include "app/report/bench_event.h"
#include "core/base/units.h"
#include "core/host/entropy.h"

namespace ccixfer::program {
namespace {

class ServeHandler final : public LoopHandler {
 public:
  ServeHandler(const Process& process, const BenchCommand& command, Node& node, ports::Entropy& entropy)
      : process_(process), command_(command), endpoint_(*node.endpoint), server_(endpoint_, entropy, command.wait) {}

  bool turn(Instant now) override {
    process_.reporter.set_now(now);
    const uint64_t dropped_before = server_.dropped();
    server_.turn(now);
    if (server_.dropped() != dropped_before) process_.reporter.warn("a peer was disconnected: " + printable(server_.last_drop()));
    if (stop_) {  // judged after the turn: what a peer had sent before the signal counts
      cut_short_ = server_.sessions() > 0 || command_.listen.once;
      return false;
    }
    return !(command_.listen.once && server_.ended() > 0 && server_.sessions() == 0);
  }
  Instant next_deadline() const override { return std::min(server_.next_deadline(), process_.reporter.next_deadline()); }
  bool spins() const override { return command_.wait == bench::Wait::spin && server_.sessions() > 0; }
  void on_signal(int number, Instant now) override {
    process_.reporter.set_now(now);
    if (number == SIGUSR1) return process_.reporter.stats(process_.counters);
    stop_ = true;
  }
  CommandEnd end() const {
    if (cut_short_)
      return {{ErrorKind::interrupted, "interrupted: by a signal: a measurement was under way, or none had come"}, {}};
    return {};
  }

 private:
  const Process& process_;
  const BenchCommand& command_;
  cci::Endpoint& endpoint_;
  bench::Server server_;
  bool stop_ = false, cut_short_ = false;
};

class AskHandler final : public LoopHandler {
 public:
  AskHandler(const Process& process, const BenchCommand& command, Node& node, ports::Entropy& entropy, std::string address,
             Plot* plot)
      : process_(process),
        command_(command),
        address_(address),
        plot_(plot),
        asker_(*node.endpoint, entropy, command.plan, std::move(address)) {}

  bool turn(Instant now) override {
    asker_.turn(now);
    if (!said_path_ && asker_.open()) say_path(now);
    while (const auto row = asker_.next_row()) say(*row, now);
    if (interrupted_) return false;
    return !asker_.ended();
  }
  Instant next_deadline() const override { return std::min(asker_.next_deadline(), process_.reporter.next_deadline()); }
  bool spins() const override { return command_.wait == bench::Wait::spin || asker_.wants_spin(); }
  void on_signal(int number, Instant now) override {
    process_.reporter.set_now(now);
    if (number == SIGUSR1) return process_.reporter.stats(process_.counters);
    interrupted_ = true;
  }
  CommandEnd end() const {
    if (interrupted_ && !asker_.ended())
      return {{ErrorKind::interrupted, fmt::format("interrupted: by a signal: {}", address_)}, {}};
    return {asker_.error(), {}};
  }

 private:
  void say_path(Instant now) {
    said_path_ = true;
    process_.reporter.set_now(now);
    report::Reporter& out = process_.reporter;
    const std::vector<report::Hop> path = report_hops(asker_.hops());
    out.event(report::bench_path_event(
        out.seconds(), {address_, std::string(to_string(command_.wait)), std::string(to_string(asker_.peer_wait())), path}));
    out.output(fmt::format("{}: {} waits by {}, the peer by {}", address_, "this side", to_string(command_.wait),
                           to_string(asker_.peer_wait())));
    for (size_t i = 0; i < path.size(); ++i)
      out.output(fmt::format("hop {}: {} {}", i + 1, path[i].transport, printable(path[i].node)));
    out.output(bench_head());
  }
  void say(const bench::Row& row, Instant now) {
    process_.reporter.set_now(now);
    report::Reporter& out = process_.reporter;
    out.event(report::bench_event(out.seconds(), bench_json(row)));
    for (const std::string& line : bench_lines(row)) out.output(line);
    if (plot_ != nullptr) plot_->add(row);
  }

  const Process& process_;
  const BenchCommand& command_;
  const std::string address_;
  Plot* const plot_;  // nullptr: none
  bench::Asker asker_;
  bool said_path_ = false, interrupted_ = false;
};

CommandEnd serve(const Process& process, const BenchCommand& command, Node& node, sandbox::Plan plan, ports::Entropy& entropy) {
  UriFile uri_file(process.loop);
  const std::string& file = command.listen.uri_file;
  if (!file.empty()) plan.places.push_back({directory_of(file), sandbox::Access::files});
  if (auto confined = confine(process, plan, LogLevel::warning); !confined) return {confined.error(), {}};
  ServeHandler handler(process, command, node, entropy);
  if (auto written = file.empty() ? Result<void>() : uri_file.write(file, node.uris); !written) return {written.error(), {}};
  process.reporter.ready(node.uris);
  process.loop.run(handler);
  return handler.end();
}

}  // namespace

CommandEnd run_bench(const Process& process, const BenchCommand& command) {
  std::optional<Target> target;  // none: it serves
  if (!command.serve) {
    auto there = split_target(command.uri);
    if (!there) return {there.error(), {}};
    if (!there->path.empty()) {
      return {
          {ErrorKind::usage, fmt::format("bad address: {}: a measurement has no path: give it without", printable(command.uri))},
          {}};
    }
    target = std::move(*there);
  }
  auto security = security_of_process(process, command.common, policy::WithoutIdentity::refuse);
  if (!security) return {security.error(), {}};
  const std::string transport = target ? transport_of(*target) : transport_of(command.listen.listen);
  const auto device = chosen_device(process.config, command.common.device, transport);
  if (!device) return {device.error(), {}};
  if (target) {
    if (auto there = check_target(*device, *target); !there) return {there.error(), {}};
  }
  std::unique_ptr<Plot> plot;
  if (command.plot) {
    auto started = Plot::start(*command.plot, command.uri, command.plan);
    if (!started) return {started.error(), {}};
    plot = std::move(*started);
  }
  host::SystemEntropy entropy;
  NodeOptions options;
  options.listening = command.serve;
  options.listen = command.listen.listen;
  options.waker = process.loop.waker();
  options.trust = process_trust(*security, ListenerKind::measurements);
  auto node = make_node(*device, options, entropy, process.counters);
  if (!node) return {node.error(), {}};
  sandbox::Plan plan = plan_of_question();
  if (command.serve) plan.dials = device->subnet.has_value();  // its routers
  add_trust(plan, *security);
  if (command.serve) return serve(process, command, *node, std::move(plan), entropy);
  if (auto confined = confine(process, plan); !confined) return {confined.error(), {}};
  AskHandler handler(process, command, *node, entropy, target->address, plot.get());
  process.loop.run(handler);
  CommandEnd end = handler.end();
  if (plot == nullptr || end.error.kind != ErrorKind::ok) return end;
  if (auto drawn = plot->draw(); !drawn) return {drawn.error(), {}};
  process.reporter.output("drawn: " + *command.plot);
  return end;
}

}  // namespace ccixfer::program
