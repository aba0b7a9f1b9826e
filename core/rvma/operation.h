// One put at the target, while it is bound to a buffer: which of its bytes are placed, which are being placed, by range. The
// state of a fragment is asked by its range, so that a put sent again may be split in another way than the first time.
//
//   state    | begin            | end, complete | end, broken
//   absent   | -> placing       | our bug       | our bug
//   placing  | refused: busy    | -> placed     | -> absent
//   placed   | acked, not placed| our bug       | our bug
//
// Bounds: ranges_per_operation_max. Source: core/rvma/README.md (retransmitted and duplicated fragments).
#pragma once
#include <cstdint>
#include <vector>

#include "core/rvma/interval_set.h"

namespace ccixfer::rvma {

inline constexpr size_t ranges_per_operation_max = 4096;

enum class FragmentState : uint8_t { absent, placing, placed };

struct OperationKey {
  uint64_t source = 0;
  uint64_t operation = 0;
  uint64_t address = 0;  // the mailbox number that the put was sent to: in a catch-all, puts to several meet
  friend bool operator==(const OperationKey&, const OperationKey&) = default;
};

struct OperationKeyHash {
  size_t operator()(const OperationKey& key) const {
    uint64_t mixed = (key.source ^ (key.operation * 0x9e3779b97f4a7c15ull) ^ (key.address << 7)) * 0xbf58476d1ce4e5b9ull;
    return static_cast<size_t>(mixed ^ (mixed >> 31));
  }
};

class Operation {
 public:
  // The extent as its initiator names it. It may lie elsewhere in the buffer (`shift_bytes`, modulo 2^64: receiver-managed).
  Operation(uint64_t base_bytes, uint64_t total_bytes, uint64_t shift_bytes = 0, uint64_t connection = 0, bool told_epoch = false)
      : base_bytes_(base_bytes),
        total_bytes_(total_bytes),
        shift_bytes_(shift_bytes),
        connection_(connection),
        told_epoch_(told_epoch) {}

  // placing: any byte of it is being placed. placed: all of it is. absent: else, also when a part was placed before.
  [[nodiscard]] FragmentState state(uint64_t begin, uint64_t end) const;
  [[nodiscard]] bool full() const;                                          // no room to keep book of another fragment
  void begin(uint64_t begin, uint64_t end);                                 // CHECKs: absent
  [[nodiscard]] uint64_t end(uint64_t begin, uint64_t end, bool complete);  // CHECKs: begun; returns bytes newly placed

  [[nodiscard]] bool same_extent(uint64_t base_bytes, uint64_t total_bytes) const {
    return base_bytes == base_bytes_ && total_bytes == total_bytes_;
  }
  [[nodiscard]] uint64_t base_bytes() const { return base_bytes_; }
  [[nodiscard]] uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] uint64_t shift_bytes() const { return shift_bytes_; }
  [[nodiscard]] uint64_t connection() const { return connection_; }  // of its first fragment: whose quota it uses
  [[nodiscard]] bool told_epoch() const { return told_epoch_; }
  [[nodiscard]] bool whole() const { return placed_bytes_ == total_bytes_; }
  [[nodiscard]] bool untouched() const { return placed_bytes_ == 0 && placing_.empty(); }
  [[nodiscard]] bool being_placed() const { return !placing_.empty(); }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  uint64_t base_bytes_;
  uint64_t total_bytes_;
  uint64_t shift_bytes_;
  uint64_t connection_;
  bool told_epoch_;
  uint64_t placed_bytes_ = 0;
  IntervalSet placed_;          // not kept for a put of one fragment
  std::vector<Range> placing_;  // few: fragments of one put in flight at once
};

}  // namespace ccixfer::rvma
