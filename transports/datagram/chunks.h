// The chunks of one operation, and which of them are through, seen from either end: all below low(), and some of the chunks_window
// ones from there on. Half a KiB while chunks are missing in the middle, nothing otherwise. A chunk that became longer than what
// the path carries goes in parts of part_bytes; of the chunks of which some parts are through the window keeps which.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "transports/datagram/limits.h"

namespace ccixfer::datagram {

// A chunk, or a part of one.
struct Piece {
  uint64_t index = 0;
  uint32_t part = 0;  // from 1 on; 0: the whole chunk
  friend bool operator==(const Piece&, const Piece&) = default;
};

// Where an operation is cut: a chunk lies at a multiple of chunk_bytes, and a part at a multiple of part_bytes within it.
struct Grid {
  uint64_t total_bytes = 0;
  uint32_t chunk_bytes = 1;

  [[nodiscard]] uint64_t chunks() const { return total_bytes / chunk_bytes + (total_bytes % chunk_bytes != 0 ? 1 : 0); }
  [[nodiscard]] uint64_t offset(const Piece& piece) const {
    return piece.index * chunk_bytes + (piece.part == 0 ? 0 : (piece.part - 1) * part_bytes);
  }
  [[nodiscard]] uint64_t length(const Piece& piece) const {
    const uint64_t whole = std::min<uint64_t>(total_bytes - piece.index * chunk_bytes, chunk_bytes);
    return piece.part == 0 ? whole : std::min<uint64_t>(whole - (piece.part - 1) * part_bytes, part_bytes);
  }
  [[nodiscard]] uint32_t parts(uint64_t index) const { return parts_of(static_cast<uint32_t>(length({index, 0}))); }
  // nullopt: no piece begins there and has that length.
  [[nodiscard]] std::optional<Piece> piece(uint64_t offset_bytes, uint64_t size_bytes) const {
    if (offset_bytes >= total_bytes || size_bytes == 0) return std::nullopt;
    Piece found{offset_bytes / chunk_bytes, 0};
    const uint64_t within = offset_bytes % chunk_bytes;
    if (within == 0 && size_bytes == length(found)) return found;
    if (within % part_bytes != 0) return std::nullopt;
    found.part = static_cast<uint32_t>(within / part_bytes) + 1;
    return size_bytes == length(found) ? std::optional(found) : std::nullopt;
  }
  friend bool operator==(const Grid&, const Grid&) = default;
};

class ChunkWindow {
 public:
  enum class Mark : uint8_t { fresh, duplicate, beyond };

  void open(uint64_t count) {
    count_ = count;
    low_ = 0;
    bits_ = {};
    parts_.reset();
  }
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] uint64_t low() const { return low_; }
  [[nodiscard]] uint64_t end() const { return count_ - low_ < chunks_window ? count_ : low_ + chunks_window; }
  [[nodiscard]] bool complete() const { return low_ == count_; }
  [[nodiscard]] bool has(uint64_t index) const { return index < low_ || (index < end() && bit(index)); }

  [[nodiscard]] bool has(const Piece& piece) const {
    return has(piece.index) || (piece.part != 0 && parts_through(piece.index) & bit_of(piece));
  }
  // Some parts of it are through, and others are not.
  [[nodiscard]] bool is_in_parts(uint64_t index) const { return parts_through(index) != 0; }

  // `parts`: of its chunk.
  Mark mark(const Piece& piece, uint32_t parts) {
    if (piece.part == 0) return mark(piece.index);
    if (piece.index >= end()) return Mark::beyond;
    if (has(piece)) return Mark::duplicate;
    if (parts_ == nullptr) parts_ = std::make_unique<std::map<uint64_t, uint32_t>>();
    uint32_t& through = (*parts_)[piece.index];
    through |= bit_of(piece);
    return through == all_parts(parts) ? mark(piece.index) : Mark::fresh;
  }
  Mark mark(uint64_t index) {
    if (index >= end()) return Mark::beyond;
    if (has(index)) return Mark::duplicate;
    if (parts_ != nullptr) parts_->erase(index);
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
    if (complete()) {
      bits_ = {};
      parts_.reset();
    }
    return Mark::fresh;
  }

 private:
  [[nodiscard]] static uint32_t bit_of(const Piece& piece) { return 1u << (piece.part - 1); }
  [[nodiscard]] uint32_t parts_through(uint64_t index) const {
    if (parts_ == nullptr) return 0;
    const auto found = parts_->find(index);
    return found == parts_->end() ? 0 : found->second;
  }
  [[nodiscard]] static uint64_t mask(uint64_t index) { return uint64_t{1} << (index % 64); }
  [[nodiscard]] uint64_t& word(uint64_t index) { return bits_[index % chunks_window / 64]; }
  [[nodiscard]] bool bit(uint64_t index) const { return !bits_.empty() && (bits_[index % chunks_window / 64] & mask(index)) != 0; }
  uint64_t count_ = 0;
  uint64_t low_ = 0;
  std::vector<uint64_t> bits_;
  std::unique_ptr<std::map<uint64_t, uint32_t>> parts_;  // by chunk, within the window; from the first one on
};

}  // namespace ccixfer::datagram
