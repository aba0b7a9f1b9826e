// Tables whose entries are named by the number of their slot. A slot that is released is the next that is taken: its memory is
// likely to be in the cache, and a table is never larger than it had to be at once. Single-threaded. Taking and releasing are O(1).
//
// SlotVector: entries that stay in their slots when they are released and are used again as they were left, so that what they
// have allocated is used again too. References end when the vector grows.
// NamedSlots: a SlotVector whose entries have a SlotName: an index and a generation. A slot that is used again has the next
// generation, so that the name of an entry that was released finds nothing.
// SlotTable: entries that live from add() to remove(), each at one address, with names as in NamedSlots.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/invariant.h"

namespace ccixfer {

// 0 is nobody's generation, so that a name of zeros finds nothing.
[[nodiscard]] constexpr uint32_t next_generation(uint32_t generation, uint32_t generation_max = UINT32_MAX) {
  return generation >= generation_max ? 1 : generation + 1;
}

template <typename T>
class SlotVector {
 public:
  [[nodiscard]] uint32_t take() {
    if (free_.empty()) {
      slots_.emplace_back();
      return static_cast<uint32_t>(slots_.size() - 1);
    }
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void release(uint32_t slot) {
    invariant(slot < slots_.size(), "slot < slots_.size()");
    free_.push_back(slot);
  }
  [[nodiscard]] T& operator[](size_t slot) { return slots_[slot]; }
  [[nodiscard]] const T& operator[](size_t slot) const { return slots_[slot]; }
  [[nodiscard]] uint32_t slot_of(const T& entry) const { return static_cast<uint32_t>(&entry - slots_.data()); }
  [[nodiscard]] size_t size() const { return slots_.size(); }  // of all slots, in use or not
  [[nodiscard]] size_t in_use() const { return slots_.size() - free_.size(); }
  void reserve(size_t slots) { slots_.reserve(slots); }
  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }

 private:
  std::vector<T> slots_;
  std::vector<uint32_t> free_;
};

// No live entry has a name of zeros.
struct SlotName {
  uint32_t index = 0;
  uint32_t generation = 0;
  [[nodiscard]] constexpr uint64_t packed() const { return uint64_t{generation} << 32 | index; }
  [[nodiscard]] static constexpr SlotName of(uint64_t packed) {
    return {static_cast<uint32_t>(packed), static_cast<uint32_t>(packed >> 32)};
  }
};

template <typename T, uint32_t generation_max = UINT32_MAX>
class NamedSlots {
 public:
  [[nodiscard]] SlotName take() {
    const uint32_t index = slots_.take();
    Slot& slot = slots_[index];
    slot.generation = next_generation(slot.generation, generation_max);
    slot.live = true;
    return {index, slot.generation};
  }
  void release(uint32_t index) {
    slots_[index].live = false;
    slots_.release(index);
  }
  // Its name finds nothing from now on, but the slot is not taken before it is released.
  void end_name(uint32_t index) { slots_[index].live = false; }
  // nullptr: it was released, or its name was ended, or it never was.
  [[nodiscard]] T* find(SlotName name) {
    return is_live(name.index) && slots_[name.index].generation == name.generation ? &slots_[name.index].entry : nullptr;
  }
  [[nodiscard]] const T* find(SlotName name) const { return const_cast<NamedSlots*>(this)->find(name); }
  // The one that is in this slot, or was there last.
  [[nodiscard]] T& operator[](size_t index) { return slots_[index].entry; }
  [[nodiscard]] const T& operator[](size_t index) const { return slots_[index].entry; }
  [[nodiscard]] SlotName name_of(uint32_t index) const { return {index, slots_[index].generation}; }
  [[nodiscard]] bool is_live(uint32_t index) const { return index < slots_.size() && slots_[index].live; }
  [[nodiscard]] size_t size() const { return slots_.size(); }  // of all slots, in use or not
  [[nodiscard]] size_t in_use() const { return slots_.in_use(); }

 private:
  struct Slot {
    T entry{};
    uint32_t generation = 0;
    bool live = false;
  };
  SlotVector<Slot> slots_;
};

template <typename T>
class SlotTable {
 public:
  using Name = SlotName;
  explicit SlotTable(uint32_t generation_max = UINT32_MAX) : generation_max_(generation_max) {}

  [[nodiscard]] Name add() {
    const uint32_t index = slots_.take();
    Slot& slot = slots_[index];
    slot.generation = next_generation(slot.generation, generation_max_);
    slot.entry = std::make_unique<T>();
    return {index, slot.generation};
  }
  void remove(uint32_t index) {
    invariant(at(index) != nullptr, "at(index) != nullptr");
    slots_[index].entry.reset();
    slots_.release(index);
  }
  // nullptr: it was removed, or never was.
  [[nodiscard]] T* find(uint32_t index, uint32_t generation) const {
    return index < slots_.size() && slots_[index].generation == generation ? slots_[index].entry.get() : nullptr;
  }
  [[nodiscard]] T* find(Name name) const { return find(name.index, name.generation); }
  // The one that is in this slot now. nullptr: none.
  [[nodiscard]] T* at(uint32_t index) const { return index < slots_.size() ? slots_[index].entry.get() : nullptr; }
  [[nodiscard]] size_t size() const { return slots_.in_use(); }
  // In the order of the slots. `each` may add entries and remove the one that it was given.
  template <typename Each>
  void for_each(const Each& each) const {
    for (uint32_t index = 0; index < slots_.size(); ++index) {
      if (T* entry = slots_[index].entry.get()) each(*entry);
    }
  }

 private:
  struct Slot {
    std::unique_ptr<T> entry;
    uint32_t generation = 0;
  };
  SlotVector<Slot> slots_;
  uint32_t generation_max_;
};

}  // namespace ccixfer
