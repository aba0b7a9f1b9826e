// `ccixfer route`: the router daemon. One endpoint a device, all over one memory table; the engine is routing/router.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>

#include "app/devices/devices.h"
#include "app/devices/node.h"
#include "app/devices/path_table.h"
#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/main/in_force.h"
#include "app/main/process_trust.h"
#include "app/main/rate_clock.h"
#include "app/main/router_audit.h"
#include "app/main/router_status.h"
#include "app/main/router_workers.h"
#include "app/main/session_trust.h"
#include "app/main/topology.h"
#include "app/main/uri_file.h"
#include "app/main/worker_devices.h"
#include "core/base/log.h"
#include "core/host/entropy.h"
#include "routing/router/map_snapshot.h"
#include "routing/router/router.h"

namespace ccixfer::program {
namespace {

constexpr Duration devices_look_interval = std::chrono::seconds(1);       // how often the host is asked for its addresses
constexpr Duration certificates_look_interval = std::chrono::minutes(1);  // of peers whose connections stand

uint64_t share_of_rate(uint64_t rate_bytes_per_s, size_t workers) {
  return rate_bytes_per_s == 0 ? 0 : std::max<uint64_t>(1, rate_bytes_per_s / workers);  // 0: no cap
}

size_t workers_of(const Config& config, const RouteCommand& command) { return command.workers.value_or(config.router.workers); }

// Of each worker of `workers`: memory and rate are of the whole router.
routing::RouterOptions options_of(const Config& config, const RouteCommand& command, uint64_t rate_bytes_per_s, size_t workers) {
  const RouterConfig& router = config.router;
  routing::RouterOptions options;
  options.metric = router.metric;
  if (router.fragment_bytes) options.fragment_bytes = static_cast<uint32_t>(std::min<uint64_t>(*router.fragment_bytes, UINT32_MAX));
  if (router.memory_bytes) options.memory_bytes = *router.memory_bytes;
  if (command.memory_bytes) options.memory_bytes = *command.memory_bytes;
  options.static_routes = static_routes_of(config);
  options.memory_bytes /= workers;
  options.copied_bytes_max /= workers;
  options.rate_bytes_per_s = share_of_rate(rate_bytes_per_s, workers);
  return options;
}

// The routing devices, without their endpoints.
std::vector<routing::RouterDevice> settings_of(const Process& process, const Config& config) {
  const std::vector<Interface> interfaces = interfaces_of_host();
  std::vector<routing::RouterDevice> devices;
  for (const DeviceConfig& from : config.devices) {
    if (!from.subnet) {
      process.reporter.warn(fmt::format("device {}: it has no as, subnet and router: not routed", from.name));
      continue;
    }
    routing::RouterDevice& device = devices.emplace_back();
    device.name = from.name;
    device.subnet = *from.subnet;
    device.scheme = from.transport;
    device.peers = from.routers;
    device.rate_bits_per_s = rate_of_device(from, interfaces);
    device.capabilities = from.capabilities.value_or(0);
    device.transit = from.transit;
    device.wan = from.wan;
    device.wan_to = from.wan_to;
  }
  return devices;
}

// For further workers, which dial only: the addresses are worker 0's.
std::vector<routing::RouterDevice> without_endpoints(const std::vector<routing::RouterDevice>& devices,
                                                     const std::map<std::string, std::string>& uris) {
  std::vector<routing::RouterDevice> all;
  for (const routing::RouterDevice& from : devices) {
    routing::RouterDevice& device = all.emplace_back();
    device.name = from.name;
    device.subnet = from.subnet;
    device.scheme = from.scheme;
    device.rate_bits_per_s = from.rate_bits_per_s;
    device.capabilities = from.capabilities;
    device.transit = from.transit;
    device.wan = from.wan;
    device.wan_to = from.wan_to;
    device.uri = from.endpoint ? from.endpoint->uri() : uris.at(from.name);
  }
  return all;
}

struct RouterServices {  // what the router's devices are made of
  std::shared_ptr<cci::MemoryTable> memory;
  ports::Entropy& entropy;
  std::shared_ptr<ProcessTrust> trust;  // none: --insecure
};

Result<Node> node_of(const Process& process, const Config& from, const std::string& name, const RouterServices& services) {
  const auto config =
      std::find_if(from.devices.begin(), from.devices.end(), [&](const DeviceConfig& each) { return each.name == name; });
  NodeOptions options;
  options.listening = true;
  options.bare = true;
  options.paths = std::make_shared<PathTable>(wall_time_s);
  options.memory = services.memory;
  options.waker = process.loop.waker();
  options.trust = services.trust;
  return make_node(*config, options, services.entropy, process.counters);
}

class RouteHandler final : public LoopHandler {
 public:
  RouteHandler(const Process& process, const RouteCommand& command, RouterServices services, routing::Router& router,
               UriFile& uri_file, RouterAudit& audit, std::optional<Security>& security, RateClock rate, RouterWorkers* workers)
      : process_(process),
        command_(command),
        services_(std::move(services)),
        router_(router),
        uri_file_(uri_file),
        audit_(audit),
        security_(security),
        in_force_(process.config, Reload::router),
        rate_(std::move(rate)),
        workers_(workers),
        count_(workers_of(process.config, command)),
        service_manager_(process.loop.service_manager()),
        teller_(process) {
    watch_addresses(process.config);
  }

