#include "routing/map/source_policy.h"

#include <fmt/core.h>

#include <algorithm>

namespace ccixfer::routing {
namespace {

std::string words_of(SubnetId subnet) { return fmt::format("{}:{}", subnet.as, subnet.subnet); }

bool serves(const DeviceRecord& device, uint32_t as) {
  return device.wan && (device.wan_to.empty() || std::find(device.wan_to.begin(), device.wan_to.end(), as) != device.wan_to.end());
}

template <typename F>
bool any_device(const RouterMap& map, const F& holds) {
  const auto& all = map.records();
  return std::any_of(all.begin(), all.end(), [&](const RouterRecord& record) {
    return std::any_of(record.devices.begin(), record.devices.end(), [&](const DeviceRecord& dev) { return holds(record, dev); });
  });
}

// From outside: what is ours is behind us, not there; and nothing passes through our AS.
ClaimFault fault_over_wan(const Claim& claim, const DeviceRecord& in) {
  const uint32_t ours = in.subnet.as;
  if (claim.to.as != ours)
    return {Status::refused,
            fmt::format("subnet {} is not of AS {}: nothing that comes over its WAN leaves it again", words_of(claim.to), ours)};
  if (claim.source == in.subnet) return {};
  if (claim.source.as == ours)
    return {Status::refused,
            fmt::format("it says that it begins in {}, inside AS {}, and comes over its WAN", words_of(claim.source), ours)};
  if (!serves(in, claim.source.as))
    return {Status::refused, fmt::format("it says that it is of AS {}, which this WAN device does not serve", claim.source.as)};
  return {};
}

// From a router of ours: what some router on that subnet can have taken.
ClaimFault fault_inside(const Claim& claim, const DeviceRecord& in, uint64_t own, const RouterMap& map) {
  const uint32_t ours = in.subnet.as;
  const auto is_neighbour = [&](const RouterRecord& record, const DeviceRecord& dev) {
    return record.router != own && dev.subnet == in.subnet;
  };
  if (!any_device(map, is_neighbour))
    return {Status::no_route, fmt::format("it says that it crossed {} routers, and no other one is known on subnet {}",
                                          claim.crossed, words_of(in.subnet))};
  if (claim.source.as == ours) {
    if (claim.to.as == ours || !map.is_wan(claim.source)) return {};
    return {Status::refused, fmt::format("it says that it begins on {}, the WAN of AS {}: that leads into the AS only",
                                         words_of(claim.source), ours)};
  }
  if (claim.to.as != ours)
    return {Status::refused, fmt::format("from AS {} to AS {}: nothing passes through AS {}", claim.source.as, claim.to.as, ours)};
  const auto lets_in = [&](const RouterRecord&, const DeviceRecord& dev) {
    return dev.subnet.as == ours && serves(dev, claim.source.as);
  };
  if (any_device(map, lets_in)) return {};
  return {Status::no_route, fmt::format("it says that it is of AS {}, which no WAN device of AS {} serves", claim.source.as, ours)};
}

}  // namespace

ClaimFault check_claim(const Claim& claim, const DeviceRecord& in, uint64_t own, const RouterMap& map) {
  if (claim.crossed == 0 && claim.source != in.subnet)
    return {Status::refused, fmt::format("it says that it begins in {}, but no router is crossed and this is subnet {}: correct as "
                                         "and subnet of its device",
                                         words_of(claim.source), words_of(in.subnet))};
  if (in.wan) return fault_over_wan(claim, in);
  return claim.crossed == 0 ? ClaimFault{} : fault_inside(claim, in, own, map);
}

}  // namespace ccixfer::routing
