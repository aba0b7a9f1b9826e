#include "transports/tcp/socket.h"

#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "core/base/hash.h"
#include "transports/tcp/tcp_net.h"
#include "transports/tcp/tcp_uri.h"

namespace ccixfer::tcp {

std::string error_words(int error_number) { return std::generic_category().message(error_number); }

Status status_of_connect_errno(int error_number) {
  switch (error_number) {
    case ECONNREFUSED:
      return Status::refused;
    case ETIMEDOUT:
      return Status::timed_out;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EACCES:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case EAFNOSUPPORT:
      return Status::unreachable;
    default:
      return Status::disconnected;
  }
}

void set_stream_options(int fd) {
  const int on = 1;
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

namespace {

constexpr std::string_view unspaced = "reno";  // every Linux has it, for everybody

std::string congestion_control(int fd) {
  std::array<char, 16> name{};  // TCP_CA_NAME_MAX
  socklen_t size = name.size() - 1;
  return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0 ? std::string(name.data()) : std::string();
}

bool set_congestion_control(int fd, std::string_view name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

}  // namespace

void space_packets(int fd) {
  if (congestion_control(fd) != unspaced) return;  // the system has no other, or the route has one of its own
  const Descriptor fresh(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  static_cast<void>(set_congestion_control(fd, congestion_control(fresh.get())));
}

Descriptor open_socket(int family, const std::string& interface_name) {
  Descriptor fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd && congestion_control(fd.get()).starts_with("bbr")) static_cast<void>(set_congestion_control(fd.get(), unspaced));
  if (fd && !interface_name.empty() &&
      setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface_name.c_str(), static_cast<socklen_t>(interface_name.size())) !=
          0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

Result<Descriptor> open_listener(const std::string& name, uint16_t port, const std::string& interface_name, int backlog) {
  // getaddrinfo would take the star for a name, and give the loopback address.
  const std::string host = name != "*" ? name : open_socket(AF_INET6, {}) ? "::" : "0.0.0.0";
  Address address;
  if (!numeric_address(host, port, address)) {
    const Resolver::Answer found = resolve_now(host, port);
    if (found.addresses.empty()) return fail(ErrorKind::usage, fmt::format("cannot listen on '{}': {}", host, found.reason));
    address = found.addresses.front();
  }
  const auto cannot = [&](int error) {
    return fail(ErrorKind::network, fmt::format("cannot listen on {}: {}", format_tcp_uri(host, port), error_words(error)));
  };
  Descriptor fd = open_socket(address.storage.ss_family, interface_name);
  if (!fd) return cannot(errno);
  const int on = 1;
  const int off = 0;
  static_cast<void>(setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  if (address.storage.ss_family == AF_INET6) static_cast<void>(setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) return cannot(errno);
  if (listen(fd.get(), backlog) != 0) return cannot(errno);
  return fd;
}

Address local_address(int fd) {
  Address address;
  address.size = sizeof address.storage;
  static_cast<void>(getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size));  // else nobody's
  return address;
}

bool peer_is_this_host(int fd) {
  Address peer;
  peer.size = sizeof peer.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) return false;
  const std::string host = host_of(peer);
  return host == host_of(local_address(fd)) || host.starts_with("127.") || host == "::1";
}

wire::HostIdentity this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  timespec wall{}, since{};
  if (!std::getline(file, boot) || clock_gettime(CLOCK_REALTIME, &wall) != 0 || clock_gettime(CLOCK_BOOTTIME, &since) != 0)
    return {};
  const auto ms = [](const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1'000'000;
  };
  return {xxh3_64(as_bytes(boot)), ms(wall) - ms(since)};
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

}  // namespace ccixfer::tcp
