// Reads PEM files of people: keys, certificates and revocation lists. Whatever else is in the file is passed over, so a file may
// hold a key and its certificates together; where the wanted thing is missing, the message says what is there instead. Errors:
// usage, one line that names `what` (the file). Nothing ever asks for a passphrase, and no message has key material. Bounds:
// pem_bytes_max a file, pem_blocks_max things in it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

inline constexpr size_t pem_bytes_max = 16u << 20;  // revocation lists are long
inline constexpr size_t pem_blocks_max = 1000;

// The one private key: PKCS #8 or the older forms of RSA and EC.
[[nodiscard]] Result<PkeyPtr> read_key(std::string_view pem, std::string_view what);
// At least one.
[[nodiscard]] Result<std::vector<X509Ptr>> read_certificates(std::string_view pem, std::string_view what);
[[nodiscard]] Result<std::vector<CrlPtr>> read_revocation_lists(std::string_view pem, std::string_view what);

}  // namespace ccixfer::trust
