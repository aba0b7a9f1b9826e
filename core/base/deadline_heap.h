// A transport's deadlines: a binary heap with one entry a connection, so that 10,000 idle ones cost nothing per turn.
// Setting is O(log n); connections are named by their slot.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace ccixfer {

class DeadlineHeap {
 public:
  // `never` removes.
  void set(uint32_t slot, Instant at);
  [[nodiscard]] Instant get(uint32_t slot) const;
  [[nodiscard]] Instant earliest() const { return heap_.empty() ? never : heap_.front().at; }
  [[nodiscard]] uint32_t earliest_slot() const { return heap_.front().slot; }  // only if earliest() is not never
  [[nodiscard]] size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    Instant at;
    uint32_t slot;
  };
  static constexpr uint32_t absent = UINT32_MAX;
  void place(size_t position, Entry entry);
  void up(size_t position);
  void down(size_t position);

  std::vector<Entry> heap_;
  std::vector<uint32_t> position_of_;  // by slot
};

}  // namespace ccixfer
