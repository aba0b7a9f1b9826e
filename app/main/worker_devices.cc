#include "app/main/worker_devices.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::program {

std::vector<routing::RouterDevice> in_order_of(const std::vector<std::pair<std::string, std::string>>& worker_0,
                                               std::vector<routing::RouterDevice> settings) {
  const auto place_of = [&](const routing::RouterDevice& device) {
    return std::find_if(worker_0.begin(), worker_0.end(), [&](const auto& each) { return each.first == device.name; });
  };
  std::sort(settings.begin(), settings.end(), [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  return settings;
}

Result<void> WorkerDevices::change(const Config& config, std::vector<routing::RouterDevice> devices, const Give& give) {
  is_current_ = false;
  std::map<std::string, stream::StreamTransport*> made;
  for (routing::RouterDevice& device : devices) {
    if (movers_.count(device.name) > 0) continue;
    const auto& all = config.devices;
    const auto of = std::find_if(all.begin(), all.end(), [&](const DeviceConfig& each) { return each.name == device.name; });
    auto node = make_node_(*of);
    if (!node) return tl::unexpected(node.error());
    device.endpoint = std::move(node->endpoint);
    made.emplace(device.name, node->mover);
  }
  if (auto given = give(std::move(devices)); !given) return given;
  movers_.merge(made);
  is_current_ = true;
  return {};
}

std::set<std::string> WorkerDevices::movable() const {
  std::set<std::string> names;
  for (const auto& [name, mover] : movers_) {
    if (mover != nullptr) names.insert(name);
  }
  return names;
}

stream::StreamTransport& WorkerDevices::mover(const std::string& device) const {
  const auto of = movers_.find(device);
  CHECK(of != movers_.end() && of->second != nullptr);
  return *of->second;
}

}  // namespace ccixfer::program
