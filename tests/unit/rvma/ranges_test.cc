// Sets of ranges, the fragments of one operation, and the history of operations.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "core/ports/rma_target.h"
#include "core/rvma/history.h"
#include "core/rvma/interval_set.h"
#include "core/rvma/operation.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

TEST_CASE("interval_set__random_adds__equals_a_bitmap") {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    IntervalSet set;
    std::vector<bool> bits(64);
    for (int step = 0; step < 40; ++step) {
      const uint64_t begin = random() % 63;
      const uint64_t end = begin + 1 + random() % (64 - begin - 1 + 1);
      bool all = true;
      for (uint64_t i = begin; i < end; ++i) all = all && bits[i];
      CHECK(set.contains(begin, end) == all);
      uint64_t fresh = 0;
      if (random() % 3 != 0 || end - begin < 8) {
        for (uint64_t i = begin; i < end; ++i) {
          fresh += bits[i] ? 0u : 1u;
          bits[i] = true;
        }
        CHECK(set.add(begin, end) == fresh);
      }
      size_t ranges = 0;
      for (size_t i = 0; i < bits.size(); ++i) ranges += bits[i] && (i == 0 || !bits[i - 1]) ? 1u : 0u;
      CHECK(set.ranges() == ranges);
    }
  }
}

// Rows of the table in operation.h, each from the state it names.
TEST_CASE("operation__every_state_and_end__the_next_state") {
  const auto in_state = [](FragmentState state) {
    Operation operation(0, 100);
    if (state != FragmentState::absent) operation.begin(10, 20);
    if (state == FragmentState::placed) CHECK(operation.end(10, 20, true) == 10);
    CHECK(operation.state(10, 20) == state);
    return operation;
  };
  Operation absent = in_state(FragmentState::absent);
  CHECK(absent.untouched());
  absent.begin(10, 20);
  CHECK(absent.state(10, 20) == FragmentState::placing);

  Operation broken = in_state(FragmentState::placing);
  CHECK(broken.end(10, 20, false) == 0);
  CHECK(broken.state(10, 20) == FragmentState::absent);
  CHECK(broken.untouched());

  Operation complete = in_state(FragmentState::placing);
  CHECK(complete.end(10, 20, true) == 10);
  CHECK(complete.state(10, 20) == FragmentState::placed);
  CHECK_FALSE(complete.untouched());
  CHECK_FALSE(complete.whole());

  Operation placed = in_state(FragmentState::placed);
  CHECK(placed.state(12, 18) == FragmentState::placed);  // split in another way
  CHECK(placed.state(15, 25) == FragmentState::absent);  // the rest is wanted
  placed.begin(15, 25);
  CHECK(placed.state(24, 30) == FragmentState::placing);  // any byte of it
  CHECK(placed.state(25, 30) == FragmentState::absent);
  CHECK(placed.end(15, 25, true) == 5);  // counted once
  placed.begin(0, 100);
  CHECK(placed.end(0, 100, true) == 85);
  CHECK(placed.whole());
  CHECK(placed.state(0, 100) == FragmentState::placed);
}

TEST_CASE("operation__many_scattered_fragments__full") {
  Operation operation(0, 1u << 20);
  for (uint64_t i = 0; i < ranges_per_operation_max; ++i) {
    REQUIRE_FALSE(operation.full());
    operation.begin(2 * i, 2 * i + 1);
    (void)operation.end(2 * i, 2 * i + 1, true);
  }
  CHECK(operation.full());
}

TEST_CASE("history__few_and_many__finds_each_until_forgotten") {
  constexpr uint64_t any = ports::PutOperation::any_epoch;
  History history;
  for (uint64_t i = 0; i < 1000; ++i) history.add({5, i}, 0, false, i % 2 == 0);
  CHECK(history.size() == 1000);  // all of the head's epoch
  for (uint64_t i = 0; i < 1000; ++i) CHECK(history.find({5, i}, any).outcome == (i % 2 == 0 ? Outcome::placed : Outcome::aborted));
  history.forget(1);
  CHECK(history.size() == 1000);  // of the last published
  history.forget(2);
  CHECK(history.size() == history_operations_min);
  CHECK(history.find({5, 999}, any).outcome == Outcome::aborted);
  CHECK(history.find({5, 900}, any).outcome == Outcome::placed);  // its number is still known
  CHECK(history.find({5, 901}, any).outcome == Outcome::aborted);
  CHECK(history.find({5, 0}, any).outcome == Outcome::forgotten);  // too many gaps below it
  CHECK(history.find({5, 0}, 1).outcome == Outcome::unknown);      // a put for a later epoch is another one
  CHECK(history.find({5, 1000}, any).outcome == Outcome::unknown);
  CHECK(history.find({6, 0}, any).outcome == Outcome::unknown);
  CHECK(history.find({5, 1, 7}, any).outcome == Outcome::unknown);  // sent to another number
  history.add({5, 2000}, 2, false, true);
  CHECK(history.find({5, 2000}, any).outcome == Outcome::placed);
  CHECK(history.find({5, 999}, any).outcome == Outcome::aborted);
}

