#include "transports/udp/multicast.h"

#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/units.h"
#include "transports/datagram/limits.h"
#include "transports/inet/uri.h"
#include "transports/udp/pieces.h"

namespace ccixfer::udp {
namespace {

constexpr uint32_t v4_headers_bytes = 20 + 8;  // of IP and UDP
constexpr uint32_t v6_headers_bytes = 40 + 8;
constexpr uint32_t usual_mtu_bytes = 1500;

template <typename T>
bool set(int fd, int level, int name, const T& value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

tl::unexpected<Error> cannot_join(const inet::Address& group, int error) {
  return fail(ErrorKind::network,
              fmt::format("cannot join the group {}: {}", inet::format_uri("udp", inet::host_of(group), inet::port_of(group)),
                          inet::error_words(error)));
}

bool send_by(int fd, int family, uint32_t interface_index) {
  if (family != AF_INET) return set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, interface_index);
  ip_mreqn by{};
  by.imr_ifindex = static_cast<int>(interface_index);
  return set(fd, IPPROTO_IP, IP_MULTICAST_IF, by);
}

// False also where the host does not say.
bool is_loopback(uint32_t interface_index) {
  ifreq request{};
  const host::Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (interface_index == 0 || !fd || if_indextoname(interface_index, request.ifr_name) == nullptr) return false;
  return ioctl(fd.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK) != 0;
}

// Whether the way to a group is the loopback, and its MTU. nullopt: there is no way.
struct Figures {
  bool is_loopback = false;
  uint32_t mtu_bytes = 0;
};
std::optional<Figures> figures_of(const inet::Address& group, uint32_t interface_index) {
  const int family = group.storage.ss_family;
  const host::Descriptor fd(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || (interface_index != 0 && !send_by(fd.get(), family, interface_index))) return std::nullopt;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&group.storage), group.size) != 0) return std::nullopt;
  int mtu = 0;
  socklen_t size = sizeof mtu;
  const bool is_v4_group = family == AF_INET;
  const int told = is_v4_group ? getsockopt(fd.get(), IPPROTO_IP, IP_MTU, &mtu, &size)
                               : getsockopt(fd.get(), IPPROTO_IPV6, IPV6_MTU, &mtu, &size);
  if (told != 0 || mtu <= 0) return std::nullopt;
  return Figures{is_loopback(interface_index), static_cast<uint32_t>(mtu)};
}

// As the system has it in IPv6: the same group.
void unmap(inet::Address& group) {
  const datagram::Address address = address_of(group.storage);
  if (group.storage.ss_family != AF_INET6 || !is_v4(address)) return;
  inet::Address v4;
  if (to_socket_address(address, AF_INET, v4)) group = v4;
}

}  // namespace

bool is_group(const datagram::Address& address) {
  if (is_v4(address)) return (address.low >> 28 & 0xf) == 0xe;
  return address.high >> 56 == 0xff;
}

Result<inet::Address> parse_group(std::string_view uri) {
  const Result<inet::HostName> name = inet::parse_uri("udp", uri);
  if (!name) return tl::unexpected<Error>(name.error());
  inet::Address group;
  if (!inet::numeric_address(name->host, name->port, group) || !is_group(address_of(group.storage))) {
    return fail(ErrorKind::usage, fmt::format("'{}': not a group: those are 224.0.0.0 to 239.255.255.255, and ff00::/8",
                                              printable(uri.substr(0, 300))));
  }
  unmap(group);
  return group;
}

uint32_t scope_of(const inet::Address& group) {
  if (group.storage.ss_family != AF_INET6) return 0;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &group.storage, sizeof v6);
  return v6.sin6_scope_id;
}

bool is_of_one_link(const inet::Address& group) {
  if (group.storage.ss_family != AF_INET6) return false;
  const uint64_t scope = address_of(group.storage).high >> 48 & 0xf;  // RFC 4291, 2.7
  return scope == 1 || scope == 2;
}

