// Keys and proofs from secrets, by OpenSSL: HKDF-SHA256 (RFC 5869) and HMAC-SHA256.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/bytes.h"
#include "core/trust/secret.h"

namespace ccixfer::trust {

using Mac = std::array<uint8_t, 32>;

// HKDF with an empty salt. `label` names the purpose, `context` what the key is for (numbers of a session, a lane, a direction).
// Both go into the info with their lengths (u16 and u32, little-endian), so that no two pairs give the same info. A label is at
// most 65,535 bytes.
[[nodiscard]] Secret derive(const Secret& from, std::string_view label, Bytes context);
[[nodiscard]] Mac mac(const Secret& key, Bytes data);
// Compares in a time that does not depend on the content.
[[nodiscard]] bool equal(const Mac& a, Bytes b);

// Fills memory with random bytes of OpenSSL's generator; a failure is a CHECK, since there is never one after boot.
void random_bytes(std::span<uint8_t> into);

}  // namespace ccixfer::trust
