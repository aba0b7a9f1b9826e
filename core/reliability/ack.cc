#include "core/reliability/ack.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::reliability {

bool Ack::contains(uint64_t number) const {
  return std::any_of(ranges().begin(), ranges().end(),
                     [&](const Range& range) { return range.first <= number && number <= range.last; });
}

namespace {

uint64_t more_in(const Range& range) { return range.last - range.first; }
uint64_t missing_between(const Range& above, const Range& below) { return above.first - below.last - 1; }
uint32_t at_most_32_bits(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX)); }

}  // namespace

void encode(wire::Writer& out, const Ack& ack, size_t bytes_max) {
  CHECK(ack.count > 0 && bytes_max >= ack_bytes(1));
  const size_t room = std::min<size_t>(ack.count, 1 + (bytes_max - ack_bytes(1)) / 8);
  uint8_t count = 1;
  while (count < room && more_in(ack.list[count - 1u]) <= UINT32_MAX &&
         missing_between(ack.list[count - 1u], ack.list[count]) <= UINT32_MAX) {
    ++count;
  }
  out.u64(ack.largest());
  out.u32(static_cast<uint32_t>(std::min<int64_t>(ack.delay / std::chrono::microseconds(1), UINT32_MAX)));
  out.u8(count);
  out.u32(at_most_32_bits(more_in(ack.list[0])));
  for (uint8_t i = 1; i < count; ++i) {
    out.u32(at_most_32_bits(missing_between(ack.list[i - 1u], ack.list[i])));
    out.u32(at_most_32_bits(more_in(ack.list[i])));
  }
}

std::optional<Ack> decode_ack(wire::Reader& in) {
  Ack ack;
  const uint64_t largest = in.u64();
  ack.delay = std::chrono::microseconds(in.u32());
  ack.count = in.u8();
  in.require(ack.count > 0 && ack.count <= ack_ranges_max);
  if (!in.ok()) return std::nullopt;
  uint64_t last = largest;
  for (uint8_t i = 0; i < ack.count; ++i) {
    if (i > 0) {
      const uint64_t missing = in.u32();
      const uint64_t above = ack.list[i - 1u].first;
      in.require(missing > 0 && above >= missing + 1);
      last = above - missing - 1;
    }
    const uint64_t more = in.u32();
    in.require(more <= last);
    if (!in.ok()) return std::nullopt;
    ack.list[i] = {last - more, last};
  }
  return ack;
}

}  // namespace ccixfer::reliability
