#include "tests/sim/swarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "app/session/messages.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "tests/sim/seeds.h"

namespace ccixfer::testing {
namespace {

const std::string source_root = "/src";
const std::string destination_root = "/dst";
const std::string end_address = "10.0.0.2";
const std::string staging = "/dst/.ccixfer";
constexpr Duration virtual_time_max = std::chrono::minutes(30);
constexpr uint64_t events_max = 3'000'000;
constexpr Duration down_max = std::chrono::seconds(2);

std::string network(unsigned index) { return fmt::format("net{}", index); }
bool in_staging(const std::string& path) { return path == staging || path.starts_with(staging + "/"); }

}  // namespace

Swarm::Swarm(uint64_t seed, const SwarmOptions& options)
    : options_(options), world_(seed), random_(world_.random().next()), fabric_(world_, options.link) {
  build();
}

Swarm::~Swarm() {
  if (receiver_) {
    if (world_.alive(destination_->node)) world_.crash(destination_->node);
    receiver_->bury();
  }
  if (sender_) {
    if (world_.alive(source_->node)) world_.crash(source_->node);
    sender_->bury();
  }
}

void Swarm::build() {
  // The same name in two networks is two nodes: S and D share theirs when there is a router between them.
  source_ = std::make_unique<Site>(fabric_, "S", std::vector<sim::Attachment>{{network(0), end_address}});
  destination_ = std::make_unique<Site>(
      fabric_, "D", std::vector<sim::Attachment>{{network(options_.routers), options_.routers == 0 ? "10.0.0.3" : end_address}},
      options_.disk);
  build_routers();
  make_tree(random_, source_->files, source_root, options_.tree);
  wanted_ = source_->files.tree(source_root);
  destination_->files.make_directory(destination_root);
  for (const auto& [path, entry] : wanted_) {
    if (entry.stat.type == ports::FileType::regular) allowed_[path].insert(entry.content);
  }
  if (options_.older_files) {
    make_older(random_, destination_->files, wanted_, destination_root);
    for (const auto& [path, entry] : destination_->files.tree(destination_root)) {
      if (entry.stat.type == ports::FileType::regular) allowed_[path].insert(entry.content);
    }
  }
  destination_->files.set_watch([this](std::string_view call, const std::string& path) { watch(call, path); });
}

// Row i stands between network i and i + 1; each router of it knows those of the rows beside it.
void Swarm::build_routers() {
  if (options_.routers == 0) return;
  const unsigned width = options_.parallel ? 2 : 1;
  const auto left = [](unsigned copy) { return fmt::format("10.0.0.{}", 10 + copy); };
  const auto right = [](unsigned copy) { return fmt::format("10.0.0.{}", 20 + copy); };
  const auto uris = [&](auto&& address) {
    std::vector<std::string> all;
    for (unsigned copy = 0; copy < width; ++copy) all.push_back(fmt::format("sim://{}:{}", address(copy), router_port));
    return all;
  };
  for (unsigned row = 0; row < options_.routers; ++row) {
    for (unsigned copy = 0; copy < width; ++copy) {
      RouterSite& router = routers_.emplace_back();
      router.site =
          std::make_unique<Site>(fabric_, fmt::format("R{}.{}", row, copy),
                                 std::vector<sim::Attachment>{{network(row), left(copy)}, {network(row + 1), right(copy)}});
      router.plan.options.fragment_bytes = options_.fragment_bytes;
      router.plan.options.memory_bytes = uint64_t{options_.fragment_bytes} * random_.between(16, 64);
      router.plan.devices.push_back({router.site->networks[0], {1, row}, row == 0 ? std::vector<std::string>{} : uris(right)});
      router.plan.devices.push_back(
          {router.site->networks[1], {1, row + 1}, row + 1 == options_.routers ? std::vector<std::string>{} : uris(left)});
    }
  }
  source_->routing = Routing{{1, 0}, uris(left)};
  destination_->routing = Routing{{1, options_.routers}, uris(right)};
}

void Swarm::crash_router(size_t index) {
  RouterSite& router = routers_[index];
  if (!world_.alive(router.site->node)) return;
  ++faults_;
  world_.crash(router.site->node);
  router.process.reset();
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this, &router] {
    world_.restart(router.site->node);
    router.process = std::make_unique<RouterProcess>(*router.site, router.plan);
  });
}

