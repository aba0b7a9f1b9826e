#include "app/config/config.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <toml.hpp>

#include "app/config/config_text.h"
#include "app/config/toml_reader.h"
#include "app/config/uri.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

using Value = TomlValue;
constexpr std::array transports{"tcp", "udp", "verbs", "eth", "shm"};
constexpr std::array metrics{"bandwidth", "capabilities", "latency", "hops"};

class Reader : TomlReader {
 public:
  Reader(const std::string& file, Config& config) : TomlReader(file), config_(config) {}

  void read(const Value& top) {
    for (const auto& [key, value] : top.as_table()) {
      if (key == "device") {
        for (const auto& [name, device] : table(key, value)) read_device(name, device);
      } else if (key == "router") {
        read_router(table(key, value));
      } else if (key == "identity") {
        config_.identity = read_identity(config_.file, value);
      } else if (key == "peer") {
        config_.peers = read_peers(config_.file, value);
      } else if (key == "metrics") {
        config_.metrics = read_metrics(config_.file, value);
      } else {
        bad(value, key, "unknown table or key", "device, router, identity, peer and metrics are known");
      }
    }
    check_together();
  }

 private:
  void warn(const Value& at, std::string_view key, std::string_view what) const {
    config_.warnings.push_back(fmt::format("{}: {}", place(at, key), what));
  }

  void read_device(const std::string& name, const Value& values) {
    DeviceConfig device;
    device.name = name;
    const std::string prefix = "device." + name + ".";
    std::optional<uint32_t> as, subnet;
    std::optional<std::vector<std::string>> routers;
    const Value* routing_at = nullptr;
    const TomlTable& keys = table("device." + name, values);
    for (const auto& [key, value] : keys) {
      const std::string full = prefix + key;
      if (key == "transport") {
        device.transport = one_of(full, value, transports);
      } else if (key == "interface") {
        device.interface = text(full, value, "\"eth0\"");
        if (device.interface.empty()) bad(value, full, "is empty", "name an interface");
      } else if (key == "ip") {
        device.ip = ip(full, value);
      } else if (key == "port") {
        device.port = static_cast<uint16_t>(whole(full, value, 0, UINT16_MAX));
      } else if (key == "name") {
        device.shm_name = shm_name(full, value);
      } else if (key == "as") {
        as = id(full, value);
        routing_at = &value;
      } else if (key == "subnet") {
        subnet = id(full, value);
        routing_at = &value;
      } else if (key == "router") {
        routers = router_list(full, value);
        routing_at = &value;
      } else if (key == "rate") {
        device.rate_bits_per_s = rate_bits_per_s(full, value, 1);
      } else if (key == "capabilities") {
        device.capabilities = capabilities(full, value);
      } else if (key == "priority") {
        device.priority = static_cast<uint32_t>(whole(full, value, 0, 100));
      } else if (key == "default") {
        device.is_default = boolean(full, value);
      } else if (key == "transit") {
        device.transit = boolean(full, value);
      } else if (key == "wan") {
        device.wan = boolean(full, value);
      } else if (key == "wan_to") {
        for (const Value& item : list(full, value)) device.wan_to.push_back(id(full, item));
        if (device.wan_to.empty()) bad(value, full, "is empty", "name the AS that it serves, or leave it out for all");
      } else {
        warn(value, full, "unknown key, not used");
      }
    }
    check_shm(device, prefix, keys);
    if (!device.interface.empty() && !device.ip.empty())
      bad(values.at("ip"), prefix + "ip", "interface is given too", "leave one of them out");
    if (!device.ip.empty() && device.transport == "eth")
      bad(values.at("ip"), prefix + "ip", "an endpoint of eth has no IP address", "name an interface");
    if (!device.wan_to.empty() && !device.wan)
      bad(values.at("wan_to"), prefix + "wan_to", "the device is no wan", "set wan = true or leave wan_to out");
    if (as && std::count(device.wan_to.begin(), device.wan_to.end(), *as) > 0)
      bad(values.at("wan_to"), prefix + "wan_to", "names the device's own AS", "name others only");
    if (routers && !routers->empty()) check_schemes(values.at("router"), prefix + "router", device.transport, *routers);
    if (as && subnet && routers) {
      device.subnet = routing::SubnetId{*as, *subnet};
      device.routers = *routers;
    } else if (routing_at != nullptr) {
      warn(*routing_at, prefix.substr(0, prefix.size() - 1),
           "as, subnet and router are given only in part: no routing for this device");
    }
    where_.push_back(&values);
    config_.devices.push_back(std::move(device));
  }

