#include "app/metrics/place.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "core/host/descriptor.h"

namespace ccixfer::metrics {
void remove_stale(const program::MetricsPlace& place) {
  struct stat status {};
  if (::lstat(place.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const host::Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool answers =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&place.address), place.size) == 0 || errno != ECONNREFUSED;
  if (!answers) ::unlink(place.path.c_str());
}

std::optional<SocketFile> file_at(const std::string& place) {
  struct stat status {};
  if (!place.starts_with(program::unix_prefix) || ::lstat(place.c_str() + program::unix_prefix.size(), &status) != 0)
    return std::nullopt;
  if (!S_ISSOCK(status.st_mode)) return std::nullopt;
  return SocketFile{status.st_dev, status.st_ino};
}

std::string name_of_place(int fd, const std::string& asked) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (asked.starts_with(program::unix_prefix) || ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return asked;
  const uint16_t port = address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                                     : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
  return fmt::format("{}:{}", asked.substr(0, asked.rfind(':')), ntohs(port));
}

}  // namespace ccixfer::metrics
