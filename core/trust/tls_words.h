// Why OpenSSL ended a handshake, as an Error for people.
#pragma once
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::trust {

// From OpenSSL's queue of errors. A certificate or a proof that failed is authentication, an alert of the peer that says so too;
// everything else is protocol.
[[nodiscard]] Error handshake_error();
[[nodiscard]] Error no_tls_of_ours(std::string_view why);

}  // namespace ccixfer::trust
