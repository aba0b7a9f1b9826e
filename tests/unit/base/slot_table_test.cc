// Names of slots: a name of an entry that is gone finds nothing, and is not used again.
#include "core/base/slot_table.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <utility>

using namespace ccixfer;

TEST_CASE("next_generation__after_the_last_comes_one__never_zero") {
  REQUIRE(next_generation(0) == 1);
  REQUIRE(next_generation(1) == 2);
  REQUIRE(next_generation(UINT32_MAX - 1) == UINT32_MAX);
  REQUIRE(next_generation(UINT32_MAX) == 1);
  REQUIRE(next_generation(6, 7) == 7);
  REQUIRE(next_generation(7, 7) == 1);
}

TEST_CASE("slot_vector__a_released_slot__is_taken_next_and_as_it_was_left") {
  SlotVector<std::string> slots;
  REQUIRE(slots.take() == 0);
  REQUIRE(slots.take() == 1);
  REQUIRE(slots.take() == 2);
  slots[0] = "first";
  slots[1] = "second";
  REQUIRE(slots.in_use() == 3);
  slots.release(0);
  slots.release(1);
  REQUIRE(slots.in_use() == 1);
  REQUIRE(slots.size() == 3);
  REQUIRE(slots.take() == 1);  // released last
  REQUIRE(slots[1] == "second");
  REQUIRE(slots.take() == 0);
  REQUIRE(slots[0] == "first");
  REQUIRE(slots.slot_of(slots[2]) == 2);
  REQUIRE(slots.take() == 3);
  REQUIRE(slots.in_use() == 4);
}

TEST_CASE("slot_name__packed_and_unpacked__is_the_same") {
  const SlotName name = SlotName::of(SlotName{7, 9}.packed());
  REQUIRE(name.index == 7);
  REQUIRE(name.generation == 9);
  REQUIRE(SlotName{7, 9}.packed() == (uint64_t{9} << 32 | 7));
  REQUIRE(SlotName{}.packed() == 0);
}

TEST_CASE("named_slots__a_name_of_an_entry_that_was_released__finds_nothing") {
  NamedSlots<std::string> slots;
  REQUIRE(slots.find({}) == nullptr);
  const SlotName first = slots.take();
  REQUIRE(first.index == 0);
  REQUIRE(first.generation == 1);
  *slots.find(first) = "left";
  REQUIRE(slots.find({0, 0}) == nullptr);
  REQUIRE(slots.find({0, 2}) == nullptr);
  REQUIRE(slots.find({1, 1}) == nullptr);
  REQUIRE(slots.is_live(0));
  REQUIRE_FALSE(slots.is_live(1));
  slots.release(0);
  REQUIRE(slots.find(first) == nullptr);
  REQUIRE_FALSE(slots.is_live(0));
  REQUIRE(slots.in_use() == 0);
  REQUIRE(slots.size() == 1);
  const SlotName second = slots.take();
  REQUIRE(second.index == 0);
  REQUIRE(second.generation == 2);
  REQUIRE(slots.find(first) == nullptr);
  REQUIRE(*slots.find(second) == "left");  // as in a SlotVector
  REQUIRE(slots.name_of(0).generation == 2);
}

TEST_CASE("named_slots__a_name_was_ended__its_slot_is_not_taken_before_release") {
  NamedSlots<int> slots;
  const SlotName first = slots.take();
  slots[0] = 5;
  slots.end_name(0);
  REQUIRE(slots.find(first) == nullptr);
  REQUIRE(slots.in_use() == 1);
  REQUIRE(slots[0] == 5);
  REQUIRE(slots.name_of(0).generation == first.generation);
  REQUIRE(slots.take().index == 1);
  slots.release(0);
  const SlotName next = slots.take();
  REQUIRE(next.index == 0);
  REQUIRE(next.generation == 2);
}

TEST_CASE("named_slots__with_a_largest_generation__begins_again_after_it") {
  NamedSlots<int, 3> slots;
  for (const uint32_t expected : {1u, 2u, 3u, 1u, 2u}) {
    const SlotName name = slots.take();
    REQUIRE(name.generation == expected);
    slots.release(name.index);
  }
}

TEST_CASE("slot_table__a_name_of_an_entry_that_was_removed__finds_nothing") {
  SlotTable<int> table;
  REQUIRE(table.find(0, 0) == nullptr);
  const auto first = table.add();
  REQUIRE(first.index == 0);
  REQUIRE(first.generation == 1);
  *table.find(first) = 7;
  REQUIRE(*table.at(0) == 7);
  REQUIRE(table.at(1) == nullptr);
  REQUIRE(table.find(0, 0) == nullptr);
  REQUIRE(table.find(0, 2) == nullptr);
  REQUIRE(table.find(1, 1) == nullptr);
  table.remove(0);
  REQUIRE(table.size() == 0);
  REQUIRE(table.find(first) == nullptr);
  REQUIRE(table.at(0) == nullptr);
  const auto second = table.add();
  REQUIRE(second.index == 0);
  REQUIRE(second.generation == 2);
  REQUIRE(table.find(first) == nullptr);
  REQUIRE(*table.find(second) == 0);  // a new one
}

TEST_CASE("slot_table__with_a_largest_generation__begins_again_after_it") {
  SlotTable<int> table(3);
  for (const uint32_t expected : {1u, 2u, 3u, 1u, 2u}) {
    const auto name = table.add();
    REQUIRE(name.generation == expected);
    table.remove(name.index);
  }
}

TEST_CASE("slot_table__random_changes__the_same_as_a_map") {
  using Key = std::pair<uint32_t, uint32_t>;
  std::mt19937_64 random(5);
  SlotTable<uint64_t> table;
  std::map<Key, uint64_t> model;
  std::vector<Key> gone;
  std::map<Key, const uint64_t*> addresses;
  for (uint64_t step = 0; step < 20000; ++step) {
    if (model.empty() || random() % 2 == 0) {
      const auto name = table.add();
      *table.find(name) = step;
      REQUIRE(model.emplace(Key{name.index, name.generation}, step).second);
      addresses[{name.index, name.generation}] = table.find(name);
    } else {
      const auto victim = std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
      table.remove(victim->first.first);
      gone.push_back(victim->first);
      model.erase(victim);
    }
    REQUIRE(table.size() == model.size());
    if (step % 500 != 0) continue;
    for (const auto& [key, value] : model) {
      REQUIRE(table.find(key.first, key.second) == addresses.at(key));
      REQUIRE(*table.at(key.first) == value);
    }
    for (const Key& key : gone) REQUIRE(table.find(key.first, key.second) == nullptr);
    std::vector<uint64_t> seen;
    table.for_each([&seen](const uint64_t& value) { seen.push_back(value); });
    std::vector<uint64_t> expected;
    for (const auto& [key, value] : model) expected.push_back(value);
    REQUIRE(seen == expected);
  }
}

TEST_CASE("slot_table__for_each__may_remove_the_one_it_has_and_add") {
  SlotTable<int> table;
  for (int i = 0; i < 10; ++i) *table.find(table.add()) = i;
  int visited = 0;
  table.for_each([&](const int& value) {
    ++visited;
    const int number = value;
    if (number % 2 == 0) table.remove(static_cast<uint32_t>(number));
    if (number == 9) *table.find(table.add()) = 100;  // into slot 8, behind us
  });
  REQUIRE(visited == 10);
  REQUIRE(table.size() == 6);
  REQUIRE(*table.at(8) == 100);
}
