#include "app/simulate/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "app/report/outcome.h"
#include "app/session/messages.h"
#include "app/simulate/site.h"
#include "core/base/check.h"

namespace ccixfer::simulate {
namespace {

const std::string source_root = "/source/";
const std::string destination_root = "/destination";

class Simulation {
 public:
  Simulation(const Scenario& scenario, uint64_t seed, const WorldNews& news, unsigned verbose)
      : scenario_(scenario), news_(news), world_(seed), fabric_(world_), random_(world_.random().next()) {
    if (news_.on_trace) world_.set_trace_sink(news_.on_trace);
    for (const ScenarioLink& link : scenario_.links) fabric_.set_link(link.name, link.options);
    for (const ScenarioNode& node : scenario_.nodes) add_place(node, verbose);
    runs_.reserve(scenario_.transfers.size());  // events hold on to them
    for (const ScenarioTransfer& transfer : scenario_.transfers) {
      Run& run = runs_.emplace_back();
      run.outcome.transfer = &transfer;
      Place& from = places_.at(transfer.from);
      make_tree(random_, from.site->files, source_root + transfer.name, transfer.tree);
      run.source = from.site->files.tree(source_root + transfer.name);
      Place& to = places_.at(transfer.to);
      if (!to.receives) to.site->files.make_directory(destination_root);
      to.receives = true;
    }
  }

  ~Simulation() {
    over_ = true;
    for (auto& [name, place] : places_) put_down(place);
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  WorldOutcome run() {
    for (auto& [name, place] : places_) start_place(place);
    for (Run& run : runs_) {
      world_.at(Instant{} + run.outcome.transfer->start, [this, &run] {
        run.outcome.began = run.outcome.transfer->start;
        run.due = true;
        start_run(run);
      });
    }
    for (const ScenarioFault& fault : scenario_.faults) {
      world_.at(Instant{} + fault.at, [this, &fault] { strike(fault); });
    }
    const auto all_ended = [this] {
      take_ends();
      if (news_.stop && world_.events() % 1024 == 0 && news_.stop()) return true;
      return std::all_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.ended; });
    };
    const sim::RunEnd end = world_.run_until(all_ended, Instant{} + scenario_.time_max, scenario_.events_max);
    for (Run& run : runs_) {
      if (!run.ended) give_up(run, end);
    }
    WorldOutcome outcome;
    outcome.took = world_.now() - Instant{};
    outcome.events = world_.events();
    outcome.trace_hash = world_.trace_hash();
    verify();
    outcome.seed = world_.seed();
    outcome.faults = faults_;
    outcome.resets = fabric_.resets();
    outcome.corruptions = fabric_.corruptions();
    outcome.bytes_delivered = fabric_.bytes_delivered();
    for (const Run& run : runs_) {
      outcome.transfers.push_back(run.outcome);
      const Error& one = run.outcome.end;
      if (report::worse(one.kind, outcome.end.kind) != outcome.end.kind) {
        outcome.end = {one.kind, fmt::format("{}: {}", run.outcome.transfer->name, one.message)};
      }
    }
    return outcome;
  }

 private:
  struct Place {  // a host or a router
    const ScenarioNode* plan = nullptr;
    std::unique_ptr<Site> site;
    bool receives = false;
    bool comes_back = true;  // false: it crashed for ever
    std::unique_ptr<Listener> listener;
    RouterPlan router_plan;
    std::unique_ptr<RouterProcess> router;
  };
  struct Run {  // a transfer
    TransferOutcome outcome;
    sim::Tree source;
    std::unique_ptr<Dialler> dialler;
    program::Tally earlier;  // of runs that a crash cut off
    bool due = false, ended = false;
  };

  const ScenarioLink& link_of(const std::string& name) const {
    return *std::find_if(scenario_.links.begin(), scenario_.links.end(), [&](const auto& link) { return link.name == name; });
  }
  // Native URIs of the routers on a link, but one.
  std::vector<std::string> routers_on(const std::string& link, const ScenarioNode* but) const {
    std::vector<std::string> uris;
    for (const ScenarioNode& node : scenario_.nodes) {
      const bool on_it = std::find(node.links.begin(), node.links.end(), link) != node.links.end();
      if (node.is_router && on_it && &node != but) uris.push_back(fmt::format("sim://{}:{}", node.address, router_port));
    }
    return uris;
  }