Result<uint32_t> group_interface(const inet::Address& bound, const std::string& interface_name) {
  if (!interface_name.empty()) {
    const uint32_t index = if_nametoindex(interface_name.c_str());
    if (index == 0) return fail(ErrorKind::network, fmt::format("no interface {}", interface_name));
    return index;
  }
  if (inet::is_wildcard(bound)) return uint32_t{0};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(ErrorKind::network, fmt::format("no interfaces: {}", inet::error_words(errno)));
  uint32_t index = 0;
  for (const ifaddrs* entry = list; entry != nullptr && index == 0; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != bound.storage.ss_family) continue;
    inet::Address address;
    std::memcpy(&address.storage, entry->ifa_addr,
                entry->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const datagram::Address its = address_of(address.storage);
    const datagram::Address ours = address_of(bound.storage);
    if (its.high == ours.high && its.low == ours.low && its.scope == ours.scope) index = if_nametoindex(entry->ifa_name);
  }
  freeifaddrs(list);
  if (index == 0) return fail(ErrorKind::network, fmt::format("no interface has the address {}", inet::host_of(bound)));
  return index;
}

uint32_t group_datagram_bytes(const inet::Address& group, uint32_t interface_index) {
  const uint32_t headers = group.storage.ss_family == AF_INET ? v4_headers_bytes : v6_headers_bytes;
  const std::optional<Figures> figures = figures_of(group, interface_index);
  if (figures && figures->is_loopback) return datagram::datagram_bytes_max;
  const uint32_t mtu = figures ? std::min(figures->mtu_bytes, usual_mtu_bytes) : usual_mtu_bytes;
  return mtu > headers ? mtu - headers : 0;
}

void take_no_foreign_groups(int fd, int family) {
  static_cast<void>(set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0));
  if (family == AF_INET6) static_cast<void>(set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0));
}

Result<void> send_to_groups(int fd, int family, uint32_t interface_index, int hops) {
  bool done = false;
  if (family == AF_INET) {
    done = send_by(fd, family, interface_index) && set(fd, IPPROTO_IP, IP_MULTICAST_TTL, hops) &&
           set(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
  } else {
    done = send_by(fd, family, interface_index) && set(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops) &&
           set(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
  }
  if (done) return {};
  return fail(ErrorKind::network, fmt::format("cannot send to groups: {}", inet::error_words(errno)));
}

// Bound to the group's own address, so that the kernel gives it nothing else of that port.
Result<host::Descriptor> join(const inet::Address& group, uint32_t interface_index, const std::string& interface_name) {
  const int family = group.storage.ss_family;
  host::Descriptor fd(socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return cannot_join(group, errno);
  if (!interface_name.empty() && setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface_name.c_str(),
                                            static_cast<socklen_t>(interface_name.size())) != 0) {
    return cannot_join(group, errno);
  }
  // The kernel looks at the group alone of IPv6: who has joined it elsewhere on this host would bring us what comes there.
  if (interface_name.empty() && interface_index != 0 &&
      !set(fd.get(), SOL_SOCKET, SO_BINDTOIFINDEX, static_cast<int>(interface_index)))
    return cannot_join(group, errno);
  if (!set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1)) return cannot_join(group, errno);
  take_no_foreign_groups(fd.get(), family);
  inet::Address place = group;
  bool joined = false;
  if (family == AF_INET6) {
    static_cast<void>(set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1));
    sockaddr_in6 v6{};
    std::memcpy(&v6, &place.storage, sizeof v6);
    if (v6.sin6_scope_id == 0) v6.sin6_scope_id = interface_index;  // a group of one link is bound on that link
    std::memcpy(&place.storage, &v6, sizeof v6);
    const ipv6_mreq member{v6.sin6_addr, interface_index};
    joined = set(fd.get(), IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, member);
  } else {
    sockaddr_in v4{};
    std::memcpy(&v4, &place.storage, sizeof v4);
    ip_mreqn member{};
    member.imr_multiaddr = v4.sin_addr;
    member.imr_ifindex = static_cast<int>(interface_index);
    joined = set(fd.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, member);
  }
  if (!joined || bind(fd.get(), reinterpret_cast<const sockaddr*>(&place.storage), place.size) != 0)
    return cannot_join(group, errno);
  return fd;
}

}  // namespace ccixfer::udp
