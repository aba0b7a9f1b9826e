// What a router's configuration may say of its devices: checks that change nothing.
// Errors: usage, with words for people.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "routing/map/record.h"
#include "routing/router/router.h"

namespace ccixfer::routing {

// Whether a device may stand beside others of the same router.
[[nodiscard]] Result<void> check_device(const RouterDevice& device, std::span<const RouterDevice> others);

// The URI under which others dial a device. The device has its endpoint.
[[nodiscard]] std::string uri_of(const RouterDevice& device);

// The device as the router's own record has it.
[[nodiscard]] DeviceRecord described(const RouterDevice& device, const std::string& uri);

// Whether a record of these devices is short enough to be told, whatever the latencies turn out to
// be. The AS that a device reaches do not count, because the record may leave them out.
[[nodiscard]] bool record_fits(std::vector<DeviceRecord> devices);

// Which device each of the new settings is about; new devices come behind the ones that there are.
// An error: a device is missing, has moved to another subnet, or clashes with another one.
[[nodiscard]] Result<std::vector<uint32_t>> match_settings(const std::vector<RouterDevice>& settings,
                                                           const std::vector<RouterDevice>& devices);

}  // namespace ccixfer::routing
