// What this host offers: its interfaces, and the devices that the configuration makes of them.
// Without a configured device there is one of tcp for every interface that has an address.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "core/base/result.h"

namespace ccixfer::program {

struct Interface {
  std::string name;
  std::vector<std::string> addresses;  // IPv4 first; IPv6 without link-local ones
  bool up = false;
  bool loopback = false;
  uint64_t rate_bits_per_s = 0;  // of /sys/class/net/NAME/speed; 0: unknown
  std::string mac = {};          // of an Ethernet interface, such as 02:00:00:00:00:01; else ""
};

[[nodiscard]] std::vector<Interface> interfaces_of_host();
[[nodiscard]] std::vector<Interface> addresses_of_host();  // the same without their rates, which are slower to know
// Whether an interface that is up has this IP or MAC address; nullopt: no interface has it.
[[nodiscard]] std::optional<bool> address_works(const std::string& ip, const std::vector<Interface>& interfaces);

// Whether this host still has the address that a device listens on. One that no interface ever had is taken to work: 127.0.0.2
// does, and addresses that a route makes local.
class AddressWatch {
 public:
  explicit AddressWatch(std::string ip) : ip_(std::move(ip)) {}
  [[nodiscard]] bool works(const std::vector<Interface>& interfaces);

 private:
  std::string ip_;
  bool seen_ = false;
  bool worked_ = true;
};
// The configured devices, or those of the interfaces (their names are the interfaces').
// `transport`: of a device of an interface; "": tcp. One of eth needs no IP address.
[[nodiscard]] std::vector<DeviceConfig> devices_of(const Config& config, const std::vector<Interface>& interfaces,
                                                   std::string_view transport = {});
// By name; else the default one; else the highest priority, then the one that is not the loopback, then the fastest, then the
// first. usage: no such name, no device at all. nullptr never.
[[nodiscard]] Result<const DeviceConfig*> choose_device(const std::vector<DeviceConfig>& devices,
                                                        const std::optional<std::string>& name,
                                                        const std::vector<Interface>& interfaces);
// The address to listen on: of `ip`, or the first IP address of `interface`, and of a device of eth its MAC address; "" when it
// names neither. usage: no such interface, or it has
// no address.
[[nodiscard]] Result<std::string> address_of_device(const DeviceConfig& device, const std::vector<Interface>& interfaces);
[[nodiscard]] uint64_t rate_of_device(const DeviceConfig& device, const std::vector<Interface>& interfaces);  // bits/s; 0: unknown
// The one that a device names, or that has its address; nullptr: none, or it names neither.
[[nodiscard]] const Interface* find_interface(const DeviceConfig& device, const std::vector<Interface>& interfaces);

}  // namespace ccixfer::program