  bool turn(Instant now) override {
    process_.reporter.set_now(now);
    if (now >= next_look_) look_at_devices(now);
    if (rate_.turn(now)) set_rate();
    router_.turn(now, clock_);
    if (teller_.is_asked()) tell_page(now);
    if (workers_ != nullptr) {
      workers_->turn(now);
      service_manager_.set_well(workers_->are_well(now));
    }
    if (!ready_ && router_.ready()) say_ready();
    if (connections_open() != connections_told_) tell_status();
    if (error_.kind != ErrorKind::ok) return false;
    return !router_.drained() || (workers_ != nullptr && !workers_->drained());
  }
  Instant next_deadline() const override {
    const Instant workers = workers_ == nullptr ? never : workers_->next_deadline();
    return std::min({router_.next_deadline(), process_.reporter.next_deadline(), next_look_, rate_.next_deadline(), workers});
  }
  void on_signal(int number, Instant now) override {
    process_.reporter.set_now(now);
    if (number == SIGUSR1) return tell_counters();
    if (number == SIGHUP) return reload(now);
    process_.reporter.info(fmt::format("draining: {} connections have {} s to end or move; a second signal stops at once",
                                       connections_open(),
                                       std::chrono::duration_cast<std::chrono::seconds>(routing::drain_timeout).count()));
    service_manager_.stopping(fmt::format("draining; connections: {}", connections_open()));
    router_.drain();
    if (workers_ != nullptr) workers_->drain();
  }
  void tell_workers() const {
    if (workers_ == nullptr) return;
    const std::vector<report::WorkerLine> lines = workers_->lines();
    for (const report::WorkerLine& line : lines) {
      process_.reporter.info(fmt::format("worker {}: {} connections now, {} in all, {} bytes", line.worker, line.connections,
                                         line.routed_connections, line.routed_bytes));
    }
    process_.reporter.event(report::workers_event(process_.reporter.seconds(), lines));
  }
  const Error& error() const { return error_; }

 private:
  [[nodiscard]] size_t connections_open() const {
    return router_.connections_open() + (workers_ == nullptr ? 0 : workers_->connections_open());
  }
  void set_rate() {
    const uint64_t share = share_of_rate(rate_.rate_bytes_per_s(), count_);
    router_.set_rate(share);
    if (workers_ != nullptr) workers_->set_rate(share);
  }
  void tell_counters() const {
    if (workers_ != nullptr) workers_->add_counters();
    process_.reporter.stats(process_.counters);
    tell_workers();
  }
  void say_ready() {
    ready_ = true;
    const std::vector<std::string> uris = router_.uris();
    if (!command_.uri_file.empty()) {
      if (auto written = uri_file_.write(command_.uri_file, uris); !written) {
        error_ = written.error();
        return;
      }
    }
    process_.reporter.ready(uris);
    service_manager_.ready(status());
  }

  // A device that listens on every address has no place on this host that could be lost.
  void watch_addresses(const Config& config) {
    for (const auto& [name, uri] : router_.devices()) {
      const auto is_it = [&, &name = name](const DeviceConfig& device) { return device.name == name; };
      const auto at = std::find_if(config.devices.begin(), config.devices.end(), is_it);
      if (watches_.count(name) > 0 || at == config.devices.end() || (at->ip.empty() && at->interface.empty())) continue;
      if (const auto address = routing::address_of({}, uri)) watches_.emplace(name, AddressWatch(address->node));
    }
  }
  void look_at_devices(Instant now) {
    next_look_ = after(now, devices_look_interval);
    const std::vector<Interface> interfaces = addresses_of_host();
    for (auto& [name, watch] : watches_) router_.set_works(name, watch.works(interfaces));
    if (now < next_review_) return;
    next_review_ = after(now, certificates_look_interval);
    if (services_.trust && services_.trust->look_for_lapsed()) router_.review_links(now);
  }

