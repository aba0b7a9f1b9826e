// SCHEME://HOST:PORT, as tcp://HOST:PORT and udp://HOST:PORT, with IPv6 addresses in brackets.
// Errors: usage, with what is wrong; a port is 1 to 65535.
#pragma once
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::inet {

struct HostName {
  std::string host;  // without brackets
  uint16_t port = 0;
};

[[nodiscard]] Result<HostName> parse_uri(std::string_view scheme, std::string_view uri);
[[nodiscard]] std::string format_uri(std::string_view scheme, std::string_view host,
                                     uint16_t port);  // brackets where the host has colons

}  // namespace ccixfer::inet
