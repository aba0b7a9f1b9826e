#include "routing/router/device_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ccixfer::routing {
namespace {

// Of two new devices, which are those that come with an endpoint, none may be on the subnet of the
// other.
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

Result<void> check_device(const RouterDevice& device, std::span<const RouterDevice> others) {
  for (const RouterDevice& other : others) {
    if (device.subnet.as != other.subnet.as) {
      return fail(ErrorKind::usage,
                  fmt::format("device {}: AS {}, but device {} is of AS {}: a router belongs to one AS; between two "
                              "AS stand two routers with WAN devices",
                              device.name, device.subnet.as, other.name, other.subnet.as));
    }
    if (device.subnet == other.subnet) {
      return fail(ErrorKind::usage, fmt::format("device {}: another device is on subnet {}:{} already", device.name,
                                                device.subnet.as, device.subnet.subnet));
    }
  }
  if (device.endpoint == nullptr || !address_of(device.subnet, uri_of(device)))
    return fail(ErrorKind::usage, fmt::format("device {}: a router's device must listen", device.name));
  return {};
}

std::string uri_of(const RouterDevice& device) { return device.uri.empty() ? device.endpoint->uri() : device.uri; }

DeviceRecord described(const RouterDevice& device, const std::string& uri) {
  const uint64_t rate = device.rate_bits_per_s == 0 ? rate_unknown_bits_per_s : device.rate_bits_per_s;
  return {device.subnet, rate, device.capabilities, device.transit, device.wan, device.wan_to, uri, device.latency_ns};
}

bool record_fits(std::vector<DeviceRecord> devices) {
  for (DeviceRecord& device : devices) device.latency_ns = 1;
  std::vector<std::byte> bytes;
  return encode_record({1, 1, false, std::move(devices)}, bytes);
}

Result<std::vector<uint32_t>> match_settings(const std::vector<RouterDevice>& settings, const std::vector<RouterDevice>& devices) {
  std::vector<uint32_t> which;
  auto count = static_cast<uint32_t>(devices.size());
  for (const RouterDevice& setting : settings) {
    const auto at =
        std::find_if(devices.begin(), devices.end(), [&](const RouterDevice& device) { return device.name == setting.name; });
    if (at == devices.end()) {
      if (auto fits = check_device(setting, devices); !fits) return tl::unexpected<Error>(fits.error());
      which.push_back(count++);
      continue;
    }
    if (at->subnet != setting.subnet || at->scheme != setting.scheme) {
      return fail(ErrorKind::usage, fmt::format("device {} is on subnet {}:{} ({}): restart the router", setting.name,
                                                at->subnet.as, at->subnet.subnet, at->scheme));
    }
    which.push_back(static_cast<uint32_t>(at - devices.begin()));
  }
  if (auto fits = check_new(settings); !fits) return tl::unexpected<Error>(fits.error());
  if (count > devices_max) return fail(ErrorKind::usage, fmt::format("a router has at most {} devices", devices_max));
  for (uint32_t i = 0; i < devices.size(); ++i) {
    if (std::count(which.begin(), which.end(), i) != 1)
      return fail(ErrorKind::usage, fmt::format("device {} is missing: restart the router", devices[i].name));
  }
  std::vector<DeviceRecord> told;
  for (size_t i = 0; i < settings.size(); ++i) {
    const RouterDevice& with_address = which[i] < devices.size() ? devices[which[i]] : settings[i];
    told.push_back(described(settings[i], uri_of(with_address)));
  }
  if (!record_fits(std::move(told)))
    return fail(ErrorKind::usage, "the router's record is too long: fewer devices or fewer AS in wan_to");
  return which;
}

}  // namespace ccixfer::routing
