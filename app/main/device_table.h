// What `ccixfer devices` says of the devices of a configuration and a host.
#pragma once
#include <string>
#include <vector>

#include "app/devices/devices.h"
#include "app/devices/missing.h"
#include "app/report/events.h"

namespace ccixfer::program {

[[nodiscard]] std::vector<report::DeviceLine> describe_devices(const Config& config, const std::vector<Interface>& interfaces);
[[nodiscard]] std::vector<std::string> device_table(const std::vector<report::DeviceLine>& devices);  // for people, a line each

[[nodiscard]] std::vector<report::TransportLine> describe_missing(const std::vector<Missing>& missing);
[[nodiscard]] std::vector<std::string> missing_lines(
    const std::vector<report::TransportLine>& missing);  // for people, below the table

}  // namespace ccixfer::program