  [[nodiscard]] std::string status() const {
    return fmt::format("devices: {}; connections: {}", router_.devices().size(), connections_open());
  }
  void tell_page(Instant now) {
    report::Status status = of_router(teller_, router_, now);
    if (workers_ != nullptr) add_workers(*status.router, workers_->share());
    teller_.tell(std::move(status), map_words_.of(router_.map()->map()));
  }
  void tell_status() {
    connections_told_ = connections_open();
    service_manager_.status(status());
  }

  void reload(Instant now) {
    service_manager_.reloading(now);
    const auto done = reload_all();
    if (!done) not_reloaded(done.error().message);
    if (ready_) service_manager_.ready(done ? status() : "not reloaded: " + done.error().message);
  }
  // A configuration that cannot be used changes nothing: the router goes on with the one that it has.
  [[nodiscard]] Result<void> reload_all() {
    audit_.reopen();
    const std::string& file = process_.config.file;
    const auto config = load_config(file);
    if (!config) return tl::unexpected(config.error());
    for (const std::string& warning : config->warnings) process_.reporter.warn(warning);
    const auto renew_guard = read_guard_again(process_, *config);
    if (!renew_guard) return tl::unexpected(renew_guard.error());
    if (const auto words = cannot_begin(*config, shared_memory_, used_cards_)) return fail(ErrorKind::usage, *words);
    std::vector<routing::RouterDevice> devices = settings_of(process_, *config);
    for (routing::RouterDevice& device : devices) {
      if (router_.has_device(device.name)) continue;
      auto node = node_of(process_, *config, device.name, services_);
      if (!node) return tl::unexpected(node.error());
      if (workers_ != nullptr && node->mover != nullptr) node->mover->set_placement(workers_->placement(device.name));
      device.endpoint = std::move(node->endpoint);
    }
    const size_t count = devices.size();
    std::vector<routing::RouterDevice> of_workers = without_endpoints(devices, uris_by_device());
    routing::RouterOptions options = options_of(*config, command_, rate_.rate_bytes_per_s(), count_);
    options.peer_grants = services_.trust;
    const routing::RouterOptions options_of_workers = options;
    std::optional<TrustNews> before, news_of_workers;
    if (security_) {
      auto news = read_again(*security_, *config);
      if (!news) return tl::unexpected(news.error());
      if (workers_ != nullptr) news_of_workers = *news;
      before = take(*security_, std::move(*news));  // the router asks for grants while it takes the rest
    }
    auto taken = router_.reconfigure(options, std::move(devices));
    if (!taken) {
      if (before) take(*security_, std::move(*before));
      return fail(taken.error().kind, fmt::format("{}: {}", file, taken.error().message));
    }
    if (workers_ != nullptr) {
      of_workers = in_order_of(router_.devices(), std::move(of_workers));
      workers_->reconfigure(news_of_workers, [&] {
        return WorkerSettings{*config, without_endpoints(of_workers, uris_by_device()), options_of_workers};
      });
    }
    (*renew_guard)();
    for (const std::string& line : in_force_.left_of(*config)) process_.reporter.warn(line);
    if (workers_of(*config, command_) != count_)
      process_.reporter.warn(fmt::format("{}: router.workers: another number takes a restart", file));
    watch_addresses(*config);
    if (auto written = command_.uri_file.empty() ? Result<void>() : uri_file_.write(command_.uri_file, router_.uris()); !written)
      process_.reporter.warn(written.error().message);
    process_.reporter.info(fmt::format("reloaded: {}: {} devices", file, count));
    process_.reporter.event(report::reloaded_event(process_.reporter.seconds(), count, {}));
    return {};
  }
  [[nodiscard]] std::map<std::string, std::string> uris_by_device() const {
    const auto all = router_.devices();
    return {all.begin(), all.end()};
  }
  void not_reloaded(const std::string& why) {
    process_.reporter.warn("not reloaded: " + why);
    process_.reporter.event(report::reloaded_event(process_.reporter.seconds(), router_.devices().size(), why));
  }