void Swarm::violated(const std::string& what) {
  if (violation_.empty()) violation_ = fmt::format("at {} ms: {}", world_.now().time_since_epoch().count() / 1'000'000, what);
}

// I1, I3, I6 at the instant of every change of a name: nothing appears outside the root, no final name with incomplete bytes.
void Swarm::watch(std::string_view call, const std::string& path) {
  if (in_staging(path)) return;
  if (!path.starts_with(destination_root + "/")) return violated(fmt::format("{} of {} outside the root", call, printable(path)));
  if (call != "rename_at" && call != "create" && call != "truncate") return;
  const auto content = destination_->files.get(path);
  if (!content) return;
  const std::string name = path.substr(destination_root.size() + 1);
  const auto wanted = wanted_.find(name);
  if (wanted != wanted_.end() && wanted->second.stat.type == ports::FileType::symlink && *content == wanted->second.content) return;
  const auto allowed = allowed_.find(name);
  if (allowed == allowed_.end() || !allowed->second.contains(*content)) {
    violated(
        fmt::format("{} made {} with {} bytes that are neither the old nor the new file", call, printable(path), content->size()));
  }
}

// I1, I6 over the whole tree.
void Swarm::check_names(const char* when) {
  for (const auto& [path, entry] : destination_->files.tree(destination_root)) {
    if (path.starts_with(".ccixfer") || entry.stat.type != ports::FileType::regular) continue;
    const auto allowed = allowed_.find(path);
    if (allowed == allowed_.end()) {
      violated(fmt::format("{}: {} is not of the source", when, printable(path)));
    } else if (!allowed->second.contains(entry.content)) {
      violated(fmt::format("{}: {} has {} bytes that are neither the old nor the new file", when, printable(path),
                           entry.content.size()));
    }
  }
}

void Swarm::start_receiver() {
  receiver_ = std::make_unique<Receiver>(*destination_, destination_root);
  receiver_uri_ = receiver_->uri();
  if (receiver_->error() && !destination_->files.down()) violated("the root cannot be opened: " + receiver_->error()->message);
}

void Swarm::crash_receiver() {
  if (!world_.alive(destination_->node)) return;
  ++faults_;
  world_.crash(destination_->node);
  receiver_->bury();
  receiver_.reset();
  destination_->files.mount();  // to look at; the node is still down
  check_names("after a crash of the receiver");
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this] {
    if (receiver_done_) return;
    world_.restart(destination_->node);
    start_receiver();
  });
}

void Swarm::start_sender() {
  SendPlan plan;
  plan.uri = receiver_uri_;
  plan.sources = {source_root + "/"};
  plan.options = session::option_recursive | session::option_directory;
  if (options_.attributes) plan.options |= session::option_links | session::option_permissions | session::option_times;
  plan.lanes = options_.lanes;
  sender_ = std::make_unique<Sender>(*source_, plan);
}

void Swarm::crash_sender() {
  if (!world_.alive(source_->node) || !sender_ || sender_->ended()) return;
  ++faults_;
  bytes_sent_ += sender_->tally().bytes_sent;
  world_.crash(source_->node);
  sender_->bury();
  sender_.reset();
  source_->files.mount();
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this] {
    if (world_.alive(source_->node)) return;
    world_.restart(source_->node);
    start_sender();
  });
}

