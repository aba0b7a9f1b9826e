// Whether a Host header names this host as only who is on it does: an address of the loopback, or localhost, with or without a
// port. A request without the header is no browser's. Pure. Source: RFC 9110, 7.2; RFC 6761, 6.3.
#pragma once
#include <string_view>

namespace ccixfer::metrics {

[[nodiscard]] bool is_own_name(std::string_view host);

}  // namespace ccixfer::metrics
