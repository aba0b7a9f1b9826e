#include "transports/eth/interface.h"

#include <fmt/core.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "core/base/units.h"

namespace ccixfer::eth {

Result<std::vector<Interface>> interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return fail(ErrorKind::network,
                fmt::format("cannot list the interfaces of this host: {}", std::generic_category().message(errno)));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* item = first; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_PACKET) continue;
    sockaddr_ll link{};
    std::memcpy(&link, item->ifa_addr, sizeof link);
    Interface& each = all.emplace_back();
    each.name = item->ifa_name;
    each.index = static_cast<uint32_t>(link.sll_ifindex);
    each.is_up = (item->ifa_flags & IFF_UP) != 0;
    if (link.sll_hatype != ARPHRD_ETHER || link.sll_halen != each.mac.size()) continue;
    std::memcpy(each.mac.data(), link.sll_addr, each.mac.size());
    each.is_ethernet = is_unicast(each.mac);
  }
  return all;
}

Result<Interface> choose_interface(const std::vector<Interface>& all, std::string_view name, const std::optional<Mac>& mac) {
  std::vector<const Interface*> meant;
  for (const Interface& each : all) {
    const bool is_meant = !name.empty() ? each.name == name : each.is_ethernet && (mac ? each.mac == *mac : each.is_up);
    if (is_meant) meant.push_back(&each);
  }
  const std::string what = !name.empty() ? fmt::format("the name {}", printable(name))
                           : mac         ? fmt::format("the MAC address {}", format_mac(*mac))
                                         : std::string("Ethernet that is up");
  if (meant.empty()) return fail(ErrorKind::usage, fmt::format("no interface of this host has {}: see ccixfer devices", what));
  if (meant.size() > 1) {
    return fail(ErrorKind::usage,
                fmt::format("{} and {} both have {}: name one of them (--device, or interface in the configuration)",
                            meant[0]->name, meant[1]->name, what));
  }
  const Interface& chosen = *meant.front();
  if (!chosen.is_ethernet) {
    return fail(ErrorKind::usage, fmt::format("{} is no Ethernet interface: name one that is, or use tcp", printable(chosen.name)));
  }
  if (mac && chosen.mac != *mac) {
    return fail(ErrorKind::usage,
                fmt::format("{} has the MAC address {}, not {}", printable(chosen.name), format_mac(chosen.mac), format_mac(*mac)));
  }
  return chosen;
}

}  // namespace ccixfer::eth
