// Which chunks of one operation are through, seen from either end: all below low(), and some of the chunks_window ones from
// there on. Half a KiB while chunks are missing in the middle, nothing otherwise.
#pragma once
#include <cstdint>
#include <vector>

#include "transports/datagram/limits.h"

namespace ccixfer::datagram {

class ChunkWindow {
 public:
  enum class Mark : uint8_t { fresh, duplicate, beyond };

  void open(uint64_t count) {
    count_ = count;
    low_ = 0;
    bits_ = {};
  }
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] uint64_t low() const { return low_; }
  [[nodiscard]] uint64_t end() const { return count_ - low_ < chunks_window ? count_ : low_ + chunks_window; }
  [[nodiscard]] bool complete() const { return low_ == count_; }
  [[nodiscard]] bool has(uint64_t index) const { return index < low_ || (index < end() && bit(index)); }

  Mark mark(uint64_t index) {
    if (index >= end()) return Mark::beyond;
    if (has(index)) return Mark::duplicate;
    if (index != low_) {
      if (bits_.empty()) bits_.resize(chunks_window / 64);
      word(index) |= mask(index);
      return Mark::fresh;
    }
    ++low_;
    while (low_ < count_ && bit(low_)) {
      word(low_) &= ~mask(low_);
      ++low_;
    }
    if (complete()) bits_ = {};
    return Mark::fresh;
  }

 private:
  [[nodiscard]] static uint64_t mask(uint64_t index) { return uint64_t{1} << (index % 64); }
  [[nodiscard]] uint64_t& word(uint64_t index) { return bits_[index % chunks_window / 64]; }
  [[nodiscard]] bool bit(uint64_t index) const { return !bits_.empty() && (bits_[index % chunks_window / 64] & mask(index)) != 0; }
  uint64_t count_ = 0;
  uint64_t low_ = 0;
  std::vector<uint64_t> bits_;
};

[[nodiscard]] constexpr uint64_t chunks_of(uint64_t total_bytes, uint32_t chunk_bytes) {
  return total_bytes / chunk_bytes + (total_bytes % chunk_bytes != 0 ? 1 : 0);
}
// The length of the chunk at `offset`; 0: no chunk begins there.
[[nodiscard]] constexpr uint64_t chunk_length(uint64_t total_bytes, uint64_t offset_bytes, uint32_t chunk_bytes) {
  if (offset_bytes >= total_bytes || offset_bytes % chunk_bytes != 0) return 0;
  return total_bytes - offset_bytes < chunk_bytes ? total_bytes - offset_bytes : chunk_bytes;
}

}  // namespace ccixfer::datagram
