#include "app/simulate/command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/report/json_line.h"
#include "app/report/outcome.h"
#include "app/simulate/simulation.h"
#include "core/base/units.h"

namespace ccixfer::simulate {
namespace {

using Json = nlohmann::ordered_json;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string place_of(const ScenarioFault& fault) {
  if (fault.node.empty()) return "link " + fault.link;
  return fault.link.empty() ? fault.node : fault.node + " on " + fault.link;
}

// What happened in one world, as it happens. Everything it prints depends on the scenario and the seed alone.
class Printer {
 public:
  Printer(report::Reporter& out, const program::SimCommand& command, bool brief) : out_(out), command_(command), brief_(brief) {}

  WorldNews news(uint64_t seed) {
    WorldNews news;
    news.on_fault = [this, seed](Duration at, const ScenarioFault& fault, bool over) { say_fault(seed, at, fault, over); };
    news.stop = program::TurnLoop::is_told_to_end;
    news.on_end = [this](Duration at, const TransferOutcome& outcome) { say_end(at, outcome); };
    if (command_.trace) {
      news.on_trace = [this](std::string_view line) {
        if (command_.common.json) {
          out_.event(report::text_event(std::strtod(std::string(line).c_str(), nullptr), "trace", "line", line));
        } else {
          out_.output(fmt::format("trace {}", line));
        }
      };
    }
    return news;
  }

  void world(const WorldOutcome& world) {
    for (const TransferOutcome& transfer : world.transfers) event_of(world, transfer);
    Json event;
    event["event"] = "world";
    event["t"] = seconds(world.took);
    event["seed"] = world.seed;
    event["status"] = error_row(world.end.kind).name;
    event["exit"] = exit_code(world.end.kind);
    event["seconds"] = seconds(world.took);
    event["events"] = world.events;
    event["faults"] = world.faults;
    event["connections_reset"] = world.resets;
    event["packets_corrupted"] = world.corruptions;
    event["bytes_delivered"] = world.bytes_delivered;
    event["trace_hash"] = fmt::format("{:016x}", world.trace_hash);
    out_.event(event.dump());
    for (const TransferOutcome& transfer : world.transfers) {
      if (brief_ && transfer.end.kind == ErrorKind::ok) continue;
      const program::Tally& tally = transfer.tally;
      const ScenarioTransfer& plan = *transfer.transfer;
      out_.output(fmt::format(
          "transfer {}: {} (exit {}){}: {} -> {}{}: {} files, {} in {:.6f} s: {} sent, {} segments sent again, {} run{}{}",
          plan.name, error_row(transfer.end.kind).name, exit_code(transfer.end.kind),
          transfer.end.message.empty() ? "" : ": " + printable(transfer.end.message), plan.from, plan.to,
          plan.routed ? " routed" : "", tally.files, format_bytes(tally.bytes), seconds(transfer.took),
          format_bytes(tally.bytes_sent), tally.segments_resent, transfer.runs, transfer.runs == 1 ? "" : "s",
          transfer.verified ? ", verified after a power cut" : ""));
    }
    out_.output(fmt::format(
        "seed {}: {}: {:.6f} s of virtual time, {} events, {} faults, {} connections reset, {} packets corrupted, trace {:016x}",
        world.seed, error_row(world.end.kind).name, seconds(world.took), world.events, world.faults, world.resets,
        world.corruptions, world.trace_hash));
  }

 private:
  void say_fault(uint64_t seed, Duration at, const ScenarioFault& fault, bool over) {
    Json event;
    event["event"] = "fault";
    event["t"] = seconds(at);
    event["seed"] = seed;
    event["kind"] = fault_name(fault.kind);
    event["node"] = fault.node;
    event["link"] = fault.link;
    event["for_s"] = fault.lasts ? Json(seconds(*fault.lasts)) : Json(nullptr);
    event["over"] = over;
    out_.event(event.dump());
    if (brief_) return;
    const std::string lasts = fault.lasts && !over ? fmt::format(" for {} s", seconds(*fault.lasts)) : "";
    out_.output(fmt::format("{:.6f} {} of {}{}", seconds(at), fault_name(fault.kind), place_of(fault), over ? " is over" : lasts));
  }
  void say_end(Duration at, const TransferOutcome& outcome) {
    if (!brief_)
      out_.output(fmt::format("{:.6f} end of {}: {}", seconds(at), outcome.transfer->name, error_row(outcome.end.kind).name));
  }
  void event_of(const WorldOutcome& world, const TransferOutcome& transfer) {
    const ScenarioTransfer& plan = *transfer.transfer;
    Json event;
    event["event"] = "transfer";
    event["t"] = seconds(transfer.began + transfer.took);
    event["seed"] = world.seed;
    event["name"] = plan.name;
    event["from"] = plan.from;
    event["to"] = plan.to;
    event["routed"] = plan.routed;
    event["status"] = error_row(transfer.end.kind).name;
    event["exit"] = exit_code(transfer.end.kind);
    event["reason"] = printable(transfer.end.message);
    event["seconds"] = seconds(transfer.took);
    report::put_counts(event, program::counts_of(transfer.tally));
    event["runs"] = transfer.runs;
    event["verified"] = transfer.verified;
    out_.event(event.dump());
  }

  report::Reporter& out_;
  const program::SimCommand& command_;
  const bool brief_;  // many seeds: the good ones have one line
};

}  // namespace

program::CommandEnd run_sim(const program::Process& process, const program::SimCommand& command) {
  const auto scenario = load_scenario(command.scenario);
  if (!scenario) return {scenario.error(), {}};
  Printer printer(process.reporter, command, command.seeds > 1);
  program::CommandEnd end;
  const uint64_t first = command.seed.value_or(scenario->seed);
  uint64_t failed = 0, events = 0;
  const Instant began = process.loop.now();
  for (uint64_t i = 0; i < command.seeds; ++i) {
    const WorldNews news = printer.news(first + i);
    const WorldOutcome outcome = simulate(*scenario, first + i, news, command.common.verbose);
    if (program::TurnLoop::is_told_to_end()) {
      end.error = {ErrorKind::interrupted, fmt::format("interrupted: seed {}: run it again", first + i)};
      break;
    }
    printer.world(outcome);
    events += outcome.events;
    for (const TransferOutcome& transfer : outcome.transfers) session::add(end.tally, transfer.tally);
    if (outcome.end.kind == ErrorKind::ok) continue;
    ++failed;
    if (report::worse(outcome.end.kind, end.error.kind) != end.error.kind) {
      end.error = {outcome.end.kind, fmt::format("seed {}: {}", first + i, outcome.end.message)};
    }
  }
  if (command.seeds > 1) process.reporter.output(fmt::format("{} seeds, {} of them not well", command.seeds, failed));
  const double took = std::max(seconds(process.loop.now() - began), 1e-9);
  process.reporter.info(fmt::format("{} events in {:.3f} s: {:.0f} a second", events, took, static_cast<double>(events) / took));
  return end;
}

}  // namespace ccixfer::simulate
