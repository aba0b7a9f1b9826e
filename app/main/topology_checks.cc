// What is wrong with a topology as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/main/topology.h"

namespace ccixfer::program {
namespace {

using routing::SubnetId;

struct Inside {  // of one AS
  std::vector<SubnetId> subnets;
  std::set<SubnetId> leading_out;  // subnets with a router that has a WAN device
  std::set<SubnetId> transit;
};

std::map<uint32_t, Inside> insides_of(const routing::RouterMap& map) {
  std::map<uint32_t, Inside> all;
  for (const routing::RouterRecord& record : map.records()) {
    const bool border = std::any_of(record.devices.begin(), record.devices.end(), [](const auto& device) { return device.wan; });
    for (const routing::DeviceRecord& device : record.devices) {
      if (device.wan) continue;
      if (border) all[device.subnet.as].leading_out.insert(device.subnet);
      if (device.transit) all[device.subnet.as].transit.insert(device.subnet);
    }
  }
  for (const SubnetId subnet : map.subnets()) {
    if (!map.is_wan(subnet)) all[subnet.as].subnets.push_back(subnet);
  }
  return all;
}

}  // namespace

std::vector<std::string> problems_of(const routing::RouterMap& map) {
  std::vector<std::string> problems;
  for (const auto& [as, inside] : insides_of(map)) {
    for (const SubnetId from : inside.leading_out) {
      for (const SubnetId to : inside.leading_out) {
        if (!(from < to) || map.chosen(from, to)) continue;
        problems.push_back(fmt::format(
            "AS {}: subnets {} and {} both lead to the WAN and cannot reach one another inside, and nothing is forwarded "
            "over the WAN within an AS: join them by a router, or give them different AS numbers",
            as, name_of(from), name_of(to)));
      }
    }
    // What all reach through one transit subnet all reach from one another; without any, every pair is asked.
    const std::vector<SubnetId> asked = inside.transit.empty() ? inside.subnets : std::vector<SubnetId>{*inside.transit.begin()};
    for (const SubnetId from : asked) {
      for (const SubnetId to : inside.subnets) {
        const bool told = inside.leading_out.count(from) > 0 && inside.leading_out.count(to) > 0;
        if (from == to || told || (inside.transit.empty() && to < from) || map.chosen(from, to)) continue;
        problems.push_back(fmt::format("AS {}: subnets {} and {} cannot reach one another: join them by a router", as,
                                       name_of(from), name_of(to)));
      }
    }
  }
  return problems;
}

}  // namespace ccixfer::program
