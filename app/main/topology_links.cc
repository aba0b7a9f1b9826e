// Which routers of configuration files will never hear of one another, although they stand on one subnet or on WANs that meet.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "app/main/topology.h"

namespace ccixfer::program {
namespace {

struct Standing {  // a device of one of the files
  size_t router = 0;
  const DeviceConfig* device = nullptr;
  const routing::DeviceRecord* record = nullptr;
};

// Whether a list may mean it by a name, which only the network knows.
bool is_name(const std::string& uri) {
  const size_t host = uri.find("://");
  if (host == std::string::npos) return true;
  const std::string_view at = std::string_view(uri).substr(host + 3);
  return !at.starts_with('[') && at.substr(0, at.find(':')).find_first_not_of("0123456789.") != std::string_view::npos;
}

bool may_name(const DeviceConfig& device, const Standing& other) {
  // No address, or that of every interface, says not which one it is.
  const bool is_known = other.device->ip.find_first_not_of("0.:") != std::string::npos && other.device->port != 0;
  return std::any_of(device.routers.begin(), device.routers.end(),
                     [&](const std::string& uri) { return uri == other.record->uri || !is_known || is_name(uri); });
}

bool meet(const routing::DeviceRecord& one, const routing::DeviceRecord& other) {
  return one.subnet == other.subnet || routing::wans_join(one, other);
}

// Routers that a chain of lists joins have one number, that of the first.
class Groups {
 public:
  explicit Groups(size_t routers) : of_(routers) { std::iota(of_.begin(), of_.end(), size_t{0}); }
  [[nodiscard]] size_t of(size_t router) const { return of_[router]; }
  void join(size_t one, size_t other) {
    const size_t low = std::min(of_[one], of_[other]);
    const size_t high = std::max(of_[one], of_[other]);
    std::replace(of_.begin(), of_.end(), high, low);
  }

 private:
  std::vector<size_t> of_;
};

}  // namespace

std::vector<std::string> strangers_of(const std::vector<Config>& configs, const std::vector<routing::RouterRecord>& records) {
  std::vector<Standing> all;
  for (size_t i = 0; i < configs.size(); ++i) {
    size_t next = 0;
    for (const DeviceConfig& device : configs[i].devices) {
      if (device.subnet) all.push_back({i, &device, &records[i].devices[next++]});
    }
  }
  Groups groups(configs.size());
  for (const Standing& one : all) {
    for (const Standing& other : all) {
      if (one.router != other.router && meet(*one.record, *other.record) && may_name(*one.device, other))
        groups.join(one.router, other.router);
    }
  }
  std::vector<std::string> told;
  std::set<std::pair<size_t, size_t>> pairs;
  for (const Standing& one : all) {
    for (const Standing& other : all) {
      const size_t from = groups.of(one.router);
      const size_t to = groups.of(other.router);
      if (from >= to || !meet(*one.record, *other.record) || !pairs.emplace(from, to).second) continue;
      told.push_back(fmt::format(
          "{}: device.{}.router: it leads to nobody of {}, nor does device.{}.router of that one lead here, so that they will not "
          "know of one another and routes through both will not exist: name {} in it",
          configs[one.router].file, one.device->name, configs[other.router].file, other.device->name, other.record->uri));
    }
  }
  return told;
}

std::vector<std::string> islands_of(const Topology& topology) {
  const auto as_of = [](const std::string& subnet) { return subnet.substr(0, subnet.find(':')); };
  std::set<std::string> all, led_out;
  for (const TopologySubnet& subnet : topology.subnets) all.insert(as_of(name_of(subnet.id)));
  for (const TopologyRoute& route : topology.routes) {
    if (as_of(route.from) != as_of(route.to)) led_out.insert(as_of(route.from));
  }
  std::vector<std::string> told;
  const size_t subnets = topology.subnets.size();
  if (subnets * subnets > pairs_listed_max) return told;  // not all routes are listed
  for (const std::string& as : all) {
    if (all.size() > 1 && led_out.count(as) == 0)
      told.push_back(fmt::format("AS {}: no route leads to another AS: give its border router a device with wan = true", as));
  }
  return told;
}

}  // namespace ccixfer::program
