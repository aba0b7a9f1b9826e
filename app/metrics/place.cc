#include "app/metrics/place.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/base/units.h"
#include "core/host/descriptor.h"

namespace ccixfer::metrics {
namespace {

tl::unexpected<Error> bad_place(const std::string& place) {
  return fail(ErrorKind::usage,
              fmt::format("bad value: metrics.listen: '{}': give an address of this host alone, as \"127.0.0.1:9464\" or "
                          "\"unix:/run/ccixfer/metrics.sock\"",
                          printable(place)));
}

}  // namespace

Result<Place> parse_place(const std::string& text) {
  Place place;
  if (text.starts_with(unix_prefix)) {
    auto& address = reinterpret_cast<sockaddr_un&>(place.address);
    place.path = text.substr(unix_prefix.size());
    if (place.path.empty() || place.path.front() != '/' || place.path.size() >= sizeof address.sun_path) return bad_place(text);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, place.path.c_str(), place.path.size() + 1);
    place.size = sizeof address;
    return place;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad_place(text);
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data() + colon + 1, end, port);
  if (problem != std::errc() || at != end) return bad_place(text);
  const std::string host = text.substr(0, colon);
  auto& four = reinterpret_cast<sockaddr_in&>(place.address);
  auto& six = reinterpret_cast<sockaddr_in6&>(place.address);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six.sin6_addr) != 1 ||
        !IN6_IS_ADDR_LOOPBACK(&six.sin6_addr))
      return bad_place(text);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    place.size = sizeof six;
    return place;
  }
  const bool is_address = ::inet_pton(AF_INET, (host == "localhost" ? "127.0.0.1" : host).c_str(), &four.sin_addr) == 1;
  if (!is_address || (ntohl(four.sin_addr.s_addr) >> 24) != 127) return bad_place(text);
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  place.size = sizeof four;
  return place;
}

void remove_stale(const Place& place) {
  struct stat status {};
  if (::lstat(place.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const host::Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool answers =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&place.address), place.size) == 0 || errno != ECONNREFUSED;
  if (!answers) ::unlink(place.path.c_str());
}

std::string name_of_place(int fd, const std::string& asked) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (asked.starts_with(unix_prefix) || ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return asked;
  const uint16_t port = address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                                     : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
  return fmt::format("{}:{}", asked.substr(0, asked.rfind(':')), ntohs(port));
}

}  // namespace ccixfer::metrics
