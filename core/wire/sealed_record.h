// A sealed record: on a connection whose ends have proved who they are, frames travel in these and in no other way.
//   kind u8 = 18 | skipped u8 | text_bytes u16 | the text, encrypted | tag of 16 bytes
// The text is one or more whole frames. If the last of them is a chunk, its payload follows the record as it is. The number of a
// record is not sent: each direction counts its own. `skipped` says how many numbers before this one were used for records that
// never went out. The first two bytes are authenticated with the text. The length is too, since the tag covers it: the next record
// can so be begun before its length is known.
// The decoder takes a peer's bytes: nullopt for what is malformed. Source: core/wire/README.md 'Sealed records'.
#pragma once
#include <algorithm>
#include <optional>

#include "core/wire/frame.h"

namespace ccixfer::wire {

inline constexpr uint8_t sealed_record_kind = 18;  // no frame has it
static_assert(sealed_record_kind > kind_last);
inline constexpr size_t sealed_prefix_bytes = 4;
inline constexpr size_t sealed_associated_bytes = 2;  // of the prefix
inline constexpr size_t sealed_tag_bytes = 16;
inline constexpr size_t sealed_overhead_bytes = sealed_prefix_bytes + sealed_tag_bytes;
inline constexpr size_t sealed_text_bytes_min = frame_overhead_bytes;
inline constexpr size_t sealed_text_bytes_max = 12u << 10;  // the longest message, or what one turn answers

struct SealedPrefix {
  uint8_t skipped = 0;
  uint16_t text_bytes = 0;
  [[nodiscard]] size_t record_bytes() const { return sealed_overhead_bytes + text_bytes; }
};

// Into the first sealed_prefix_bytes of `record`.
inline void write_sealed_prefix(std::byte* record, const SealedPrefix& prefix) {
  store_little(record, sealed_record_kind);
  store_little(record + 1, prefix.skipped);
  store_little(record + 2, prefix.text_bytes);
}

// Of the first sealed_prefix_bytes of a record (`bytes` may hold more).
[[nodiscard]] inline std::optional<SealedPrefix> decode_sealed_prefix(Bytes bytes) {
  Reader in(bytes.first(std::min(bytes.size(), sealed_prefix_bytes)));
  const bool is_one = in.u8() == sealed_record_kind;
  SealedPrefix prefix;
  prefix.skipped = in.u8();
  prefix.text_bytes = in.u16();
  if (!in.done() || !is_one || prefix.text_bytes < sealed_text_bytes_min || prefix.text_bytes > sealed_text_bytes_max) {
    return std::nullopt;
  }
  return prefix;
}

}  // namespace ccixfer::wire
