#include "transports/tcp/tcp_uri.h"

#include <fmt/core.h>

#include <charconv>

#include "core/base/units.h"

namespace ccixfer::tcp {
namespace {

constexpr std::string_view scheme = "tcp://";
constexpr size_t host_bytes_max = 255;

tl::unexpected<Error> malformed(std::string_view uri, std::string_view why) {
  return fail(ErrorKind::usage, fmt::format("'{}': {}; expected tcp://HOST:PORT", printable(uri.substr(0, 300)), why));
}

}  // namespace

Result<TcpName> parse_tcp_uri(std::string_view uri) {
  std::string_view rest = uri;
  if (!rest.starts_with(scheme)) return malformed(uri, "not a tcp URI");
  rest.remove_prefix(scheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view host;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return malformed(uri, "no closing bracket");
    host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (host.find(':') == std::string_view::npos) return malformed(uri, "brackets are for IPv6 addresses");
  } else {
    host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(host.size());
  }
  if (host.empty() || host.size() > host_bytes_max) return malformed(uri, "no host");
  if (host.find_first_of("/?#@ \t") != std::string_view::npos || host.find('\0') != std::string_view::npos) {
    return malformed(uri, "no character of a host name");
  }
  if (!rest.starts_with(':')) return malformed(uri, "no port");
  rest.remove_prefix(1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (rest.empty() || error != std::errc{} || end != rest.data() + rest.size() || port == 0)
    return malformed(uri, "no port from 1 to 65535");
  return TcpName{std::string(host), port};
}

std::string format_tcp_uri(std::string_view host, uint16_t port) {
  if (host.find(':') != std::string_view::npos) return fmt::format("{}[{}]:{}", scheme, host, port);
  return fmt::format("{}{}:{}", scheme, host, port);
}

}  // namespace ccixfer::tcp
