// HMAC-SHA256 with a key of any length, for the .cc files of this room: derive.h and ticket.h have keys with a type.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/trust/derive.h"

namespace ccixfer::trust {

[[nodiscard]] Mac hmac_sha256(std::span<const uint8_t> key, Bytes data);

}  // namespace ccixfer::trust
