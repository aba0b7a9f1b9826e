// An acknowledgement: which packet numbers came, newest first, as ranges. Fields: largest u64, delay_us u32 (how long the ack was
// kept back), count u8 (ranges, 1..ack_ranges_max), then the first range's length - 1 as u32, then for each further range the
// numbers missing above it (u32, at least 1) and its length - 1 (u32). Of a range that is longer than 2^32 the newest numbers go
// out and nothing below them, and nothing below a longer gap: what was sent that long ago is not waited for. The decoder takes a
// peer's bytes: nullopt for what is malformed (a range below 0, a gap of nothing, no range, too many).
#pragma once
#include <array>
#include <optional>
#include <span>

#include "core/base/time.h"
#include "core/wire/cursor.h"

namespace ccixfer::reliability {

inline constexpr uint8_t ack_ranges_max = 32;

struct Range {
  uint64_t first = 0;
  uint64_t last = 0;  // inclusive
  friend bool operator==(const Range&, const Range&) = default;
};

struct Ack {
  Duration delay{0};
  uint8_t count = 0;
  std::array<Range, ack_ranges_max> list{};  // descending, apart from one another

  [[nodiscard]] uint64_t largest() const { return list[0].last; }
  [[nodiscard]] std::span<const Range> ranges() const { return {list.data(), count}; }
  [[nodiscard]] bool contains(uint64_t number) const;
};

[[nodiscard]] constexpr size_t ack_bytes(uint8_t ranges) { return 8 + 4 + 1 + 4 + size_t{8} * (ranges - 1u); }
// The newest of the ranges that fit into `bytes_max` and into the fields; at least one must fit into `bytes_max`.
void encode(wire::Writer& out, const Ack& ack, size_t bytes_max);
[[nodiscard]] std::optional<Ack> decode_ack(wire::Reader& in);

}  // namespace ccixfer::reliability
