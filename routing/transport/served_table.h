// Entries by name, with a timer each, and which of them have something to do: what the connections
// of a router and those of a routing transport have in common. T has `SlotName name()`, which its
// owner sets when it is added, and `bool is_active`, which is this table's.
// Single-threaded. Bounds: the caller's.
#pragma once
#include <utility>
#include <vector>

#include "core/base/deadline_heap.h"
#include "core/base/slot_table.h"

namespace ccixfer::routing {

template <typename T>
class ServedTable {
 public:
  explicit ServedTable(uint32_t generation_max = UINT32_MAX) : entries_(generation_max) {}

  [[nodiscard]] size_t size() const { return entries_.size(); }
  // nullptr: it is gone.
  [[nodiscard]] T* find(SlotName name) const { return entries_.find(name); }
  template <typename Each>
  void for_each(const Each& each) const {
    entries_.for_each(each);
  }

  // never: none.
  void set_timer(const T& entry, Instant when) { timers_.set(entry.name().index, when); }
  [[nodiscard]] Instant timer(const T& entry) const { return timers_.get(entry.name().index); }
  [[nodiscard]] Instant next_deadline() const { return timers_.earliest(); }
  // One whose timer has run down; it has none any more. nullptr: none.
  [[nodiscard]] T* take_due(Instant now) {
    if (timers_.earliest() > now) return nullptr;
    T* due = entries_.at(timers_.earliest_slot());
    set_timer(*due, never);
    return due;
  }

  // An entry that has something to do is in the list of the active ones once.
  void activate(T& entry) {
    if (!std::exchange(entry.is_active, true)) active_.push_back(entry.name());
  }
  [[nodiscard]] bool any_active() const { return !active_.empty(); }
  // `serve(entry)` for each that is not gone. What becomes active meanwhile is for the next call.
  template <typename Serve>
  void serve_active(const Serve& serve) {
    for (const SlotName name : std::exchange(active_, {})) {
      if (T* entry = find(name)) {
        entry->is_active = false;
        serve(*entry);
      }
    }
  }

 protected:
  [[nodiscard]] SlotTable<T>& entries() { return entries_; }
  void remove_entry(const T& entry) {
    set_timer(entry, never);
    entries_.remove(entry.name().index);
  }

 private:
  SlotTable<T> entries_;
  DeadlineHeap timers_;
  std::vector<SlotName> active_;
};

}  // namespace ccixfer::routing
