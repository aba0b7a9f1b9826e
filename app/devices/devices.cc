#include "app/devices/devices.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>

#include "core/base/units.h"
#include "transports/eth/name.h"

namespace ccixfer::program {
namespace {

uint64_t rate_of_interface(const std::string& name) {
  std::ifstream file("/sys/class/net/" + name + "/speed");
  int64_t megabits = 0;
  if (!(file >> megabits) || megabits <= 0 || megabits > 100'000'000) return 0;  // -1: the driver does not know
  return static_cast<uint64_t>(megabits) * 1'000'000;
}

std::string mac_of(const ifaddrs& item) {
  sockaddr_ll link{};
  std::memcpy(&link, item.ifa_addr, sizeof link);
  eth::Mac mac;
  if (link.sll_hatype != ARPHRD_ETHER || link.sll_halen != mac.size()) return {};
  std::copy_n(link.sll_addr, mac.size(), mac.begin());
  return eth::format_mac(mac);
}

}  // namespace

const Interface* find_interface(const DeviceConfig& device, const std::vector<Interface>& interfaces) {
  for (const Interface& interface : interfaces) {
    if (!device.interface.empty() && interface.name == device.interface) return &interface;
    const bool has = std::find(interface.addresses.begin(), interface.addresses.end(), device.ip) != interface.addresses.end();
    if (!device.ip.empty() && has) return &interface;
  }
  return nullptr;
}

std::vector<Interface> interfaces_of_host() {
  std::vector<Interface> interfaces = addresses_of_host();
  for (Interface& interface : interfaces) interface.rate_bits_per_s = rate_of_interface(interface.name);
  return interfaces;
}

std::vector<Interface> addresses_of_host() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::map<std::string, Interface> by_name;
  std::vector<std::pair<std::string, std::string>> v6;
  for (const ifaddrs* item = first; item != nullptr; item = item->ifa_next) {
    Interface& interface = by_name[item->ifa_name];
    interface.name = item->ifa_name;
    interface.up = (item->ifa_flags & IFF_UP) != 0 && (item->ifa_flags & IFF_RUNNING) != 0;
    interface.loopback = (item->ifa_flags & IFF_LOOPBACK) != 0;
    if (item->ifa_addr == nullptr) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (item->ifa_addr->sa_family == AF_PACKET) {
      interface.mac = mac_of(*item);
    } else if (item->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(item->ifa_addr);
      if (inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr)
        interface.addresses.emplace_back(text.data());
    } else if (item->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(item->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;  // needs a scope: no address for a peer
      if (inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size()) != nullptr)
        v6.emplace_back(item->ifa_name, text.data());
    }
  }
  for (const auto& [name, address] : v6) by_name[name].addresses.push_back(address);
  std::vector<Interface> interfaces;
  interfaces.reserve(by_name.size());
  for (auto& [name, interface] : by_name) interfaces.push_back(std::move(interface));
  return interfaces;
}

std::optional<bool> address_works(const std::string& ip, const std::vector<Interface>& interfaces) {
  std::optional<bool> found;
  for (const Interface& interface : interfaces) {
    const bool has_ip = std::find(interface.addresses.begin(), interface.addresses.end(), ip) != interface.addresses.end();
    if (!has_ip && (interface.mac.empty() || interface.mac != ip)) continue;
    found = found.value_or(false) || interface.up;
  }
  return found;
}

bool AddressWatch::works(const std::vector<Interface>& interfaces) {
  if (interfaces.empty()) return worked_;  // every host has some: it cannot say now
  const std::optional<bool> found = address_works(ip_, interfaces);
  seen_ = seen_ || found.has_value();
  return worked_ = found.value_or(!seen_);
}

std::vector<DeviceConfig> devices_of(const Config& config, const std::vector<Interface>& interfaces, std::string_view transport) {
  if (!config.devices.empty()) return config.devices;
  std::vector<DeviceConfig> devices;
  for (const Interface& interface : interfaces) {
    if (!interface.up || (transport == "eth" ? interface.mac.empty() : interface.addresses.empty())) continue;
    DeviceConfig device;
    if (!transport.empty()) device.transport = transport;
    device.name = device.interface = interface.name;
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<const DeviceConfig*> choose_device(const std::vector<DeviceConfig>& devices, const std::optional<std::string>& name,
                                          const std::vector<Interface>& interfaces) {
  if (devices.empty())
    return fail(ErrorKind::usage, "no device: this host has no interface with an address: configure a [device.NAME]");
  if (name) {
    for (const DeviceConfig& device : devices) {
      if (device.name == *name) return &device;
    }
    return fail(ErrorKind::usage, fmt::format("no such device: {}: see ccixfer devices", printable(*name)));
  }
  const auto rank = [&](const DeviceConfig& device) {
    const Interface* interface = find_interface(device, interfaces);
    const bool real = interface == nullptr || !interface->loopback;
    return std::tuple(device.is_default, device.priority, real, rate_of_device(device, interfaces));
  };
  const DeviceConfig* best = &devices.front();
  for (const DeviceConfig& device : devices) {
    if (rank(device) > rank(*best)) best = &device;
  }
  return best;
}

Result<std::string> address_of_device(const DeviceConfig& device, const std::vector<Interface>& interfaces) {
  if (!device.ip.empty()) return device.ip;
  if (device.interface.empty()) return std::string();
  const Interface* interface = find_interface(device, interfaces);
  if (interface == nullptr) {
    return fail(ErrorKind::usage,
                fmt::format("no such interface: {} of device {}: see ccixfer devices", printable(device.interface), device.name));
  }
  if (device.transport == "eth") return interface->mac;
  if (interface->addresses.empty()) {
    return fail(ErrorKind::usage,
                fmt::format("interface without an address: {} of device {}: give it one, or ip = in the configuration",
                            printable(device.interface), device.name));
  }
  return interface->addresses.front();
}

uint64_t rate_of_device(const DeviceConfig& device, const std::vector<Interface>& interfaces) {
  if (device.rate_bits_per_s) return *device.rate_bits_per_s;
  const Interface* interface = find_interface(device, interfaces);
  return interface == nullptr ? 0 : interface->rate_bits_per_s;
}

}  // namespace ccixfer::program
