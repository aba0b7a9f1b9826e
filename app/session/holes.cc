#include "app/session/holes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::session {

uint64_t HoleFinder::next_data(uint64_t offset_bytes) {
  constexpr uint64_t end_of_all = ~uint64_t{0};
  if (!asked_ || offset_bytes < asked_from_ || (offset_bytes >= end_ && begin_ != end_of_all)) {
    asked_ = true;
    asked_from_ = offset_bytes;
    const int error = files_.next_data(fd_, offset_bytes, begin_, end_);
    if (error == -ENXIO) {
      begin_ = end_ = end_of_all;
    } else if (error < 0) {
      begin_ = offset_bytes;
      end_ = end_of_all;
    }
  }
  return std::max(begin_, offset_bytes);
}

bool HoleFinder::is_hole(uint64_t offset_bytes, uint64_t bytes) {
  const uint64_t data_at = next_data(offset_bytes);
  return data_at >= offset_bytes && data_at - offset_bytes >= bytes;
}

Hash128 hash_of_zeros(uint64_t bytes) {
  CHECK(bytes <= piece_bytes);
  static const std::vector<std::byte> zeros(piece_bytes);
  static const Hash128 whole = xxh3_128(zeros);
  return bytes == piece_bytes ? whole : xxh3_128(Bytes(zeros).first(static_cast<size_t>(bytes)));
}

// Each byte is the one before, and the first is zero.
bool is_all_zeros(Bytes data) {
  return data.empty() || (data.front() == std::byte{0} && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

}  // namespace ccixfer::session
