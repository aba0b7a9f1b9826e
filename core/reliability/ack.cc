#include "core/reliability/ack.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::reliability {

bool Ack::contains(uint64_t number) const {
  return std::any_of(ranges().begin(), ranges().end(),
                     [&](const Range& range) { return range.first <= number && number <= range.last; });
}

void encode(wire::Writer& out, const Ack& ack, size_t bytes_max) {
  CHECK(ack.count > 0 && bytes_max >= ack_bytes(1));
  const auto count = static_cast<uint8_t>(std::min<size_t>(ack.count, 1 + (bytes_max - ack_bytes(1)) / 8));
  out.u64(ack.largest());
  out.u32(static_cast<uint32_t>(std::min<int64_t>(ack.delay / std::chrono::microseconds(1), UINT32_MAX)));
  out.u8(count);
  out.u32(static_cast<uint32_t>(ack.list[0].last - ack.list[0].first));
  for (uint8_t i = 1; i < count; ++i) {
    out.u32(static_cast<uint32_t>(ack.list[i - 1u].first - ack.list[i].last - 1));
    out.u32(static_cast<uint32_t>(ack.list[i].last - ack.list[i].first));
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
