// What a running router takes from a changed configuration without dropping a connection.
#include <fmt/format.h>

#include <algorithm>

#include "routing/router/router_impl.h"

namespace ccixfer::routing {

namespace {

// New devices beside one another: those that have an endpoint.
Result<void> check_new(const std::vector<RouterDevice>& settings) {
  for (size_t i = 0; i < settings.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const bool both = settings[i].endpoint != nullptr && settings[k].endpoint != nullptr;
      if (both && settings[i].subnet == settings[k].subnet)
        return fail(ErrorKind::usage, fmt::format("devices {} and {} are on one subnet", settings[k].name, settings[i].name));
    }
  }
  return {};
}

}  // namespace

Result<void> Router::Impl::reconfigure(const RouterOptions& anew, std::vector<RouterDevice> settings) {
  auto order = parse_metrics(anew.metric);
  if (!order) return tl::unexpected<Error>(order.error());
  std::vector<size_t> which;  // device of each of the settings; the new ones are behind the old ones
  size_t count = devices.size();
  for (const RouterDevice& setting : settings) {
    const auto at =
        std::find_if(devices.begin(), devices.end(), [&](const RouterDevice& device) { return device.name == setting.name; });
    if (at == devices.end()) {
      if (auto fits = check_device(setting, devices); !fits) return fits;
      which.push_back(count++);
      continue;
    }
    if (at->subnet != setting.subnet || at->scheme != setting.scheme) {
      return fail(ErrorKind::usage, fmt::format("device {} is on subnet {}:{} ({}): restart the router", setting.name,
                                                at->subnet.as, at->subnet.subnet, at->scheme));
    }
    which.push_back(static_cast<size_t>(at - devices.begin()));
  }
  if (auto fits = check_new(settings); !fits) return fits;
  if (count > devices_max) return fail(ErrorKind::usage, fmt::format("a router has at most {} devices", devices_max));
  for (size_t i = 0; i < devices.size(); ++i) {
    if (std::count(which.begin(), which.end(), i) != 1)
      return fail(ErrorKind::usage, fmt::format("device {} is missing: restart the router", devices[i].name));
  }
  std::vector<DeviceRecord> told;
  for (size_t i = 0; i < settings.size(); ++i) {
    const RouterDevice& with_address = which[i] < devices.size() ? devices[which[i]] : settings[i];
    told.push_back(described(settings[i], with_address.endpoint->uri()));
  }
  if (!record_fits(std::move(told)))
    return fail(ErrorKind::usage, "the router's record is too long: fewer devices or fewer AS in wan_to");
  metric = std::move(*order);
  options.metric = anew.metric;
  options.static_routes = anew.static_routes;
  options.rate_bytes_per_s = anew.rate_bytes_per_s;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (which[i] >= devices.size()) {
      std::vector<std::string> peers = std::move(settings[i].peers);
      devices.push_back(std::move(settings[i]));
      take_peers(static_cast<uint32_t>(devices.size() - 1), std::move(peers));
      continue;
    }
    RouterDevice& device = devices[which[i]];
    device.rate_bits_per_s = settings[i].rate_bits_per_s;
    device.capabilities = settings[i].capabilities;
    device.transit = settings[i].transit;
    device.wan = settings[i].wan;
    device.wan_to = std::move(settings[i].wan_to);
    if (!measures_latency()) device.latency_ns = 0;
    take_peers(static_cast<uint32_t>(which[i]), std::move(settings[i].peers));
  }
  next_probe = measures_latency() ? now : never;
  // Whom the devices no longer let in.
  links.for_each([&](Link& link) {
    if (link.phase != LinkPhase::open || !link.external) return;
    const auto& to = devices[link.device].wan_to;
    const bool served = devices[link.device].wan && (to.empty() || std::find(to.begin(), to.end(), link.as) != to.end());
    if (!served) end_link(link, true, "no longer served");
  });
  map_is_old = true;
  work = true;
  tell_anew();
  return {};
}

// A peer that is no longer named is no longer dialled; one that dials us stays.
void Router::Impl::take_peers(uint32_t device, std::vector<std::string> peers) {
  std::vector<uint64_t> dropped;
  std::erase_if(targets, [&](const Target& target) {
    if (target.device != device || std::find(peers.begin(), peers.end(), target.uri) != peers.end()) return false;
    dropped.push_back(target.link);
    return true;
  });
  for (const uint64_t packed : dropped) {
    const Ref ref = Ref::of(packed);
    Link* link = packed == 0 ? nullptr : links.find(ref.index, ref.generation);
    if (link != nullptr && link->dialled) end_link(*link, true, "no longer configured");
  }
  for (std::string& uri : peers) {
    const auto named = [&](const Target& target) { return target.device == device && target.uri == uri; };
    if (std::any_of(targets.begin(), targets.end(), named)) continue;
    Target target;
    target.device = device;
    target.uri = std::move(uri);
    target.tried = true;  // readiness was told long ago
    targets.push_back(std::move(target));
  }
  devices[device].peers.clear();
}

}  // namespace ccixfer::routing
