// `ccixfer route`: the router daemon. One endpoint a device, all over one memory table; the engine is routing/router.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>

#include "app/devices/devices.h"
#include "app/devices/node.h"
#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/main/process_trust.h"
#include "app/main/rate_clock.h"
#include "app/main/router_audit.h"
#include "app/main/router_status.h"
#include "app/main/topology.h"
#include "app/main/uri_file.h"
#include "core/base/log.h"
#include "core/host/entropy.h"
#include "routing/router/map_snapshot.h"
#include "routing/router/router.h"

namespace ccixfer::program {
namespace {

constexpr Duration devices_look_interval = std::chrono::seconds(1);  // how often the host is asked for its addresses

routing::RouterOptions options_of(const Config& config, const RouteCommand& command, uint64_t rate_bytes_per_s) {
  const RouterConfig& router = config.router;
  routing::RouterOptions options;
  options.metric = router.metric;
  if (router.fragment_bytes) options.fragment_bytes = static_cast<uint32_t>(std::min<uint64_t>(*router.fragment_bytes, UINT32_MAX));
  if (router.memory_bytes) options.memory_bytes = *router.memory_bytes;
  if (command.memory_bytes) options.memory_bytes = *command.memory_bytes;
  options.static_routes = static_routes_of(config);
  options.rate_bytes_per_s = rate_bytes_per_s;
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

struct RouterServices {  // what the router's devices are made of
  std::shared_ptr<cci::MemoryTable> memory;
  ports::Entropy& entropy;
  std::shared_ptr<ProcessTrust> trust;  // none: --insecure
};

Result<std::unique_ptr<cci::Endpoint>> endpoint_of(const Process& process, const Config& from, const std::string& name,
                                                   const RouterServices& services) {
  const auto config =
      std::find_if(from.devices.begin(), from.devices.end(), [&](const DeviceConfig& each) { return each.name == name; });
  NodeOptions options;
  options.listening = true;
  options.bare = true;
  options.memory = services.memory;
  options.waker = process.loop.waker();
  options.trust = services.trust;
  auto node = make_node(*config, options, services.entropy, process.counters);
  if (!node) return tl::unexpected(node.error());
  return std::move(node->endpoint);
}

class RouteHandler final : public LoopHandler {
 public:
  RouteHandler(const Process& process, const RouteCommand& command, RouterServices services, routing::Router& router,
               UriFile& uri_file, RouterAudit& audit, std::optional<Security>& security, RateClock rate)
      : process_(process),
        command_(command),
        services_(std::move(services)),
        router_(router),
        uri_file_(uri_file),
        audit_(audit),
        security_(security),
        rate_(std::move(rate)),
        service_manager_(process.loop.service_manager()),
        teller_(process) {
    watch_addresses(process.config);
  }

  bool turn(Instant now) override {
    process_.reporter.set_now(now);
    if (now >= next_look_) look_at_devices(now);
    if (rate_.turn(now)) router_.set_rate(rate_.rate_bytes_per_s());
    router_.turn(now, clock_);
    if (teller_.is_asked()) teller_.tell(of_router(teller_, router_, now), map_words_.of(router_.map()->map()));
    if (!ready_ && router_.ready()) say_ready();
    if (router_.connections_open() != connections_told_) tell_status();
    if (error_.kind != ErrorKind::ok) return false;
    return !router_.drained();
  }
  Instant next_deadline() const override {
    return std::min({router_.next_deadline(), process_.reporter.next_deadline(), next_look_, rate_.next_deadline()});
  }
  void on_signal(int number, Instant now) override {
    process_.reporter.set_now(now);
    if (number == SIGUSR1) return process_.reporter.stats(process_.counters);
    if (number == SIGHUP) return reload(now);
    process_.reporter.info(fmt::format("draining: {} connections have {} s to end or move; a second signal stops at once",
                                       router_.connections_open(),
                                       std::chrono::duration_cast<std::chrono::seconds>(routing::drain_timeout).count()));
    service_manager_.stopping(fmt::format("draining; connections: {}", router_.connections_open()));
    router_.drain();
  }
  const Error& error() const { return error_; }

 private:
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
  }

  [[nodiscard]] std::string status() const {
    return fmt::format("devices: {}; connections: {}", router_.devices().size(), router_.connections_open());
  }
  void tell_status() {
    connections_told_ = router_.connections_open();
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
    std::vector<routing::RouterDevice> devices = settings_of(process_, *config);
    for (routing::RouterDevice& device : devices) {
      if (router_.has_device(device.name)) continue;
      auto endpoint = endpoint_of(process_, *config, device.name, services_);
      if (!endpoint) return tl::unexpected(endpoint.error());
      device.endpoint = std::move(*endpoint);
    }
    const size_t count = devices.size();
    routing::RouterOptions options = options_of(*config, command_, rate_.rate_bytes_per_s());
    options.peer_grants = services_.trust;
    std::optional<TrustNews> before;
    if (security_) {
      auto news = read_again(*security_, *config);
      if (!news) return tl::unexpected(news.error());
      before = take(*security_, std::move(*news));  // the router asks for grants while it takes the rest
    }
    auto taken = router_.reconfigure(options, std::move(devices));
    if (!taken) {
      if (before) take(*security_, std::move(*before));
      return fail(taken.error().kind, fmt::format("{}: {}", file, taken.error().message));
    }
    watch_addresses(*config);
    if (auto written = command_.uri_file.empty() ? Result<void>() : uri_file_.write(command_.uri_file, router_.uris()); !written)
      process_.reporter.warn(written.error().message);
    process_.reporter.info(fmt::format("reloaded: {}: {} devices", file, count));
    process_.reporter.event(report::reloaded_event(process_.reporter.seconds(), count, {}));
    return {};
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
  const std::function<Instant()> clock_ = [this] { return process_.loop.now(); };
  std::map<std::string, AddressWatch> watches_;  // by device
  RateClock rate_;
  Instant next_look_{};
  host::ServiceManager& service_manager_;
  StatusTeller teller_;
  MapWords map_words_;
  size_t connections_told_ = 0;
  bool ready_ = false;
  Error error_{ErrorKind::ok, ""};
};

Result<std::vector<routing::RouterDevice>> make_devices(const Process& process, const RouterServices& services) {
  std::vector<routing::RouterDevice> devices = settings_of(process, process.config);
  for (routing::RouterDevice& device : devices) {
    auto endpoint = endpoint_of(process, process.config, device.name, services);
    if (!endpoint) return tl::unexpected(endpoint.error());
    device.endpoint = std::move(*endpoint);
  }
  return devices;
}

}  // namespace

CommandEnd run_route(const Process& process, const RouteCommand& command) {
  if (command.common.device) return {{ErrorKind::usage, "a router has all routing devices: --device: leave it out"}, {}};
  auto security = security_of_process(process, command.common, policy::WithoutIdentity::refuse);
  if (!security) return {security.error(), {}};
  const std::shared_ptr<ProcessTrust> trust = process_trust(*security, ListenerKind::router);
  auto audit = RouterAudit::open(process, command.audit_log, trust);
  if (!audit) return {audit.error(), {}};
  host::SystemEntropy entropy;
  const RouterServices services{std::make_shared<cci::MemoryTable>(entropy, process.counters), entropy, trust};
  auto devices = make_devices(process, services);
  if (!devices) return {devices.error(), {}};
  if (command.rate.changes()) keep_time_zone();
  RateClock rate(command.rate);
  routing::RouterOptions options = options_of(process.config, command, rate.rate_bytes_per_s());
  options.peer_grants = trust;
  options.observer = (*audit)->observer();
  options.traffic = process.traffic;
  auto router = routing::Router::create(options, std::move(*devices), services.memory, entropy, process.counters);
  if (!router) return {router.error(), {}};
  process.loop.take_hangups();
  UriFile uri_file(process.loop);
  sandbox::Plan plan = plan_of_router(process.config, command);
  add_trust(plan, *security);
  add_identity(plan, process.config, *security);
  (*audit)->add_to(plan);
  if (auto confined = confine(process, plan, LogLevel::warning); !confined) return {confined.error(), {}};
  RouteHandler handler(process, command, services, **router, uri_file, **audit, *security, std::move(rate));
  process.loop.run(handler);
  return {handler.error(), {}};
}

}  // namespace ccixfer::program