  std::string ip(std::string_view key, const Value& value) const {
    const std::string address = text(key, value, "\"192.0.2.10\"");
    in6_addr parsed{};
    if (inet_pton(AF_INET, address.c_str(), &parsed) != 1 && inet_pton(AF_INET6, address.c_str(), &parsed) != 1) {
      bad(value, key, fmt::format("'{}' is no IP address", printable(address)), "give one of this host's");
    }
    return address;
  }
  std::string shm_name(std::string_view key, const Value& value) const {
    std::string name = text(key, value, "\"site-a\"");
    if (name.empty() || !split_listen("shm://" + name))
      bad(value, key, fmt::format("'{}' is no name of shm", printable(name)), shm_name_hint);
    return name;
  }
  void check_shm(const DeviceConfig& device, const std::string& prefix, const TomlTable& values) const {
    const bool is_shm = device.transport == "shm";
    if (!is_shm && values.contains("name"))
      bad(values.at("name"), prefix + "name", "only shm has names", "give interface or ip, and port");
    for (const char* key : {"interface", "ip", "port"}) {
      if (is_shm && values.contains(key)) bad(values.at(key), prefix + key, "shm has none", "give name, as in shm://NAME");
    }
  }
  uint8_t capabilities(std::string_view key, const Value& value) const {
    constexpr std::array known{"zero-copy", "os-bypass"};
    uint8_t bits = 0;
    for (const Value& item : list(key, value))
      bits |= one_of(key, item, known) == "zero-copy" ? capability_zero_copy : capability_os_bypass;
    return bits;
  }
  std::vector<std::string> router_list(std::string_view key, const Value& value) const {
    std::vector<std::string> uris;
    for (const Value& item : list(key, value)) {
      const std::string uri = text(key, item, "[\"tcp://192.0.2.1:7000\"]");
      const auto target = split_target(uri);
      if (!target || target->routed || !target->path.empty()) {
        bad(item, key, fmt::format("'{}' is no native address", printable(uri)), "give addresses such as \"tcp://192.0.2.1:7000\"");
      }
      uris.push_back(target->address);
    }
    return uris;
  }
  void check_schemes(const Value& at, std::string_view key, const std::string& transport,
                     const std::vector<std::string>& uris) const {
    for (const std::string& uri : uris) {
      if (uri.rfind(transport + "://", 0) != 0) {
        bad(at, key, fmt::format("'{}' is not of the transport {}", printable(uri), transport),
            "a subnet has exactly one transport");
      }
    }
  }

