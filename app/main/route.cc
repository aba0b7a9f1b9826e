// `ccixfer route`: the router daemon. One endpoint a device, all over one memory table; the engine is routing/router.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "app/main/commands.h"
#include "app/main/devices.h"
#include "app/main/node.h"
#include "app/main/topology.h"
#include "core/base/log.h"
#include "core/host/entropy.h"
#include "routing/router/router.h"

namespace ccixfer::program {
namespace {

constexpr Duration drain_timeout = std::chrono::seconds(10);  // what is in a router's hands after that is sent again by its owner

class RouteUser final : public LoopUser {
 public:
  RouteUser(const Process& process, const RouteCommand& command, routing::Router& router, UriFile& uri_file)
      : process_(process), command_(command), router_(router), uri_file_(uri_file) {}

  bool turn(Instant now) override {
    now_ = now;
    process_.reporter.set_now(now);
    router_.turn(now);
    if (!ready_ && router_.ready()) say_ready();
    if (error_.kind != ErrorKind::ok) return false;
    return !draining_ || (!router_.drained() && now < drain_until_);
  }
  Instant next_deadline() const override {
    return std::min({router_.next_deadline(), draining_ ? drain_until_ : never, process_.reporter.next_deadline()});
  }
  void on_signal(int number) override {
    if (number == SIGUSR1) return process_.reporter.stats(process_.counters);
    draining_ = true;
    drain_until_ = after(now_, drain_timeout);
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
  }

  const Process& process_;
  const RouteCommand& command_;
  routing::Router& router_;
  UriFile& uri_file_;
  Instant now_{}, drain_until_ = never;
  bool ready_ = false;
  bool draining_ = false;
  Error error_{ErrorKind::ok, ""};
};

Result<std::vector<routing::RouterDevice>> make_devices(const Process& process, const std::shared_ptr<cci::MemoryTable>& memory,
                                                        ports::Entropy& entropy) {
  const std::vector<Interface> interfaces = interfaces_of_host();
  std::vector<routing::RouterDevice> devices;
  for (const DeviceConfig& config : process.config.devices) {
    if (!config.subnet) {
      process.reporter.warn(fmt::format("device {}: it has no as, subnet and router: not routed", config.name));
      continue;
    }
    NodeOptions options;
    options.listening = true;
    options.bare = true;
    options.memory = memory;
    auto node = make_node(config, options, entropy, process.counters);
    if (!node) return tl::unexpected(node.error());
    routing::RouterDevice device;
    device.name = config.name;
    device.subnet = *config.subnet;
    device.scheme = config.transport;
    device.endpoint = std::move(node->endpoint);
    device.peers = config.routers;
    device.rate_bits_per_s = rate_of_device(config, interfaces);
    device.capabilities = config.capabilities.value_or(0);
    device.transit = config.transit;
    device.wan = config.wan;
    device.wan_to = config.wan_to;
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

CommandEnd run_route(const Process& process, const RouteCommand& command) {
  if (auto allowed = require_insecure(process, command.common); !allowed) return {allowed.error(), {}};
  if (command.common.device) return {{ErrorKind::usage, "a router has all routing devices: --device: leave it out"}, {}};
  host::SystemEntropy entropy;
  auto memory = std::make_shared<cci::MemoryTable>(entropy, process.counters);
  auto devices = make_devices(process, memory, entropy);
  if (!devices) return {devices.error(), {}};
  const RouterConfig& config = process.config.router;
  routing::RouterOptions options;
  options.metric = config.metric;
  if (config.fragment_bytes) options.fragment_bytes = static_cast<uint32_t>(std::min<uint64_t>(*config.fragment_bytes, UINT32_MAX));
  if (config.memory_bytes) options.memory_bytes = *config.memory_bytes;
  if (command.memory_bytes) options.memory_bytes = *command.memory_bytes;
  options.static_routes = static_routes_of(process.config);
  options.rate_bytes_per_s = command.rate_bytes_per_s;
  auto router = routing::Router::create(options, std::move(*devices), memory, entropy, process.counters);
  if (!router) return {router.error(), {}};
  for (const int handle : (*router)->os_handles()) process.driver.watch(handle);
  UriFile uri_file;
  RouteUser user(process, command, **router, uri_file);
  process.driver.run(user);
  return {user.error(), {}};
}

}  // namespace ccixfer::program
