// Signatures that outlive a connection: of a receipt, by the identity of whoever made it. What is signed is short (a digest), and
// begins with a constant of ours that names the purpose, so that no handshake's signature can stand for one.
// A signature carries the signer's public key, so whoever checks it needs nothing else to know by which key it was made. Who the
// key's owner is and whether he is believed is the caller's question, about the id. Errors: authentication, in one line, for
// whatever does not prove it. A stranger's bytes never do more. Bounds: public_key_bytes_max, signature_bytes_max.
#pragma once
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/trust/identity.h"

namespace ccixfer::trust {

inline constexpr size_t public_key_bytes_max = 4096;
inline constexpr size_t signature_bytes_max = 1024;

struct Signature {
  std::string public_key;  // SubjectPublicKeyInfo, DER
  std::string value;       // Ed25519, ECDSA or RSA PKCS #1 with SHA-256
};

[[nodiscard]] Signature sign(const Identity& identity, std::string_view purpose, Bytes data);
// Whose it is: the id of the key.
[[nodiscard]] Result<PeerId> check_signature(const Signature& signature, std::string_view purpose, Bytes data);

[[nodiscard]] std::string base64(std::string_view bytes);  // RFC 4648, with padding, in one line
[[nodiscard]] Result<std::string> from_base64(std::string_view text);

}  // namespace ccixfer::trust
