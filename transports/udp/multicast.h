// Groups of IP multicast: their names, and what sockets need to send to them and to receive from them. Errors: usage (a name that
// is none of a group), network (the host cannot, with the system's words). Private to this room. Source: ip(7), ipv6(7), RFC 1112.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/host/descriptor.h"
#include "transports/datagram/datagram_net.h"
#include "transports/inet/address.h"

namespace ccixfer::udp {

[[nodiscard]] bool is_group(const datagram::Address& address);
[[nodiscard]] Result<inet::Address> parse_group(std::string_view uri);

// The interface on which an end takes part in groups, by its number; 0: the kernel chooses, by its route to the group.
[[nodiscard]] Result<uint32_t> group_interface(const inet::Address& bound, const std::string& interface_name);

// What one datagram to the group carries there, as the kernel's route says; 1,500 bytes of MTU where there is no route.
[[nodiscard]] uint32_t group_datagram_bytes(const inet::Address& group, uint32_t interface_index);
// The interface that a group's name says ("%eth0"); 0: none.
[[nodiscard]] uint32_t scope_of(const inet::Address& group);
// A group of one link, which has to be named where an end has no interface of its own.
[[nodiscard]] bool is_of_one_link(const inet::Address& group);

// From now on the socket takes no datagram of a group that it has not joined itself.
void take_no_foreign_groups(int fd, int family);
// What it sends to groups of this family leaves by that interface, crosses `hops - 1` routers at most, and comes back to this host.
[[nodiscard]] Result<void> send_to_groups(int fd, int family, uint32_t interface_index, int hops);
// A socket that has joined the group, and no other. Its receive buffer is as the system makes it.
[[nodiscard]] Result<host::Descriptor> join(const inet::Address& group, uint32_t interface_index,
                                            const std::string& interface_name);

}  // namespace ccixfer::udp