  void add_place(const ScenarioNode& node, unsigned verbose) {
    Place& place = places_[node.name];
    place.plan = &node;
    std::vector<sim::Attachment> networks;
    for (const std::string& link : node.links) networks.push_back({link, node.address});
    sim::FileSystemOptions disk;
    disk.capacity_bytes = node.disk_bytes;
    place.site = std::make_unique<Site>(fabric_, node.name, networks, disk);
    place.site->buffers = node.buffers;
    place.site->verbose = verbose;
    const auto routers = routers_on(node.links.front(), nullptr);
    const auto& subnet = link_of(node.links.front()).subnet;
    if (!node.is_router) {
      if (subnet && !routers.empty()) place.site->routing = Routing{*subnet, routers};
      return;
    }
    place.router_plan.options.fragment_bytes = node.fragment_bytes;
    place.router_plan.options.memory_bytes = node.memory_bytes;
    place.router_plan.options.metric = node.metric;
    for (const std::string& link : node.links) {
      const ScenarioLink& on = link_of(link);
      const routing::SubnetId subnet_there = on.wan ? routing::SubnetId{node.as, on.wan_subnet} : *on.subnet;
      RouterPlan::Device& device = place.router_plan.devices.emplace_back();
      device = {{link, node.address}, subnet_there, routers_on(link, &node), on.options.rate_bytes_per_s * 8, on.wan, {}};
      std::copy_if(on.between.begin(), on.between.end(), std::back_inserter(device.wan_to),
                   [&](uint32_t as) { return as != node.as; });
    }
  }

  void start_place(Place& place) {
    if (place.plan->is_router) {
      place.router = std::make_unique<RouterProcess>(*place.site, place.router_plan);
    } else if (place.receives) {
      place.listener = std::make_unique<Listener>(*place.site, ListenPlan{false, destination_root});
    }
  }

  void start_run(Run& run) {
    const ScenarioTransfer& transfer = *run.outcome.transfer;
    const Place& from = places_.at(transfer.from);
    if (over_ || run.ended || !world_.alive(from.site->node)) return;  // a restart starts it
    CHECK(!run.dialler);
    const Place& to = places_.at(transfer.to);
    DialPlan plan;
    plan.directory = source_root + transfer.name;
    plan.path = transfer.name;
    plan.uri = fmt::format("sim://{}:{}", to.plan->address, receiver_port);
    if (transfer.routed) {
      const routing::SubnetId subnet = *link_of(to.plan->links.front()).subnet;
      plan.uri = fmt::format("cci://{}:{}:{}:{}", subnet.as, subnet.subnet, to.plan->address, receiver_port);
    }
    plan.options = session::option_recursive | session::option_directory;
    if (transfer.archive) plan.options |= session::option_links | session::option_permissions | session::option_times;
    plan.lanes = transfer.lanes;
    plan.timeout = transfer.timeout;
    ++run.outcome.runs;
    run.dialler = std::make_unique<Dialler>(*from.site, plan);
  }

  void take_ends() {
    for (Run& run : runs_) {
      if (!run.ended && run.dialler && run.dialler->ended()) end_run(run, run.dialler->result());
    }
  }
  void end_run(Run& run, const Error& error) {
    run.ended = true;
    run.outcome.end = error;
    run.outcome.took = world_.now() - (Instant{} + run.outcome.began);
    run.outcome.tally = run.dialler ? session::continued(run.earlier, run.dialler->tally()) : run.earlier;
    if (news_.on_end) news_.on_end(world_.now() - Instant{}, run.outcome);
  }
  void give_up(Run& run, sim::RunEnd end) {
    const bool host_gone = !places_.at(run.outcome.transfer->from).comes_back;
    if (host_gone) return end_run(run, {ErrorKind::interrupted, "its host crashed and did not come back"});
    if (end == sim::RunEnd::idle) return end_run(run, {ErrorKind::bug, "nothing happens any more and the transfer has not ended"});
    const char* words = end == sim::RunEnd::too_many_events ? "events_max events have happened" : "time_max is over";
    end_run(run, {ErrorKind::timeout, fmt::format("{}: the transfer has not ended", words)});
  }

  // The node's power goes: its processes are led to where they may be destroyed.
  void put_down(Place& place) {
    if (world_.alive(place.site->node)) world_.crash(place.site->node);
    if (place.listener) place.listener->bury();
    place.listener.reset();
    place.router.reset();
    for (Run& run : runs_) {
      if (!run.dialler || places_.at(run.outcome.transfer->from).site != place.site) continue;
      if (!run.ended) run.earlier = session::continued(run.earlier, run.dialler->tally());
      run.dialler->bury();
      run.dialler.reset();
    }
    if (place.site->files.down()) place.site->files.mount();
  }

