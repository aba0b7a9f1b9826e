// What became of the operations that are no longer bound in a mailbox, so that a late duplicate is acknowledged again and never
// placed in a later epoch. Remembers the operations of the head's and of the last published epoch, and at least
// history_operations_min, never more than history_operations_max. For what it forgot it keeps, by source, the highest operation
// number: numbers of one source grow, so an older one that comes without an expected epoch is taken for a late duplicate.
// Bounds: history_operations_max, history_sources_max.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "core/rvma/operation.h"

namespace ccixfer::rvma {

inline constexpr size_t history_operations_min = 32;
inline constexpr size_t history_operations_max = 8192;
inline constexpr size_t history_sources_max = 64;

enum class Outcome : uint8_t { unknown, placed, aborted, forgotten };

class History {
 public:
  void add(const OperationKey& key, uint64_t epoch, bool placed);
  void forget(uint64_t head_epoch);  // what neither the head's nor the last published epoch needs
  // forgotten: not remembered, and older than something that was forgotten.
  [[nodiscard]] Outcome find(const OperationKey& key) const;
  [[nodiscard]] size_t size() const { return order_.size(); }

 private:
  struct Entry {
    OperationKey key;
    uint64_t epoch = 0;
    bool placed = false;
  };
  struct Forgotten {
    uint64_t source = 0;
    uint64_t highest = 0;
  };
  [[nodiscard]] const Entry* lookup(const OperationKey& key) const;
  void drop_oldest();

  std::deque<Entry> order_;                                           // oldest first
  std::unordered_map<OperationKey, Entry*, OperationKeyHash> index_;  // only past history_operations_min: a scan is enough before
  std::vector<Forgotten> forgotten_;                                  // oldest source first
};

}  // namespace ccixfer::rvma
