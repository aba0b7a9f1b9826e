#include "app/main/in_force.h"

#include <fmt/format.h>

#include <algorithm>

namespace ccixfer::program {
namespace {

class Left {
 public:
  explicit Left(const std::string& file) : file_(file) {}
  template <typename Value>
  void compare(const std::string& key, const Value& ours, const Value& next) {
    if (!(ours == next)) add(key, "another value takes a restart");
  }
  void add(const std::string& key, const char* what) { lines_.push_back(fmt::format("{}: {}: {}", file_, key, what)); }
  [[nodiscard]] std::vector<std::string> take() { return std::move(lines_); }

 private:
  const std::string& file_;
  std::vector<std::string> lines_;
};

void compare_place(Left& left, const DeviceConfig& ours, const DeviceConfig& next) {
  const std::string device = "device." + ours.name + ".";
  left.compare(device + "interface", ours.interface, next.interface);
  left.compare(device + "ip", ours.ip, next.ip);
  left.compare(device + "port", ours.port, next.port);
  left.compare(device + "name", ours.shm_name, next.shm_name);
}

void compare_rest(Left& left, const DeviceConfig& ours, const DeviceConfig& next) {
  const std::string device = "device." + ours.name + ".";
  left.compare(device + "transport", ours.transport, next.transport);
  left.compare(device + "subnet", ours.subnet, next.subnet);
  left.compare(device + "router", ours.routers, next.routers);
  left.compare(device + "rate", ours.rate_bits_per_s, next.rate_bits_per_s);
  left.compare(device + "priority", ours.priority, next.priority);
  left.compare(device + "default", ours.is_default, next.is_default);
}

}  // namespace

std::optional<std::string> cannot_begin(const Config& next, bool shares_memory, bool uses_cards) {
  for (const DeviceConfig& device : next.devices) {
    const bool is_first = (device.transport == "shm" && !shares_memory) || (device.transport == "verbs" && !uses_cards);
    if (!is_first || !device.subnet) continue;  // none that is routed
    return fmt::format("{}: device.{}: the first device of {} takes a restart: this process gave up what one needs", next.file,
                       device.name, device.transport);
  }
  return std::nullopt;
}

std::vector<std::string> InForce::left_of(const Config& next) {
  Left left(next.file);
  for (const DeviceConfig& device : next.devices) {
    const auto ours = std::find_if(config_.devices.begin(), config_.devices.end(),
                                   [&](const DeviceConfig& one) { return one.name == device.name; });
    if (ours == config_.devices.end()) {
      kind_ == Reload::router ? config_.devices.push_back(device)
                              : left.add("device." + device.name, "a new device takes a restart");
      continue;
    }
    compare_place(left, *ours, device);
    if (kind_ == Reload::listener) compare_rest(left, *ours, device);
  }
  if (kind_ == Reload::listener) {
    for (const DeviceConfig& ours : config_.devices) {
      const bool stays = std::any_of(next.devices.begin(), next.devices.end(),
                                     [&](const DeviceConfig& device) { return device.name == ours.name; });
      if (!stays) left.add("device." + ours.name, "to do without this device takes a restart");
    }
  }
  if (kind_ == Reload::router) {
    left.compare("router.fragment", config_.router.fragment_bytes, next.router.fragment_bytes);
    left.compare("router.memory", config_.router.memory_bytes, next.router.memory_bytes);
  }
  left.compare("metrics.listen", config_.metrics.listen, next.metrics.listen);
  left.compare("metrics.names", config_.metrics.names, next.metrics.names);
  // Other files, and new ones in their place, are taken; without a place nobody asks for any.
  if (!config_.metrics.listen.empty())
    left.compare("metrics.token", config_.metrics.guard.has_value(), next.metrics.guard.has_value());
  return left.take();
}

}  // namespace ccixfer::program
