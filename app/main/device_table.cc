#include "app/main/device_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/units.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::program {
namespace {

// Whether an RDMA device carries this address; of none, whether there is any.
bool has_card(const std::string& ip) {
  const std::vector<verbs::DeviceInfo> cards = verbs::devices_of_host();
  return std::any_of(cards.begin(), cards.end(), [&](const verbs::DeviceInfo& card) {
    return ip.empty() || std::find(card.addresses.begin(), card.addresses.end(), ip) != card.addresses.end();
  });
}

}  // namespace

std::vector<report::DeviceLine> describe_devices(const Config& config, const std::vector<Interface>& interfaces) {
  const std::vector<DeviceConfig> devices = devices_of(config, interfaces);
  const auto chosen = choose_device(devices, std::nullopt, interfaces);
  std::vector<report::DeviceLine> lines;
  for (const DeviceConfig& device : devices) {
    const Interface* interface = find_interface(device, interfaces);
    report::DeviceLine line;
    line.name = device.name;
    line.transport = device.transport;
    line.interface = interface == nullptr ? device.interface : interface->name;
    const std::string address = address_of_device(device, interfaces).value_or("");
    line.address = address;
    if (device.port != 0) line.address += fmt::format(":{}", device.port);
    if (device.transport == "shm") {
      line.address = device.shm_name;
      line.state = "up";
    } else if (device.transport == "verbs" && !verbs::is_built_in()) {
      line.state = "built without verbs";
    } else if (device.transport == "verbs" && !has_card(address)) {
      line.state = "no RDMA device";
    } else if (interface == nullptr) {
      line.state = device.ip.empty() && device.interface.empty() ? "up" : "absent";
    } else {
      line.state = interface->up ? "up" : "down";
    }
    line.rate_bits_per_s = rate_of_device(device, interfaces);
    if (device.subnet) line.subnet = fmt::format("{}:{}", device.subnet->as, device.subnet->subnet);
    line.is_default = chosen && (*chosen)->name == device.name;
    line.priority = device.priority;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> device_table(const std::vector<report::DeviceLine>& devices) {
  std::vector<std::array<std::string, 8>> rows{
      {"DEVICE", "TRANSPORT", "INTERFACE", "ADDRESS", "RATE", "SUBNET", "PRIORITY", "STATE"}};
  for (const report::DeviceLine& device : devices) {
    const std::string rate = device.rate_bits_per_s == 0 ? "?" : format_link_rate(device.rate_bits_per_s);
    rows.push_back({printable(device.name) + (device.is_default ? "*" : ""), device.transport, printable(device.interface),
                    device.address, rate, device.subnet.empty() ? "-" : device.subnet, fmt::format("{}", device.priority),
                    device.state});
  }
  std::array<size_t, 8> widths{};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<report::TransportLine> describe_missing(const std::vector<Missing>& missing) {
  std::vector<report::TransportLine> lines;
  lines.reserve(missing.size());
  for (const Missing& each : missing) lines.push_back({each.transport, each.usable, each.what, each.remedy});
  return lines;
}

std::vector<std::string> missing_lines(const std::vector<report::TransportLine>& missing) {
  std::vector<std::string> lines;
  if (!missing.empty()) lines.emplace_back();  // the table ends at an empty line
  for (const report::TransportLine& each : missing) {
    lines.push_back(fmt::format("{} {}: {}: {}", each.transport, each.usable ? "is limited" : "cannot be used",
                                printable(each.missing), printable(each.remedy)));
  }
  return lines;
}

}  // namespace ccixfer::program