  void strike(const ScenarioFault& fault) {
    if (over_) return;
    if (fault.kind == FaultKind::crash && !world_.alive(places_.at(fault.node).site->node)) return;  // it is down already
    if (fault.kind == FaultKind::stop && (!places_.at(fault.node).router || places_.at(fault.node).router->draining())) return;
    ++faults_;
    if (news_.on_fault) news_.on_fault(world_.now() - Instant{}, fault, false);
    if (fault.kind == FaultKind::crash) {
      crash(fault);
    } else if (fault.kind == FaultKind::partition) {
      cut(fault);
    } else if (fault.kind == FaultKind::stop) {
      stop(fault);
    } else if (fault.node.empty()) {
      fabric_.reset_network(fault.link);
    } else {
      fabric_.reset_all(places_.at(fault.node).site->node);
    }
  }
  // SIGTERM to a router: it drains, ends, and is started again `lasts` after that.
  void stop(const ScenarioFault& fault) {
    Place& place = places_.at(fault.node);
    place.router->drain([this, &place, &fault] {
      world_.at(world_.now(), [this, &place, &fault] {  // not from its own turn
        if (over_ || !place.router || !place.router->draining()) return;
        place.router.reset();
        if (!fault.lasts) return;
        world_.at(after(world_.now(), *fault.lasts), [this, &place, &fault] {
          if (over_ || place.router || !world_.alive(place.site->node)) return;
          if (news_.on_fault) news_.on_fault(world_.now() - Instant{}, fault, true);
          start_place(place);
        });
      });
    });
  }
  void crash(const ScenarioFault& fault) {
    Place& place = places_.at(fault.node);
    put_down(place);
    if (!fault.lasts) {
      place.comes_back = false;
      for (Run& run : runs_) {
        if (!run.ended && &places_.at(run.outcome.transfer->from) == &place) give_up(run, sim::RunEnd::reached);
      }
      return;
    }
    world_.at(after(world_.now(), *fault.lasts), [this, &place, &fault] {
      if (over_) return;
      if (news_.on_fault) news_.on_fault(world_.now() - Instant{}, fault, true);
      world_.restart(place.site->node);
      start_place(place);
      for (Run& run : runs_) {
        if (run.due && &places_.at(run.outcome.transfer->from) == &place) start_run(run);
      }
    });
  }
  void cut(const ScenarioFault& fault) {
    std::vector<sim::Attachment> where;
    for (const auto& [name, place] : places_) {
      for (const sim::Attachment& at : place.site->networks) {
        if ((fault.node.empty() || fault.node == name) && (fault.link.empty() || fault.link == at.network)) where.push_back(at);
      }
    }
    for (const sim::Attachment& at : where) {
      ++cuts_[{at.network, at.address}];
      fabric_.cut(at.network, at.address);
    }
    if (!fault.lasts) return;
    world_.at(after(world_.now(), *fault.lasts), [this, where, &fault] {
      if (over_) return;
      if (news_.on_fault) news_.on_fault(world_.now() - Instant{}, fault, true);
      for (const sim::Attachment& at : where) {  // partitions may overlap
        if (--cuts_[{at.network, at.address}] == 0) fabric_.join(at.network, at.address);
      }
    });
  }

  // Exit 0 means that a power cut right after loses nothing: so it goes, everywhere, and what is left is compared.
  void verify() {
    over_ = true;
    for (auto& [name, place] : places_) put_down(place);
    for (Run& run : runs_) {
      TransferOutcome& outcome = run.outcome;
      const std::string path = destination_root + "/" + outcome.transfer->name;
      const std::string differs =
          difference(run.source, places_.at(outcome.transfer->to).site->files.tree(path), outcome.transfer->archive);
      outcome.verified = differs.empty();
      if (outcome.end.kind == ErrorKind::ok && !outcome.verified) {
        outcome.end = {ErrorKind::bug, "ended well, but after a power cut " + differs};
      }
    }
  }

  const Scenario& scenario_;
  const WorldNews& news_;
  sim::World world_;
  sim::Fabric fabric_;
  sim::Random random_;  // of the trees
  std::map<std::string, Place> places_;
  std::vector<Run> runs_;
  std::map<std::pair<std::string, std::string>, unsigned> cuts_;  // network, address: how many partitions hold it
  uint64_t faults_ = 0;
  bool over_ = false;  // nothing restarts any more
};

}  // namespace

WorldOutcome simulate(const Scenario& scenario, uint64_t seed, const WorldNews& news, unsigned verbose) {
  Simulation simulation(scenario, seed, news, verbose);
  return simulation.run();
}

}  // namespace ccixfer::simulate
