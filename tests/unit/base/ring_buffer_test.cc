// The ring buffer is a deque, and lets go at once of what is taken from it.
#include "core/base/ring_buffer.h"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <random>

using namespace ccixfer;

TEST_CASE("ring_buffer__random_changes__the_same_as_a_deque") {
  std::mt19937_64 random(3);
  RingBuffer<int> ring;
  std::deque<int> model;
  for (int i = 0; i < 50000; ++i) {
    switch (random() % 8) {
      case 0:
      case 1:
        ring.push_back(i);
        model.push_back(i);
        break;
      case 2:
        REQUIRE(ring.emplace_back(i) == i);
        model.push_back(i);
        break;
      case 3:
        ring.push_front(i);
        model.push_front(i);
        break;
      case 4:
        if (model.empty()) break;
        REQUIRE(ring.pop_front() == model.front());
        model.pop_front();
        break;
      case 5:
        if (model.empty()) break;
        ring.drop_front();
        model.pop_front();
        break;
      case 6:
        if (model.empty()) break;
        REQUIRE(ring.pop_back() == model.back());
        model.pop_back();
        break;
      default: {
        if (model.empty()) break;
        const size_t index = random() % model.size();
        ring.erase(ring.begin() + static_cast<std::ptrdiff_t>(index));
        model.erase(model.begin() + static_cast<std::ptrdiff_t>(index));
        break;
      }
    }
    if (random() % 1000 == 0) {
      ring.clear();
      model.clear();
    }
    REQUIRE(ring.empty() == model.empty());
    REQUIRE(ring.size() == model.size());
    for (size_t at = 0; at < model.size(); at += 1 + model.size() / 8) REQUIRE(ring[at] == model[at]);
  }
}

TEST_CASE("ring_buffer__one_taken_from_the_front__what_it_owned_is_let_go_at_once") {
  const auto owned = std::make_shared<int>(1);
  RingBuffer<std::shared_ptr<int>> ring;
  for (int i = 0; i < 3; ++i) ring.push_back(owned);
  ring.drop_front();
  REQUIRE(owned.use_count() == 3);
  REQUIRE(*ring.pop_front() == 1);
  REQUIRE(owned.use_count() == 2);
}