TEST_CASE("history__numbers_that_were_given_up__a_put_for_a_later_epoch_is_another_one") {
  History history;
  for (uint64_t i = 0; i < 1000; ++i) history.add({5, 2 * i}, 4, false, true);
  history.forget(6);
  CHECK(history.find({5, 1}, 4).outcome == Outcome::forgotten);
  CHECK(history.find({5, 1}, ports::PutOperation::any_epoch).outcome == Outcome::forgotten);
  CHECK(history.find({5, 1}, 5).outcome == Outcome::unknown);
}

TEST_CASE("history__numbers_without_gaps_in_any_order__none_is_given_up") {
  constexpr uint64_t any = ports::PutOperation::any_epoch;
  History history;
  std::vector<uint64_t> numbers;
  for (uint64_t i = 0; i < 100'000; ++i) numbers.push_back(i);
  for (size_t i = 0; i + 64 <= numbers.size(); i += 64) std::reverse(numbers.begin() + long(i), numbers.begin() + long(i) + 64);
  for (const uint64_t number : numbers) {
    if (number == 5) continue;  // on its way for very long
    REQUIRE(history.find({1, number}, any).outcome == Outcome::unknown);
    history.add({1, number}, number, false, true);
    history.forget(number + 1);
  }
  for (const uint64_t number : numbers)
    REQUIRE(history.find({1, number}, any).outcome == (number == 5 ? Outcome::unknown : Outcome::placed));
  CHECK(history.size() <= 128);
}

TEST_CASE("history__endless_epoch__bounded_and_no_operation_counted_twice") {
  History history;
  for (uint64_t i = 0; i < 3 * history_operations_max; ++i) history.add({i % 3, i}, 0, true, true);
  CHECK(history.size() == history_operations_max);
  CHECK(history.find({0, 0}, 0).outcome == Outcome::forgotten);  // told, and of the head's own epoch
  CHECK(history.find({2, 3 * history_operations_max - 1}, 0).outcome == Outcome::placed);
}

TEST_CASE("history__the_highest_number__forgotten_not_lost") {
  History history;
  const OperationKey key{1, ~uint64_t{0}};
  history.add(key, 0, false, true);
  for (uint64_t i = 0; i < 100; ++i) history.add({1, i}, i, false, true);
  history.forget(100);
  CHECK(history.find(key, ports::PutOperation::any_epoch).outcome == Outcome::forgotten);
}

TEST_CASE("history__more_sources_than_are_remembered__bounded") {
  constexpr uint64_t any = ports::PutOperation::any_epoch;
  History history;
  for (uint64_t source = 0; source < 2 * history_sources_max; ++source) {
    history.add({source, 1}, source, false, true);
    history.forget(source + 1);
  }
  CHECK(history.find({2 * history_sources_max - 1, 1}, any).outcome == Outcome::placed);
  CHECK(history.find({history_sources_max + 100, 1}, any).outcome == Outcome::placed);
  CHECK(history.find({0, 1}, any).outcome == Outcome::unknown);  // the bound
}

TEST_CASE("history__after_the_oldest_were_dropped__each_that_is_left_has_its_own_end") {
  History history;
  constexpr uint64_t added = 2 * history_operations_max + 5;
  for (uint64_t i = 0; i < added; ++i) history.add({7, i}, i, true, i % 3 != 0);
  for (uint64_t i = added - history_operations_max; i < added; ++i) {
    const Past past = history.find({7, i}, i);
    REQUIRE(past.outcome == (i % 3 != 0 ? Outcome::placed : Outcome::aborted));
    if (past.outcome == Outcome::placed) REQUIRE(past.epoch == i);
  }
  CHECK(history.find({7, added - history_operations_max - 1}, 0).outcome == Outcome::unknown);
}
