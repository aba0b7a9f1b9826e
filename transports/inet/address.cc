#include "transports/inet/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <array>
#include <charconv>
#include <cstring>
#include <system_error>

namespace ccixfer::inet {

namespace {

// By its name or its number; 0: there is none.
uint32_t index_of_interface(const std::string& scope) {
  uint32_t index = 0;
  const auto [end, error] = std::from_chars(scope.data(), scope.data() + scope.size(), index);
  return error == std::errc{} && end == scope.data() + scope.size() ? index : if_nametoindex(scope.c_str());
}

}  // namespace

std::string error_words(int error_number) { return std::generic_category().message(error_number); }

bool numeric_address(const std::string& host, uint16_t port, Address& address) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    std::memcpy(&address.storage, &v4, sizeof v4);
    address.size = sizeof v4;
    return true;
  }
  if (host.find(':') == std::string::npos) return false;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  const size_t scope = host.find('%');
  if (inet_pton(AF_INET6, host.substr(0, scope).c_str(), &v6.sin6_addr) != 1) return false;
  if (scope != std::string::npos) {
    v6.sin6_scope_id = index_of_interface(host.substr(scope + 1));
    if (v6.sin6_scope_id == 0) return false;
  }
  std::memcpy(&address.storage, &v6, sizeof v6);
  address.size = sizeof v6;
  return true;
}

std::string host_of(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

uint16_t port_of(const Address& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return ntohs(v4.sin_port);
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof v6);
  return ntohs(v6.sin6_port);
}

Address local_address(int fd) {
  Address address;
  address.size = sizeof address.storage;
  static_cast<void>(getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size));  // else nobody's
  return address;
}

bool is_wildcard(const Address& address) {
  const std::string host = host_of(address);
  return host == "0.0.0.0" || host == "::";
}

std::optional<std::vector<std::string>> interface_hosts(int family, const std::string& interface_name) {
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (!interface_name.empty() && interface_name != entry->ifa_name) continue;
    Address address;
    if (entry->ifa_addr->sa_family == AF_INET) {
      std::memcpy(&address.storage, entry->ifa_addr, sizeof(sockaddr_in));
      v4.push_back(host_of(address));
    } else if (entry->ifa_addr->sa_family == AF_INET6 && family == AF_INET6) {
      sockaddr_in6 raw{};
      std::memcpy(&raw, entry->ifa_addr, sizeof raw);
      if (IN6_IS_ADDR_LINKLOCAL(&raw.sin6_addr)) continue;  // useless without a scope, which is the dialler's own matter
      std::memcpy(&address.storage, &raw, sizeof raw);
      v6.push_back(host_of(address));
    }
  }
  freeifaddrs(list);
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

std::vector<std::string> hosts_to_dial(const Address& bound, const std::string& interface_name) {
  if (!is_wildcard(bound)) return {host_of(bound)};
  std::vector<std::string> hosts = interface_hosts(bound.storage.ss_family, interface_name).value_or(std::vector<std::string>());
  if (hosts.empty()) hosts.push_back("127.0.0.1");
  return hosts;
}

}  // namespace ccixfer::inet
