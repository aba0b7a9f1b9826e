#include "transports/inet/uri.h"

#include <fmt/core.h>

#include <charconv>

#include "core/base/units.h"

namespace ccixfer::inet {
namespace {

constexpr size_t host_bytes_max = 255;

tl::unexpected<Error> malformed_uri(std::string_view scheme, std::string_view uri, std::string_view why) {
  return fail(ErrorKind::usage, fmt::format("'{}': {}; expected {}://HOST:PORT", printable(uri.substr(0, 300)), why, scheme));
}

}  // namespace

Result<HostName> parse_uri(std::string_view scheme, std::string_view uri) {
  const auto malformed = [&](std::string_view why) { return malformed_uri(scheme, uri, why); };
  std::string_view rest = uri;
  if (!rest.starts_with(scheme) || !rest.substr(scheme.size()).starts_with("://")) return malformed("of another network");
  rest.remove_prefix(scheme.size() + 3);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view host;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return malformed("no closing bracket");
    host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (host.find(':') == std::string_view::npos) return malformed("brackets are for IPv6 addresses");
  } else {
    host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(host.size());
  }
  if (host.empty() || host.size() > host_bytes_max) return malformed("no host");
  if (host.find_first_of("/?#@ \t") != std::string_view::npos || host.find('\0') != std::string_view::npos) {
    return malformed("no character of a host name");
  }
  if (!rest.starts_with(':')) return malformed("no port");
  rest.remove_prefix(1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (rest.empty() || error != std::errc{} || end != rest.data() + rest.size() || port == 0)
    return malformed("no port from 1 to 65535");
  return HostName{std::string(host), port};
}

std::string format_uri(std::string_view scheme, std::string_view host, uint16_t port) {
  if (host.find(':') != std::string_view::npos) return fmt::format("{}://[{}]:{}", scheme, host, port);
  return fmt::format("{}://{}:{}", scheme, host, port);
}

}  // namespace ccixfer::inet
