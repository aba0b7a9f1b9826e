#include "transports/tcp/socket.h"

#include <fcntl.h>
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
#include "transports/inet/resolver.h"
#include "transports/inet/uri.h"
#include "transports/tcp/tcp_net.h"

namespace ccixfer::tcp {

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

void leave_unspaced(int fd) {
  if (congestion_control(fd).starts_with("bbr")) static_cast<void>(set_congestion_control(fd, unspaced));
}

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

}  // namespace

void space_packets(int fd) {
  if (congestion_control(fd) != unspaced) return;  // the system has no other, or the route has one of its own
  const Descriptor fresh(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  static_cast<void>(set_congestion_control(fd, congestion_control(fresh.get())));
}

Descriptor open_socket(int family, const std::string& interface_name) {
  Descriptor fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) leave_unspaced(fd.get());
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
  const Result<Address> found = inet::listen_address(name, port);
  if (!found) return tl::unexpected<Error>(found.error());
  const Address& address = *found;
  const auto cannot = [&](int error) {
    return fail(ErrorKind::network, fmt::format("cannot listen on {}: {}", inet::format_uri("tcp", inet::host_of(address), port),
                                                inet::error_words(error)));
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

Result<Descriptor> take_listener(int fd) {
  const int family = option_of(fd, SO_DOMAIN);
  if ((family != AF_INET && family != AF_INET6) || option_of(fd, SO_PROTOCOL) != IPPROTO_TCP || option_of(fd, SO_ACCEPTCONN) != 1)
    return fail(ErrorKind::usage, "the socket that was passed does not listen at TCP: give its unit ListenStream= with a port");
  Descriptor own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own || fcntl(own.get(), F_SETFL, O_NONBLOCK) != 0)
    return fail(ErrorKind::network, fmt::format("cannot listen at the socket that was passed: {}", inet::error_words(errno)));
  leave_unspaced(own.get());
  return own;
}

bool peer_is_this_host(int fd) {
  Address peer;
  peer.size = sizeof peer.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) return false;
  const std::string host = inet::host_of(peer);
  return host == inet::host_of(inet::local_address(fd)) || host.starts_with("127.") || host == "::1";
}

uint64_t number_of_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  return std::getline(file, boot) ? xxh3_64(as_bytes(boot)) : 0;
}

wire::HostIdentity this_machine(uint64_t number) {
  timespec wall{}, since{};
  if (number == 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0 || clock_gettime(CLOCK_BOOTTIME, &since) != 0) return {};
  const auto ms = [](const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1'000'000;
  };
  return {number, ms(wall) - ms(since)};
}

}  // namespace ccixfer::tcp
