// Which buffers of a router a class and a connection may have: the reserved one of the class first, then of the shared ones as many
// as are left free.
#include "routing/router/fragment_pool.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

constexpr uint32_t fragment = 4096;

// How many a connection gets that takes all it can of one class.
uint32_t all_that_one_gets(FragmentPool& pool, uint8_t data_class, std::vector<memory::Loan>& loans, uint32_t held = 0) {
  uint32_t got = 0;
  while (got < 1000) {
    const bool expected = pool.has(data_class, held);
    memory::Loan loan = pool.take(data_class, held);
    CHECK(static_cast<bool>(loan) == expected);
    if (!loan) break;
    loans.push_back(std::move(loan));
    ++got;
    ++held;
  }
  return got;
}

}  // namespace

TEST_CASE("fragment_pool__reserved_buffers__one_a_class_whatever_the_others_hold") {
  FragmentPool pool(fragment, 8 * fragment);
  REQUIRE(pool.count() == classes_max);
  CHECK(pool.shared_count() == 0);
  std::vector<memory::Loan> loans;
  for (uint8_t data_class = 0; data_class < classes_max; ++data_class) {
    loans.push_back(pool.take(data_class, 100));
    CHECK(loans.back());
    CHECK_FALSE(pool.take(data_class, 0));
    CHECK(pool.used() == data_class + 1u);
  }
  pool.give(3, std::move(loans[3]));
  CHECK_FALSE(pool.has(2, 0));
  CHECK(pool.has(3, 100, false));
  loans[3] = pool.take(3, 100, false);
  CHECK(loans[3]);
  for (uint8_t data_class = 0; data_class < classes_max; ++data_class) pool.give(data_class, std::move(loans[data_class]));
  CHECK(pool.used() == 0);
}

TEST_CASE("fragment_pool__shared_buffers__one_connection_has_no_more_than_it_leaves") {
  FragmentPool pool(fragment, 18 * fragment);
  REQUIRE(pool.shared_count() == 10);
  std::vector<memory::Loan> first, second, third;
  CHECK(all_that_one_gets(pool, 0, first) == 6);  // the reserved one, and then as long as it holds no more than are free
  CHECK(all_that_one_gets(pool, 0, second) == 3);
  CHECK(pool.has(0, 2));
  CHECK_FALSE(pool.has(0, 3));
  CHECK_FALSE(pool.has(0, 0, false));  // the reserved one is out
  CHECK(all_that_one_gets(pool, 0, third) == 2);
  CHECK(pool.used() == 11);
  CHECK_FALSE(pool.has(0, 0));
  CHECK(pool.has(1, 100));  // another class has its own still
  // Who gives one back makes room for one, and the last one of the class is its reserved one again.
  pool.give(0, std::move(first.back()));
  first.pop_back();
  CHECK(pool.has(0, 0));
  CHECK(pool.has(0, 1));
  CHECK_FALSE(pool.has(0, 2));
  for (auto* each : {&first, &second, &third}) {
    for (memory::Loan& loan : *each) pool.give(0, std::move(loan));
    each->clear();
  }
  CHECK(pool.used() == 0);
  CHECK(all_that_one_gets(pool, 7, first) == 6);
  for (memory::Loan& loan : first) pool.give(7, std::move(loan));
}

TEST_CASE("fragment_pool__fewer_classes_or_none_reserved__as_the_tests_of_deadlock_ask_for") {
  FragmentPool two(fragment, 2 * fragment, 2);
  CHECK(two.class_of(0) == 0);
  CHECK(two.class_of(1) == 1);
  CHECK(two.class_of(2) == 1);
  CHECK(two.class_of(7) == 1);
  memory::Loan of_last = two.take(7, 0);
  REQUIRE(of_last);
  CHECK_FALSE(two.has(1, 0));
  CHECK(two.has(0, 0));
  two.give(1, std::move(of_last));
  CHECK(two.has(5, 0));

  FragmentPool none(fragment, 8 * fragment, classes_max, false);
  CHECK(none.shared_count() == 8);
  std::vector<memory::Loan> loans;
  CHECK(all_that_one_gets(none, 0, loans) == 5);
  CHECK_FALSE(none.has(1, 0, false));
  CHECK(none.has(1, 3));
  CHECK_FALSE(none.has(1, 4));
  for (memory::Loan& loan : loans) none.give(0, std::move(loan));
  CHECK(none.used() == 0);
  CHECK(none.has(0, 8));
  CHECK_FALSE(none.has(0, 9));
}

TEST_CASE("fragment_pool__memory_that_is_no_multiple__whole_fragments_poisoned_when_asked") {
  const bool poisons = GENERATE(false, true);
  FragmentPool pool(fragment, 9 * fragment - 1, classes_max, true, poisons);
  CHECK(pool.count() == 8);
  CHECK(pool.fragment_bytes() == fragment);
  memory::Loan loan = pool.take(0, 0);
  std::ranges::fill(loan.bytes(), std::byte{1});
  pool.give(0, std::move(loan));
  loan = pool.take(0, 0);  // the same one: the last that came back is warm
  const std::byte expected = poisons ? std::byte{0xdb} : std::byte{1};
  CHECK(std::ranges::all_of(loan.bytes(), [&](std::byte each) { return each == expected; }));
  pool.give(0, std::move(loan));
}