  const Process& process_;
  const RouteCommand& command_;
  const RouterServices services_;
  routing::Router& router_;
  UriFile& uri_file_;
  RouterAudit& audit_;
  std::optional<Security>& security_;  // none: --insecure
  Instant next_review_{};              // of certificates
  const std::function<Instant()> clock_ = [this] { return process_.loop.now(); };
  std::map<std::string, AddressWatch> watches_;  // by device
  InForce in_force_;
  RateClock rate_;
  RouterWorkers* const workers_;  // nullptr: there is one worker
  const size_t count_;
  const bool shared_memory_ = shares_memory(), used_cards_ = uses_cards();  // as it was confined
  Instant next_look_{};
  host::ServiceManager& service_manager_;
  StatusTeller teller_;
  MapWords map_words_;
  size_t connections_told_ = 0;
  bool ready_ = false;
  Error error_{ErrorKind::ok, ""};
};

struct MadeDevices {
  std::vector<routing::RouterDevice> all;
  std::map<std::string, stream::StreamTransport*> movers;  // by device
};

Result<MadeDevices> make_devices(const Process& process, const RouterServices& services) {
  MadeDevices devices{settings_of(process, process.config), {}};
  for (routing::RouterDevice& device : devices.all) {
    auto node = node_of(process, process.config, device.name, services);
    if (!node) return tl::unexpected(node.error());
    device.endpoint = std::move(node->endpoint);
    if (node->mover != nullptr) devices.movers[device.name] = node->mover;
  }
  return devices;
}

// nullptr: one worker is enough.
Result<std::unique_ptr<RouterWorkers>> make_workers(const Process& process, const RouteCommand& command,
                                                    const routing::RouterOptions& options, const MadeDevices& devices,
                                                    const std::optional<Security>& security, RouterAudit& audit) {
  const size_t count = workers_of(process.config, command);
  if (count == 1) return nullptr;
  const auto settings = [&] { return WorkerSettings{process.config, without_endpoints(devices.all, {}), options}; };
  RouterWorkers::Audit to;
  if (audit.is_read()) to = [&audit](policy::AuditRecord record) { audit.write(std::move(record)); };
  auto workers = RouterWorkers::create(process, count - 1, security, settings, to);
  if (!workers) return tl::unexpected(workers.error());
  for (const auto& [device, mover] : devices.movers) mover->set_placement((*workers)->placement(device));
  return workers;
}

}  // namespace

CommandEnd run_route(const Process& process, const RouteCommand& command) {
  if (command.common.device) return {{ErrorKind::usage, "a router has all routing devices: --device: leave it out"}, {}};
  auto security = security_of_process(process, command.common, policy::WithoutIdentity::refuse);
  if (!security) return {security.error(), {}};
  warn_of_dates(process, *security);
  const std::shared_ptr<ProcessTrust> trust = process_trust(*security, ListenerKind::router);
  auto audit = RouterAudit::open(process, command.audit_log, trust);
  if (!audit) return {audit.error(), {}};
  host::SystemEntropy entropy;
  const RouterServices services{std::make_shared<cci::MemoryTable>(entropy, process.counters), entropy, trust};
  auto devices = make_devices(process, services);
  if (!devices) return {devices.error(), {}};
  if (command.rate.changes()) keep_time_zone();
  RateClock rate(command.rate);
  routing::RouterOptions options =
      options_of(process.config, command, rate.rate_bytes_per_s(), workers_of(process.config, command));
  options.traffic = process.traffic;
  auto workers = make_workers(process, command, options, *devices, *security, **audit);
  if (!workers) return {workers.error(), {}};
  if (*workers && trust) trust->ask_nobody();
  options.peer_grants = trust;
  options.observer = (*audit)->observer();
  auto router = routing::Router::create(options, std::move(devices->all), services.memory, entropy, process.counters);
  if (!router) return {router.error(), {}};
  process.loop.take_hangups();
  UriFile uri_file(process.loop);
  sandbox::Plan plan = plan_of_router(process.config, command);
  add_trust(plan, *security);
  add_identity(plan, process.config, *security);
  (*audit)->add_to(plan);
  if (auto confined = confine(process, plan, LogLevel::warning); !confined) return {confined.error(), {}};
  if (*workers) {
    if (auto begun = (*workers)->begin(**router); !begun) {  // threads have their maker's rights
      (*workers)->stop();
      return {begun.error(), {}};
    }
  }
  RouteHandler handler(process, command, services, **router, uri_file, **audit, *security, std::move(rate), workers->get());
  process.loop.run(handler);
  if (*workers) (*workers)->stop();
  process.reporter.set_now(process.loop.now());
  handler.tell_workers();
  return {handler.error(), {}};
}

}  // namespace ccixfer::program
