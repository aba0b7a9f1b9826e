// Wanted files that wait for a reader, first come first served. An entry may end while it waits,
// and its slot may then be another entry's: such a place in the queue is stale and passed over.
// Bounds: places of entries that ended are purged when the queue is twice as long as what can wait.
#pragma once
#include <cstdint>

#include "app/send/entry_table.h"
#include "app/session/limits.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::send {

class EntryQueue {
 public:
  explicit EntryQueue(EntryTable& entries) : entries_(entries) {}

  // The entry is in the phase `queued`.
  void push(const Entry& entry) {
    if (queue_.size() >= 2 * size_t{session::entries_outstanding_max}) {
      queue_.erase_if([this](const Place& place) { return is_stale(place); });
    }
    queue_.push_back({entries_.slot_of(entry), entry.index});
  }
  // The first one that still waits; nullptr: none.
  [[nodiscard]] Entry* front() {
    while (!queue_.empty() && is_stale(queue_.front())) queue_.drop_front();
    return queue_.empty() ? nullptr : &entries_.at(queue_.front().slot);
  }
  void pop() { queue_.drop_front(); }
  [[nodiscard]] size_t places() const { return queue_.size(); }  // stale ones too

 private:
  struct Place {
    uint32_t slot = 0;
    uint64_t index = 0;
  };
  [[nodiscard]] bool is_stale(const Place& place) const {
    const Entry& entry = entries_.at(place.slot);
    return entry.index != place.index || entry.phase != EntryPhase::queued;
  }

  EntryTable& entries_;
  RingBuffer<Place> queue_;
};

}  // namespace ccixfer::send
