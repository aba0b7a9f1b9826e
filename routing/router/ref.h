// What the context of an event names: an entry of one of the router's tables, and which of its two
// sides it is about.
#pragma once
#include <cstdint>

#include "core/base/slot_table.h"

namespace ccixfer::routing {

enum class Tag : uint8_t { none = 0, connection = 1, fragment = 2, link = 4, admin = 5 };
struct Ref {
  Tag tag = Tag::none;
  uint8_t side = 0;
  uint32_t generation = 0;  // 27 bits
  uint32_t index = 0;
  static constexpr uint32_t generation_max = (1u << 27) - 1;
  [[nodiscard]] uint64_t packed() const {
    return uint64_t{static_cast<uint8_t>(tag)} << 60 | uint64_t{side} << 59 | uint64_t{generation} << 32 | index;
  }
  static Ref of(uint64_t packed) {
    return {static_cast<Tag>(packed >> 60), static_cast<uint8_t>((packed >> 59) & 1),
            static_cast<uint32_t>(packed >> 32) & generation_max, static_cast<uint32_t>(packed)};
  }
};

// An entry of one of the router's tables knows its own name.
template <Tag tag>
struct NamedEntry {
  uint32_t index = 0, generation = 0;
  [[nodiscard]] SlotName name() const { return {index, generation}; }
  [[nodiscard]] uint64_t ref(uint8_t side = 0) const { return Ref{tag, side, generation, index}.packed(); }
};
template <typename T>
T& add_to(SlotTable<T>& table) {
  const auto name = table.add();
  T& entry = *table.find(name);
  entry.index = name.index;
  entry.generation = name.generation;
  return entry;
}
template <typename T>
T* find_in(const SlotTable<T>& table, uint64_t packed) {
  const Ref ref = Ref::of(packed);
  return table.find(ref.index, ref.generation);
}

}  // namespace ccixfer::routing
