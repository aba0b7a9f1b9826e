// What became of the operations that are no longer bound in a mailbox, so that a late duplicate is acknowledged again and never
// placed in a later epoch. Remembers the operations of the head's and of the last published epoch, and at least
// history_operations_min, never more than history_operations_max, one by one. Of what it forgot so, a put that told its epoch needs
// no memory once its epoch is over; of all others the numbers are kept by source, as ranges: numbers that grow without gaps cost
// one range, whatever the order of arrival. Beyond history_ranges_max ranges the lowest are given up: what is not above them, and
// might be one of them, is taken for a late duplicate. Bounds: history_operations_max, history_sources_max, history_ranges_max.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/base/ring_buffer.h"
#include "core/ports/rma_target.h"
#include "core/rvma/interval_set.h"
#include "core/rvma/operation.h"

namespace ccixfer::rvma {

inline constexpr size_t history_operations_min = 32;
inline constexpr size_t history_operations_max = 8192;
inline constexpr size_t history_sources_max = 4096;
inline constexpr size_t history_ranges_max = 128;

enum class Outcome : uint8_t { unknown, placed, aborted, forgotten };
struct Past {
  Outcome outcome = Outcome::unknown;
  uint64_t epoch = ports::PutOperation::any_epoch;  // placed: where, while it is remembered one by one
};

class History {
 public:
  void add(const OperationKey& key, uint64_t epoch, bool told_epoch, bool placed);
  void forget(uint64_t head_epoch);  // what neither the head's nor the last published epoch needs
  // `epoch` is the one that the put tells, or any_epoch. Outcome::forgotten: nobody knows any more whether the put was placed, so
  // it is to be refused.
  [[nodiscard]] Past find(const OperationKey& key, uint64_t epoch) const;
  [[nodiscard]] size_t size() const { return order_.size(); }

 private:
  struct Entry {
    OperationKey key;
    uint64_t epoch = 0;
    bool told_epoch = false;
    bool placed = false;
  };
  struct Stream {  // one source's operations at one address
    uint64_t source = 0;
    uint64_t address = 0;
    friend bool operator==(const Stream&, const Stream&) = default;
  };
  struct StreamHash {
    size_t operator()(const Stream& s) const { return OperationKeyHash{}({s.source, 0, s.address}); }
  };
  struct Numbers {
    IntervalSet placed;
    IntervalSet aborted;
    uint64_t epoch = 0;           // the latest epoch of all these operations
    uint64_t given_up = 0;        // lower numbers may have been in the sets and are no longer
    uint64_t given_up_epoch = 0;  // the latest epoch that one of those can have had
  };
  [[nodiscard]] const Entry* lookup(const OperationKey& key) const;
  void drop_oldest(uint64_t head_epoch);

  RingBuffer<Entry> order_;  // oldest first
  uint64_t dropped_ = 0;     // from the front of order_, ever
  // By operation: its number among all that were ever added. Kept only past history_operations_min; below, a scan is enough.
  std::unordered_map<OperationKey, uint64_t, OperationKeyHash> index_;
  std::unordered_map<Stream, Numbers, StreamHash> numbers_;
  RingBuffer<Stream> streams_;  // oldest first
};

}  // namespace ccixfer::rvma
