// The Ethernet interfaces of this host: which one an endpoint is to use, and what is true of it.
// Errors: usage: no such interface, none that is Ethernet, or several where one is meant. network: the system cannot say.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "transports/eth/name.h"

namespace ccixfer::eth {

struct Interface {
  std::string name;
  uint32_t index = 0;  // within its network namespace
  Mac mac{};
  bool is_ethernet = false;  // its frames have Ethernet's header, and it is not the loopback
  bool is_up = false;
};

[[nodiscard]] Result<std::vector<Interface>> interfaces();

// By name, where one is given, and else by MAC; with neither the only one that is up. All of `all` that can be meant must be one.
[[nodiscard]] Result<Interface> choose_interface(const std::vector<Interface>& all, std::string_view name,
                                                 const std::optional<Mac>& mac);

}  // namespace ccixfer::eth
