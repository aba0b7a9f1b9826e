// Which keys we take, our own and a peer's: RSA of 2048 bits or more, EC on P-256, P-384 or P-521, Ed25519.
#pragma once
#include <string>

#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

// Empty: the key is good. Else what it is, for people: 'RSA of 1024 bits'.
[[nodiscard]] std::string why_key_is_refused(const EVP_PKEY* key);

}  // namespace ccixfer::trust