void Swarm::plan_faults() {
  const auto sometime = [this] { return after(world_.now(), random_.exponential(options_.faults_within / 8)); };
  for (unsigned i = 0; i < options_.receiver_crashes; ++i) {
    if (random_.chance(0.5)) {
      world_.at(sometime(), [this] { crash_receiver(); });
    } else {  // in the middle of a job
      world_.at(sometime(), [this] {
        destination_->files.freeze_after(random_.below(200), [this] { world_.at(world_.now(), [this] { crash_receiver(); }); });
      });
    }
  }
  for (unsigned i = 0; i < options_.sender_crashes; ++i) world_.at(sometime(), [this] { crash_sender(); });
  for (unsigned i = 0; i < options_.router_crashes && !routers_.empty(); ++i) {
    const auto index = static_cast<size_t>(random_.below(routers_.size()));
    world_.at(sometime(), [this, index] { crash_router(index); });
  }
  for (unsigned i = 0; i < options_.resets; ++i) {
    const bool at_router = !routers_.empty() && random_.chance(0.5);
    const sim::NodeId node =
        at_router ? routers_[static_cast<size_t>(random_.below(routers_.size()))].site->node : destination_->node;
    world_.at(sometime(), [this, node] { fabric_.reset_all(node); });
  }
  for (unsigned i = 0; i < options_.cuts; ++i) {
    const sim::Attachment at = destination_->networks.front();
    const Instant begin = sometime();
    world_.at(begin, [this, at] { fabric_.cut(at.network, at.address); });
    world_.at(after(begin, random_.between(Duration(0), Duration(std::chrono::seconds(20)))),
              [this, at] { fabric_.join(at.network, at.address); });
  }
}

SwarmResult Swarm::run() {
  if (verbose()) {
    world_.set_trace_sink(
        [](std::string_view line) { std::fprintf(stderr, "world %.*s\n", static_cast<int>(line.size()), line.data()); });
  }
  for (RouterSite& router : routers_) router.process = std::make_unique<RouterProcess>(*router.site, router.plan);
  start_receiver();
  // Sometimes the command is early: before the routers know one another.
  if (random_.chance(0.7)) {
    const auto ready = [this] {
      return std::all_of(routers_.begin(), routers_.end(), [](const RouterSite& router) { return router.process->ready(); });
    };
    world_.run_until(ready, after(world_.now(), std::chrono::seconds(10)));
  }
  world_.run_for(random_.between(Duration(0), Duration(std::chrono::milliseconds(5))));
  start_sender();
  plan_faults();
  const Instant began = world_.now();
  world_.at(after(began, options_.link_calms_after), [this] {  // then everything must come to a good end
    sim::LinkOptions link = options_.link;
    link.reset_mean = forever;
    link.dial_failure_chance = 0;
    for (unsigned i = 0; i <= options_.routers; ++i) fabric_.set_link(network(i), link);
  });
  const sim::RunEnd end = world_.run_until([this] { return !violation_.empty() || (sender_ && sender_->ended()); },
                                           after(began, virtual_time_max), events_max);

  SwarmResult result;
  result.took = world_.now() - began;
  if (end != sim::RunEnd::reached) {  // I5
    violated(end == sim::RunEnd::too_many_events ? "too many events"
             : end == sim::RunEnd::idle          ? "nothing happens any more and the transfer has not ended"
                                                 : "not ended in bounded virtual time");
  } else if (sender_ && sender_->ended()) {
    result.result = sender_->result();
    bytes_sent_ += sender_->tally().bytes_sent;
    if (result.result.kind == ErrorKind::ok) {  // I2: the power goes right now
      receiver_done_ = true;
      if (world_.alive(destination_->node)) {
        world_.crash(destination_->node);
        receiver_->bury();
        receiver_.reset();
      }
      destination_->files.mount();
      check_names("after the end and a crash");
      const std::string differs = difference(wanted_, destination_->files.tree(destination_root), options_.attributes);
      if (!differs.empty()) violated("ended well, but after a crash " + differs);
    }
  }
  result.violation = violation_;
  result.bytes_sent = bytes_sent_;
  result.trace_hash = world_.trace_hash();
  result.events = world_.events();
  result.faults = faults_ + static_cast<unsigned>(fabric_.resets());
  return result;
}

}  // namespace ccixfer::testing
