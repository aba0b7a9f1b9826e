// The heap of deadlines has the earliest in front after any changes.
#include "core/base/deadline_heap.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

using namespace ccixfer;

TEST_CASE("deadline_heap__random_changes__the_earliest_is_the_earliest") {
  std::mt19937_64 random(7);
  DeadlineHeap heap;
  std::map<uint32_t, Instant> model;
  for (int i = 0; i < 20000; ++i) {
    const auto slot = static_cast<uint32_t>(random() % 200);
    if (random() % 4 == 0) {
      heap.set(slot, never);
      model.erase(slot);
    } else {
      const Instant at{Duration{static_cast<int64_t>(random() % 1000)}};
      heap.set(slot, at);
      model[slot] = at;
    }
    REQUIRE(heap.size() == model.size());
    Instant earliest = never;
    for (const auto& [key, at] : model) earliest = std::min(earliest, at);
    REQUIRE(heap.earliest() == earliest);
    if (earliest != never) REQUIRE(model[heap.earliest_slot()] == earliest);
    REQUIRE(heap.get(slot) == (model.contains(slot) ? model[slot] : never));
  }
}
