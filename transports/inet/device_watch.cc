#include "transports/inet/device_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "core/base/bytes.h"

namespace ccixfer::inet {

void DeviceWatch::open(const Address& bound) {
  if (is_wildcard(bound)) return;
  host_ = host_of(bound);
  family_ = bound.storage.ss_family;
  if (!present()) return;
  host::Descriptor told(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!told || bind(told.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) return;
  told_ = std::move(told);
}

bool DeviceWatch::present() const {
  const auto hosts = interface_hosts(family_, {});
  return hosts ? std::find(hosts->begin(), hosts->end(), host_) != hosts->end() : was_present_;
}

bool DeviceWatch::lost_now() {
  // What the messages say does not matter, nor that some may have been dropped: only that something changed.
  std::array<std::byte, 8192> message;
  while (recv(told_.get(), message.data(), message.size(), 0) > 0) {
  }
  const bool here = present();
  return std::exchange(was_present_, here) && !here;
}

}  // namespace ccixfer::inet
