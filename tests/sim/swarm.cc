#include "tests/sim/swarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>

#include "app/session/messages.h"
#include "core/base/units.h"
#include "core/trust/identity.h"
#include "tests/sim/seeds.h"

namespace ccixfer::testing {
namespace {

const std::string end_address = "10.0.0.2";
constexpr Duration virtual_time_max = std::chrono::minutes(30);
constexpr uint64_t events_max = 3'000'000;
constexpr size_t changed_bytes_max = 4u << 20;
constexpr size_t put_back_bytes_max = 16u << 20;
constexpr Duration leaks_gone_within = std::chrono::minutes(10);
constexpr Duration wake_up_max = std::chrono::milliseconds(10);  // from a signal to the turn
constexpr Duration down_max = std::chrono::seconds(2);
// 23 MiB is the most of 250 seeds a kind; where the source changes, its every state is kept to judge by: 120 MiB.
constexpr size_t heap_bytes_max = 256u << 20;

// A copy beside its target, on a file system where a rename out of the staging directory does not reach.
bool is_staged_beside(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with(".ccixfer.") && name.ends_with(".part");
}

std::string network(unsigned index) { return fmt::format("net{}", index); }

// What passes through routers without coming into their memory: nothing, a part of a fragment, or all of it.
SwarmOptions with_splice_pipes(SwarmOptions options, uint64_t seed) {
  constexpr std::array<uint32_t, 4> room_bytes{0, 3000, 40'000, 1u << 20};
  options.link.splice_pipe_bytes = room_bytes[seed % room_bytes.size()];
  return options;
}

// Who a site is: the same in all seeds, since to make a key takes longer than many a seed.
session::SealSetup seal_of(const std::string& site) {
  static std::map<std::string, trust::Identity> identities;
  auto found = identities.find(site);
  if (found == identities.end()) found = identities.emplace(site, trust::Identity::generate().value()).first;
  return {found->second, std::nullopt, [] { return int64_t{1'800'000'000}; }};
}

}  // namespace

Swarm::Swarm(uint64_t seed, const SwarmOptions& options)
    : options_(with_splice_pipes(options, seed)),
      world_(seed, world_of(seed)),
      random_(world_.random().next()),
      fabric_(world_, options_.link) {
  build();
}

Swarm::~Swarm() {
  over_ = true;
  for (Site* site : {source_.get(), destination_.get()}) {
    if (world_.alive(site->node)) world_.crash(site->node);
  }
  if (rival_ && world_.alive(rival_->node)) world_.crash(rival_->node);
  if (listener_) listener_->bury();
  if (dialler_) dialler_->bury();
  if (rival_dialler_) rival_dialler_->bury();
}

void Swarm::build() {
  // The same name in two networks is two nodes: S and D share theirs when there is a router between them.
  source_ = std::make_unique<Site>(fabric_, "S", std::vector<sim::Attachment>{{network(0), end_address}});
  destination_ = std::make_unique<Site>(
      fabric_, "D", std::vector<sim::Attachment>{{network(options_.routers), options_.routers == 0 ? "10.0.0.3" : end_address}},
      options_.disk);
  source_->verbose = destination_->verbose = verbose() ? 2 : 0;
  if (options_.job_max > Duration(0)) destination_->work.work_max = options_.job_max;
  if (options_.read_job_max > Duration(0)) source_->work.work_max = options_.read_job_max;
  source_->work.slow_chance = destination_->work.slow_chance = options_.slow_chance;
  if (options_.sealed) {
    source_->seal = seal_of("S");
    destination_->seal = seal_of("D");
  }
  build_routers();
  if (options_.last_link) fabric_.set_link(network(options_.routers), *options_.last_link);
  simulate::make_tree(random_, source_->files, source_root, options_.tree);
  look_at_source();
  if (options_.rival) build_rival();
  destination_->files.make_directory(destination_root);
  if (options_.second_disk) mount_second_disk();
  if (options_.older_files) {
    simulate::make_older(random_, destination_->files, wanted_, destination_root);
    for (const auto& [path, entry] : destination_->files.tree(destination_root)) {
      if (entry.stat.type == ports::FileType::regular) allowed_[path].insert(entry.content);
    }
  }
  count_older();
  destination_->files.set_watch([this](std::string_view call, const std::string& path) { watch(call, path); });
  break_disks();
  if (options_.denied_chance > 0) deny_files();
  if (options_.administrator_acts > 0) plan_administrator();
}

// The same names, some with other content and all of them newer.
void Swarm::build_rival() {
  rival_ = std::make_unique<Site>(fabric_, "S2", std::vector<sim::Attachment>{{network(0), "10.0.0.4"}});
  rival_->routing = source_->routing;
  if (options_.sealed) rival_->seal = seal_of("S2");
  rival_->files.make_directory(source_root);
  for (const auto& [path, entry] : wanted_) {
    const std::string name = source_root + "/" + path;
    if (entry.stat.type == ports::FileType::directory) rival_->files.make_directory(name);
    if (entry.stat.type != ports::FileType::regular) continue;
    std::string content = entry.content;
    if (!content.empty() && random_.chance(0.7)) {
      for (size_t i = static_cast<size_t>(random_.below(content.size())); i < content.size(); i += 1000) content[i] ^= 1;
    }
    rival_->files.put(name, content, 0600, ports::FileTime{entry.stat.mtime.seconds ^ 1, entry.stat.mtime.nanoseconds});
    allowed_[path].insert(content);
  }
  rival_->files.sync_all();
}

// Row i stands between network i and i + 1; each router of it knows those of the rows beside it.
void Swarm::build_routers() {
  if (options_.routers == 0) return;
  const unsigned width = options_.parallel ? 2 : 1;
  const auto left = [](unsigned copy) { return fmt::format("10.0.0.{}", 10 + copy); };
  const auto right = [](unsigned copy) { return fmt::format("10.0.0.{}", 20 + copy); };
  const auto uris = [&](auto&& address) {
    std::vector<std::string> all;
    for (unsigned copy = 0; copy < width; ++copy) all.push_back(fmt::format("sim://{}:{}", address(copy), simulate::router_port));
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

void Swarm::violated(const std::string& what) {
  if (violation_.empty()) violation_ = fmt::format("at {} ms: {}", (world_.now() - began_).count() / 1'000'000, what);
}

void Swarm::look_at_source() {
  wanted_ = source_->files.tree(source_root);
  for (const auto& [path, entry] : wanted_) {
    if (entry.stat.type == ports::FileType::regular) allowed_[path].insert(entry.content);
  }
}

// I1, I3, I6 at the instant of every change of a name: nothing appears outside the root, no final name with incomplete bytes.
// Makes no call of the disk: it runs inside of one.
void Swarm::watch(std::string_view call, const std::string& path) {
  const std::string below = destination_root + "/";
  const std::string staging = below + ".ccixfer";
  if (path == staging || path.starts_with(staging + "/")) return;
  if (options_.lie) return violated(fmt::format("{} of {} that was not asked for", call, printable(path)));
  if (may_be_elsewhere(path)) return;
  if (!path.starts_with(below)) return violated(fmt::format("{} of {} outside the root", call, printable(path)));
  if ((call != "rename_at" && call != "create" && call != "truncate") || is_staged_beside(path)) return;
  const auto content = destination_->files.get(path);
  if (!content) return;
  const std::string name = path.substr(below.size());
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
    if (path.starts_with(".ccixfer") || is_staged_beside(path) || entry.stat.type != ports::FileType::regular) continue;
    const auto allowed = allowed_.find(path);
    if (allowed == allowed_.end()) {
      violated(fmt::format("{}: {} is not of the source", when, printable(path)));
    } else if (!allowed->second.contains(entry.content)) {
      violated(fmt::format("{}: {} has {} bytes that are neither the old nor the new file", when, printable(path),
                           entry.content.size()));
    }
  }
}

void Swarm::start_listener() {
  listener_ = std::make_unique<Listener>(listening(), ListenPlan{options_.pull, options_.pull ? source_root : destination_root});
  listener_uri_ = listener_->uri();
  if (!listener_->error() || listening().files.down()) return;  // frozen in the middle: the crash follows
  if (!disks_broken_ && acted_in_event_ != world_.events())
    return violated("the directory cannot be opened: " + listener_->error()->message);
  world_.at(world_.now(), [this] {  // such a program ends and its supervisor runs it again; here the node goes with it
    if (!over_ && listener_ && listener_->error()) crash(listening());
  });
}

void Swarm::start_dialler() {
  DialPlan plan;
  plan.pull = options_.pull;
  plan.uri = listener_uri_;
  plan.directory = options_.pull ? destination_root : source_root;
  plan.options = session::option_recursive | session::option_directory;
  if (options_.verify) plan.options |= session::option_verify;
  if (options_.attributes) plan.options |= session::option_links | session::option_permissions | session::option_times;
  plan.lanes = options_.lanes;
  plan.timeout = options_.timeout;
  plan.asked = options_.lie;
  dialler_ = std::make_unique<Dialler>(dialling(), plan);
}

void Swarm::start_rival() {
  DialPlan plan;
  plan.uri = listener_uri_;
  plan.directory = source_root;
  plan.options = session::option_recursive | session::option_directory;
  if (options_.verify) plan.options |= session::option_verify;
  if (options_.attributes) plan.options |= session::option_links | session::option_permissions | session::option_times;
  plan.lanes = options_.lanes;
  plan.timeout = options_.timeout;
  rival_dialler_ = std::make_unique<Dialler>(*rival_, plan);
}

void Swarm::crash(Site& site) {
  if (!world_.alive(site.node) || over_) return;
  const bool is_dialler = &site == &dialling();
  if (is_dialler && (!dialler_ || (dialler_->ended() && !site.files.down()))) return;  // it is over
  ++faults_;
  if (&site == destination_.get()) durable_before_ = may_have_forgotten() ? 0 : durable_before_ + received().bytes;
  world_.crash(site.node);
  if (is_dialler) {
    dialler_crashed_ = true;
    count_sent();
    dialler_->bury();
    dialler_.reset();
  } else {
    listener_->bury();
    listener_.reset();
  }
  site.files.mount();  // to look at; the node is still down
  if (&site == destination_.get()) check_names("after a crash of the destination");
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this, &site, is_dialler] {
    if (over_) return;
    world_.restart(site.node);
    if (is_dialler) {
      start_dialler();
    } else {
      start_listener();
    }
  });
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

// SIGTERM: it drains, ends, and is started again.
void Swarm::stop_router(size_t index) {
  RouterSite& router = routers_[index];
  if (router.process == nullptr || router.process->draining()) return;
  ++faults_;
  const Instant begun = world_.now();
  router.process->drain([this, &router, begun] {
    if (world_.now() - begun > routing::drain_timeout + routing::drain_flush_timeout + wake_up_max)
      violated("a router drains for too long");
    world_.at(world_.now(), [this, &router] {
      if (router.process == nullptr || !router.process->draining()) return;
      router.process.reset();
      world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this, &router] {
        if (router.process == nullptr && world_.alive(router.site->node))
          router.process = std::make_unique<RouterProcess>(*router.site, router.plan);
      });
    });
  });
}

// Nothing comes from it or gets to it, in one network or in both.
void Swarm::cut_router(size_t index, bool whole, Duration time) {
  ++faults_;
  const size_t which = static_cast<size_t>(random_.below(2));
  for (size_t i = 0; i < 2; ++i) {
    if (!whole && i != which) continue;
    const sim::Attachment at = routers_[index].site->networks[i];
    fabric_.cut(at.network, at.address);
    if (time != forever) world_.at(after(world_.now(), time), [this, at] { fabric_.join(at.network, at.address); });
  }
}

const sim::LinkOptions& Swarm::link_of(unsigned index) const {
  return options_.last_link && index == options_.routers ? *options_.last_link : options_.link;
}

void Swarm::change_a_file() {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : wanted_) {
    if (entry.stat.type == ports::FileType::regular) paths.push_back(path);
  }
  if (paths.empty() || source_->files.down()) return;
  std::string path = paths[static_cast<size_t>(random_.below(paths.size()))];
  // Whoever wants to deceive rsync's rule leaves size and time as they were: only the change time tells. What comes in pieces is
  // where that matters most: some are of the old content, some of the new.
  const bool deceives = random_.chance(0.4);
  if (deceives && wanted_.contains("large") && random_.chance(0.5)) path = "large";
  const sim::TreeEntry& entry = wanted_.at(path);
  const size_t whole = entry.content.size();
  const bool puts_back = deceives && whole <= put_back_bytes_max;
  const size_t size = puts_back ? whole : std::min(whole, changed_bytes_max);
  const bool same_size = puts_back || random_.chance(0.5);
  std::string content(same_size ? size : static_cast<size_t>(random_.below(2 * size + 100)), '\0');
  for (char& c : content) c = static_cast<char>(random_.next());
  if (puts_back) put_back_.insert(path);
  source_->files.put(source_root + "/" + path, content, puts_back ? entry.stat.mode : 0644,
                     puts_back ? std::optional(entry.stat.mtime) : std::nullopt);
  look_at_source();
}

void Swarm::plan_faults() {
  const auto sometime = [this] { return after(world_.now(), random_.exponential(options_.faults_within / 8)); };
  for (unsigned i = 0; i < options_.destination_crashes; ++i) {
    if (random_.chance(0.5)) {
      world_.at(sometime(), [this] { crash(*destination_); });
    } else {  // in the middle of a job
      world_.at(sometime(), [this] {
        destination_->files.freeze_after(random_.below(200), [this] { world_.at(world_.now(), [this] { crash(*destination_); }); });
      });
    }
  }
  if (options_.destination_crash_at_call) {
    destination_->files.freeze_after(*options_.destination_crash_at_call,
                                     [this] { world_.at(world_.now(), [this] { crash(*destination_); }); });
  }
  for (unsigned i = 0; i < options_.source_crashes; ++i) world_.at(sometime(), [this] { crash(*source_); });
  for (unsigned i = 0; i < options_.changes; ++i) world_.at(sometime(), [this] { change_a_file(); });
  for (unsigned i = 0; i < options_.router_crashes && !routers_.empty(); ++i) {
    const auto index = static_cast<size_t>(random_.below(routers_.size()));
    world_.at(sometime(), [this, index] { crash_router(index); });
  }
  const auto some_router = [this](auto&& act) {
    const auto index = static_cast<size_t>(random_.below(routers_.size()));
    return [act, index] { act(index); };
  };
  for (unsigned i = 0; i < options_.router_stops; ++i)
    world_.at(sometime(), some_router([this](size_t index) { stop_router(index); }));
  for (unsigned i = 0; i < options_.router_hangs; ++i) {
    world_.at(sometime(), some_router([this](size_t index) {
                cut_router(index, true, random_.between(Duration(0), Duration(std::chrono::minutes(1))));
              }));
  }
  for (unsigned i = 0; i < options_.router_cuts; ++i)
    world_.at(sometime(), some_router([this](size_t index) { cut_router(index, false, forever); }));
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
  world_.at(after(world_.now(), options_.link_calms_after), [this] {  // then everything must come to a good end
    for (unsigned i = 0; i <= options_.routers; ++i) {
      sim::LinkOptions link = link_of(i);
      link.reset_mean = forever;
      link.dial_failure_chance = 0;
      link.corrupt_chance = 0;
      fabric_.set_link(network(i), link);
    }
  });
}

// I5: the dialler ends in bounded virtual time.
sim::RunEnd Swarm::run_transfer() {
  const auto ended = [this] {
    look_at_heap();
    watch_tally();
    if (rival_ && (!rival_dialler_ || !rival_dialler_->ended())) return !violation_.empty();
    return !violation_.empty() || (dialler_ && dialler_->ended() && !dialling().files.down() && world_.alive(dialling().node));
  };
  const sim::RunEnd end = world_.run_until(ended, after(world_.now(), virtual_time_max), events_max);
  if (end == sim::RunEnd::idle) violated("nothing happens any more and the transfer has not ended");
  if (end == sim::RunEnd::deadline) violated("not ended in bounded virtual time");
  if (end == sim::RunEnd::too_many_events) violated("too many events");
  return end;
}

program::Tally Swarm::received() const {
  if (options_.pull) return dialler_ ? dialler_->tally() : program::Tally{};
  return listener_ ? listener_->tally() : program::Tally{};
}

void Swarm::power_cut() {
  over_ = true;
  if (world_.alive(destination_->node)) world_.crash(destination_->node);
  if (destination_->files.down()) destination_->files.mount();
}

// A pull without times whose tree has ended may have heard the goodbye, and forgets then what it delivered: a process that begins
// after it, because this one did not live to say that all is well, can only fetch everything again.
bool Swarm::may_have_forgotten() const { return options_.pull && !options_.attributes && received().over; }

// I4: what the last process of the destination received is at most what the ones before it had not made durable. Only where a crash
// of the destination is all that ends sessions: each other end of one costs what was in flight.
void Swarm::judge_resends() {
  if (options_.source_crashes + options_.router_crashes + options_.router_stops + options_.router_hangs + options_.router_cuts +
          options_.resets + options_.cuts + options_.changes + options_.administrator_acts >
      0)
    return;
  if (options_.routers > 0 || options_.rival || disks_broken_ || options_.disk.lies) return;
  if (options_.link.reset_mean != forever || options_.link.corrupt_chance > 0) return;
  uint64_t total = 64u << 10;  // and names, modes and the like
  for (const auto& [path, entry] : wanted_) total += entry.content.size() + 2 * path.size() + 200;
  const uint64_t again = received().bytes_sent;
  if (again + durable_before_ > total) {
    violated(fmt::format("I4: after the last crash {} bytes came of {}, of which {} were durable before", again, total,
                         durable_before_));
  }
}

// What may be read arrives, whatever may not.
void Swarm::judge_denials(const Error& result) {
  if (denied_.empty() || (result.kind != ErrorKind::ok && result.kind != ErrorKind::partial)) return;
  sim::Tree readable = wanted_;
  for (const std::string& path : denied_) readable.erase(path);
  const std::string differs = simulate::difference(readable, destination_->files.tree(destination_root), options_.attributes);
  if (!differs.empty()) violated("beside files that may not be read: " + differs);
}

// Of two senders of one name one wins: it is there when both have ended, and check_names finds it whole.
void Swarm::judge_rivals(const Error& result) {
  if (disks_broken_ || faults_ > 0 || options_.changes > 0) return;
  const ErrorKind rival = rival_dialler_->result().kind;
  const auto settled = [](ErrorKind kind) { return kind == ErrorKind::ok || kind == ErrorKind::partial; };
  if (!settled(rival) || !settled(result.kind)) return;
  const sim::Tree there = destination_->files.tree(destination_root);
  for (const auto& [path, entry] : wanted_) {
    if (entry.stat.type == ports::FileType::regular && !there.contains(path)) {
      return violated(fmt::format("of two senders of {} none won", printable(path)));
    }
  }
}

// Bounds: when all is over, nothing is held any more: no session, no job, no buffer, no fragment of a router.
void Swarm::judge_leaks() {
  const auto clean = [this] {
    if (!world_.alive(listening().node) || !listener_) return false;
    const bool routers_clean = std::all_of(routers_.begin(), routers_.end(), [](const RouterSite& router) {
      return router.process != nullptr && router.process->fragments_in_use() == 0;
    });
    return routers_clean && listener_->idle() && listener_->jobs() == 0 && listener_->buffers_lent() == 0;
  };
  if (clean()) return;
  static_cast<void>(world_.run_until(clean, after(world_.now(), leaks_gone_within), events_max));
  if (clean()) return;
  uint32_t fragments = 0;
  for (const RouterSite& router : routers_) fragments += router.process ? router.process->fragments_in_use() : 0;
  if (!world_.alive(listening().node) || !listener_) return violated("the listener did not come back");
  violated(fmt::format("after the end: idle {}, {} jobs, {} buffers, {} fragments of routers are held", listener_->idle(),
                       listener_->jobs(), listener_->buffers_lent(), fragments));
}

// Bounds, at every event: what the processes hold, and the network between them; without what came onto the disks (each file as it
// is, and as it is durable).
void Swarm::look_at_heap() {
  const size_t disks = disks_bytes();
  const size_t on_disks = disks > disks_before_bytes_ ? 2 * (disks - disks_before_bytes_) : 0;
  if (!heap_->look(heap_bytes_max, on_disks)) violated(fmt::format("{} bytes of memory are held", heap_->most_bytes()));
}

size_t Swarm::disks_bytes() const {
  return source_->files.used_bytes() + destination_->files.used_bytes() + (rival_ ? rival_->files.used_bytes() : 0);
}

// I2: the power goes right at the end.
void Swarm::judge_end(const Error& result) {
  if (result.kind != ErrorKind::ok || !violation_.empty()) return;
  power_cut();
  check_names("after the end and a crash");
  if (administrator_raced()) return;
  // What an administrator puts back has changed the time of the directory that it is in.
  const bool attributes = options_.attributes && options_.administrator_acts == 0;
  const std::string differs = simulate::difference(as_it_may_be(), destination_->files.tree(destination_root), attributes);
  if (!differs.empty()) violated("ended well, but after a crash " + differs);
}

// The source, with an earlier state of those files that were delivered before they were changed, and whose size and time say that
// they were not: without --checksum they are unchanged for whoever comes again, as with rsync.
sim::Tree Swarm::as_it_may_be() const {
  sim::Tree tree = wanted_;
  for (const std::string& path : put_back_) {
    const auto at = tree.find(path);
    const auto there = destination_->files.get(destination_root + "/" + path);
    if (at == tree.end() || !there || there->size() != at->second.content.size()) continue;
    if (allowed_.at(path).contains(*there)) at->second.content = *there;
  }
  return tree;
}

void Swarm::count_sent() {
  bytes_sent_ += dialler_->tally().bytes_sent;
  segments_resent_ += dialler_->tally().segments_resent;
}

SwarmResult Swarm::run() {
  if (verbose()) {
    world_.set_trace_sink(
        [](std::string_view line) { std::fprintf(stderr, "world %.*s\n", static_cast<int>(line.size()), line.data()); });
  }
  heap_.emplace();
  disks_before_bytes_ = disks_bytes();
  for (RouterSite& router : routers_) router.process = std::make_unique<RouterProcess>(*router.site, router.plan);
  start_listener();
  if (random_.chance(0.7)) {  // else the command is early: before the routers know one another
    const auto ready = [this] {
      return std::all_of(routers_.begin(), routers_.end(), [](const RouterSite& router) { return router.process->ready(); });
    };
    world_.run_until(ready, after(world_.now(), std::chrono::seconds(10)));
  }
  world_.run_for(random_.between(Duration(0), Duration(std::chrono::milliseconds(5))));
  start_dialler();
  if (rival_) {
    world_.at(after(world_.now(), random_.between(Duration(0), Duration(std::chrono::milliseconds(30)))),
              [this] { start_rival(); });
  }
  plan_faults();
  const Instant began = world_.now();

  SwarmResult result;
  result.second_result = result.result = Error{ErrorKind::ok, ""};
  if (run_transfer() == sim::RunEnd::reached && violation_.empty()) {
    result.result = dialler_->result();
    judge_denials(result.result);
    judge_tally(result.result);
    if (rival_dialler_) {
      judge_rivals(result.result);
      result.rival_result = rival_dialler_->result();
    }
    const bool again = result.result.kind != ErrorKind::ok || options_.changes > 0 || options_.rival;
    if (again) {  // what failed it is mended, and the same command run again
      mend();
      world_.run_for(options_.faults_within * 10);
      count_sent();
      if (world_.alive(dialling().node)) {
        dialler_.reset();
        start_dialler();
      }
      if (run_transfer() == sim::RunEnd::reached && violation_.empty()) result.second_result = dialler_->result();
    }
    if (dialler_) count_sent();
    if (!again) judge_resends();
    result.resumed = durable_before_ > 0;
    if (violation_.empty() && random_.chance(0.3)) judge_leaks();
    judge_end(again ? result.second_result : result.result);
    result.raced = administrator_raced();
  }
  result.heap_bytes = heap_->most_bytes();
  result.took = world_.now() - began;
  result.violation = violation_;
  result.bytes_sent = bytes_sent_;
  result.segments_resent = segments_resent_;
  for (const RouterSite& router : routers_)
    result.lanes_of_routers.push_back(router.site->counters.get(Counter::routed_connections));
  result.trace_hash = world_.trace_hash();
  result.events = world_.events();
  result.corruptions = fabric_.corruptions();
  result.faults = faults_ + static_cast<unsigned>(fabric_.resets());
  return result;
}

}  // namespace ccixfer::testing
