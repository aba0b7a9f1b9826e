// The envelope of a sealed message: kind u8 (255), channel u8 (0 session, 1 lane), length u16 (of what is sealed), number u64, then
// the sealed bytes, which are an encoded message (messages.h) whole, and a tag of 16 bytes. The first 12 bytes are authenticated.
// The number of a session message is its sequence; that of a lane message is its place in its connection, from 0.
// In: bytes of a peer, none of which is believed before its tag agrees.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "app/session/limits.h"
#include "core/base/bytes.h"
#include "core/trust/seal_key.h"

namespace ccixfer::session {

enum class SealedChannel : uint8_t { session = 0, lane = 1 };

inline constexpr size_t sealed_head_bytes = 12;

[[nodiscard]] bool is_sealed_message(Bytes bytes);  // by its first byte; nothing else was looked at

[[nodiscard]] std::vector<std::byte> seal_message(trust::SealKey& key, SealedChannel channel, uint64_t number, Bytes encoded);

struct SealedHead {
  SealedChannel channel = SealedChannel::session;
  uint64_t number = 0;
};
[[nodiscard]] std::optional<SealedHead> sealed_head(Bytes bytes);  // nullopt: malformed
// The encoded message; nullopt: it was changed, or is not of this key and number.
[[nodiscard]] std::optional<std::vector<std::byte>> open_message(trust::SealKey& key, Bytes bytes);

}  // namespace ccixfer::session
