// Addresses of sockets, and those of this host. Errors: as each says; none aborts.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ccixfer::inet {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// A numeric IPv4 or IPv6 address; false: it is a name.
[[nodiscard]] bool numeric_address(const std::string& host, uint16_t port, Address& address);
[[nodiscard]] std::string host_of(const Address& address);
[[nodiscard]] uint16_t port_of(const Address& address);

[[nodiscard]] bool is_wildcard(const Address& address);
[[nodiscard]] Address local_address(int fd);
[[nodiscard]] std::string error_words(int error_number);
// Addresses of the interfaces that are up: those that are not loopback, of the given family (AF_INET6: both), IPv4 first. nullopt:
// the host cannot say now (out of descriptors).
[[nodiscard]] std::optional<std::vector<std::string>> interface_hosts(int family, const std::string& interface_name);
// The hosts under which a socket that listens on `bound` can be dialled: its address, or those of the interfaces where it listens
// on all; the loopback only if there is no other.
[[nodiscard]] std::vector<std::string> hosts_to_dial(const Address& bound, const std::string& interface_name);

}  // namespace ccixfer::inet
