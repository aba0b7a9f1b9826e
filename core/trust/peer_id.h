// The name of an identity: the SHA-256 of its public key (SubjectPublicKeyInfo, DER). As text it is `cx1-` and 52 letters of
// base32 (RFC 4648, lower case, no padding) in 13 groups of four, for reading aloud: cx1-abcd-efgh-...
// Source: core/trust/README.md 'Identities'.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace ccixfer::trust {

struct PeerId {
  std::array<uint8_t, 32> sha256{};
  friend auto operator<=>(const PeerId&, const PeerId&) = default;
};

[[nodiscard]] PeerId peer_id_of(Bytes public_key_der);
[[nodiscard]] std::string to_string(const PeerId& id);
// Takes upper case too, and any or no hyphens between the groups. usage: it is no id; the message says what is wrong with it.
[[nodiscard]] Result<PeerId> parse_peer_id(std::string_view text);

}  // namespace ccixfer::trust
