#include "core/base/deadline_heap.h"

namespace ccixfer {

void DeadlineHeap::place(size_t position, Entry entry) {
  heap_[position] = entry;
  position_of_[entry.slot] = static_cast<uint32_t>(position);
}

void DeadlineHeap::up(size_t position) {
  const Entry entry = heap_[position];
  while (position > 0) {
    const size_t parent = (position - 1) / 2;
    if (heap_[parent].at <= entry.at) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, entry);
}

void DeadlineHeap::down(size_t position) {
  const Entry entry = heap_[position];
  for (;;) {
    size_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (entry.at <= heap_[child].at) break;
    place(position, heap_[child]);
    position = child;
  }
  place(position, entry);
}

void DeadlineHeap::set(uint32_t slot, Instant at) {
  if (slot >= position_of_.size()) position_of_.resize(size_t{slot} + 1, absent);
  const uint32_t position = position_of_[slot];
  if (position == absent) {
    if (at == never) return;
    heap_.push_back({at, slot});
    up(heap_.size() - 1);
    return;
  }
  if (at == never) {
    position_of_[slot] = absent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (position == heap_.size()) return;
    place(position, last);
  } else {
    heap_[position].at = at;
  }
  up(position);
  down(position_of_[heap_[position].slot]);
}

Instant DeadlineHeap::get(uint32_t slot) const {
  if (slot >= position_of_.size() || position_of_[slot] == absent) return never;
  return heap_[position_of_[slot]].at;
}

}  // namespace ccixfer