  void read_router(const TomlTable& values) {
    for (const auto& [key, value] : values) {
      const std::string full = "router." + key;
      if (key == "metric") {
        config_.router.metric.clear();
        for (const Value& item : list(full, value)) {
          const std::string metric = one_of(full, item, metrics);
          if (std::count(config_.router.metric.begin(), config_.router.metric.end(), metric) > 0)
            bad(item, full, "named twice", "name each once");
          config_.router.metric.push_back(metric);
        }
        if (config_.router.metric.empty()) bad(value, full, "is empty", fmt::format("name some of {}", fmt::join(metrics, ", ")));
      } else if (key == "fragment") {
        config_.router.fragment_bytes = size_bytes(full, value, 1, UINT64_MAX);
      } else if (key == "memory") {
        config_.router.memory_bytes = size_bytes(full, value, 1, UINT64_MAX);
      } else if (key == "workers") {
        config_.router.workers = static_cast<size_t>(whole(full, value, 1, workers_max));
      } else if (key == "static") {
        for (const Value& item : list(full, value)) read_static(item);
      } else {
        bad(value, full, "unknown key", "metric, fragment, memory, workers and static are known");
      }
    }
  }
  void read_static(const Value& values) {
    StaticRoute route;
    const Value* via = nullptr;
    std::set<std::string> seen;
    for (const auto& [key, value] : table("[router.static]", values)) {
      const std::string full = "router.static." + key;
      seen.insert(key);
      if (key == "from") {
        route.from = id(full, value);
      } else if (key == "to") {
        read_static_to(full, value, route);
      } else if (key == "via") {
        via = &value;
        for (const Value& item : list(full, value)) route.via.push_back(id(full, item));
        if (route.via.empty()) bad(value, full, "is empty", "name the subnets or AS on the way");
      } else {
        bad(value, full, "unknown key", "from, to and via are known");
      }
    }
    for (const char* key : {"from", "to", "via"}) {
      if (!seen.contains(key))
        bad(values, fmt::format("router.static.{}", key), "is missing", "a static route has from, to and via");
    }
    if (route.via == std::vector{route.from})
      bad(*via, "router.static.via", "names no other subnet than from", "name the next one");
    if (route.via.front() != route.from) route.via.insert(route.via.begin(), route.from);
    for (auto at = route.via.begin(); at != route.via.end(); ++at) {
      if (std::count(route.via.begin(), at, *at) > 0)
        bad(*via, "router.static.via", fmt::format("names subnet {} twice", *at), "name each once");
    }
    config_.router.static_routes.push_back(std::move(route));
  }
  void read_static_to(std::string_view key, const Value& value, StaticRoute& route) const {
    if (value.is_integer()) {
      route.to_subnet = id(key, value);
      return;
    }
    const std::string to = text(key, value, "\"4:7\"");
    const size_t colon = to.find(':');
    const auto as_number = [&](std::string_view part) {
      uint32_t number = 0;
      const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), number);
      if (problem != std::errc() || end != part.data() + part.size())
        bad(value, key, "bad value", "give \"AS:SUBNET\" or a subnet of this AS");
      return number;
    };
    if (colon == std::string::npos) {
      route.to_subnet = as_number(to);
    } else {
      route.to_as = as_number(std::string_view(to).substr(0, colon));
      route.to_subnet = as_number(std::string_view(to).substr(colon + 1));
    }
  }

  // What only all devices together can tell.
  void check_together() const {
    const DeviceConfig* chosen = nullptr;
    for (size_t i = 0; i < config_.devices.size(); ++i) {
      const DeviceConfig& device = config_.devices[i];
      if (device.is_default && chosen != nullptr) {
        bad(where_[i]->at("default"), "device." + device.name + ".default",
            fmt::format("device {} is the default too", printable(chosen->name)), "leave one");
      }
      if (device.is_default) chosen = &device;
      for (size_t k = 0; k < i; ++k) {
        const DeviceConfig& other = config_.devices[k];
        if (device.subnet && other.subnet && *device.subnet == *other.subnet && device.transport != other.transport) {
          bad(where_[i]->at("subnet"), "device." + device.name + ".subnet",
              fmt::format("device {} says that it is {}", printable(other.name), other.transport),
              "a subnet has exactly one transport: number the other one anew");
        }
        const bool same_place = device.interface == other.interface && device.ip == other.ip && device.transport == other.transport;
        if (same_place && device.port == other.port && device.port != 0) {
          bad(where_[i]->at("port"), "device." + device.name + ".port",
              fmt::format("device {} listens there", printable(other.name)), "give another port");
        }
      }
    }
  }

  Config& config_;
  std::vector<const Value*> where_;  // by device
};

}  // namespace

Result<Config> parse_config(const std::string& file, const std::string& text) {
  const Result<Value> top = parse_toml(file, text);
  if (!top) return tl::unexpected<Error>(top.error());
  Config config;
  config.file = file;
  try {
    Reader(file, config).read(*top);
  } catch (const TomlMistake& problem) {
    return fail(ErrorKind::usage, problem.line);
  }
  return config;
}

Result<Config> load_config(const std::string& file) {
  const Result<std::string> text = read_config_text(file);
  if (!text) return tl::unexpected<Error>(text.error());
  return parse_config(file, *text);
}

std::string find_config(const std::optional<std::string>& option, const char* (*environment)(const char*),
                        bool (*exists)(const std::string&)) {
  if (option) return *option;
  if (const char* file = environment("CCI_CONFIG"); file != nullptr && *file != '\0') return file;
  std::string home;
  if (const char* xdg = environment("XDG_CONFIG_HOME"); xdg != nullptr && *xdg == '/') {
    home = xdg;
  } else if (const char* user = environment("HOME"); user != nullptr && *user == '/') {
    home = std::string(user) + "/.config";
  }
  if (!home.empty() && exists(home + "/ccixfer/ccixfer.toml")) return home + "/ccixfer/ccixfer.toml";
  const std::string system = "/etc/ccixfer/ccixfer.toml";
  return exists(system) ? system : std::string();
}

Result<Config> config_of_process(const std::optional<std::string>& option) {
  const std::string file = find_config(
      option, [](const char* name) -> const char* { return std::getenv(name); },
      [](const std::string& path) { return access(path.c_str(), F_OK) == 0; });
  return file.empty() ? Result<Config>(Config{}) : load_config(file);
}

}  // namespace ccixfer::program
