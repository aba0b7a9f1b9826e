// The pool lends buffers and gets each back once.
#include "core/memory/pool.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

using namespace ccixfer;
using namespace ccixfer::memory;

TEST_CASE("pool__lend_all__distinct_page_aligned_buffers_then_none") {
  Pool pool(5000, 7);
  CHECK(pool.buffer_bytes() == 5000);
  CHECK(pool.count() == 7);
  std::vector<Loan> loans;
  std::vector<uint64_t> offsets;
  for (int i = 0; i < 7; ++i) {
    Loan loan = pool.lend();
    REQUIRE(loan);
    CHECK(loan.bytes().size() == 5000);
    CHECK(reinterpret_cast<uintptr_t>(loan.bytes().data()) % 4096 == 0);
    CHECK(loan.bytes().data() == pool.memory().data() + loan.offset_bytes());
    std::memset(loan.bytes().data(), i, loan.bytes().size());
    offsets.push_back(loan.offset_bytes());
    loans.push_back(std::move(loan));
  }
  CHECK(pool.free_count() == 0);
  CHECK_FALSE(pool.lend());
  std::sort(offsets.begin(), offsets.end());
  CHECK(std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end());
  CHECK(offsets.back() + 5000 <= pool.memory().size());
  for (int i = 0; i < 7; ++i) {  // nobody wrote into a neighbour
    const MutableBytes bytes = loans[static_cast<size_t>(i)].bytes();
    CHECK(std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == static_cast<std::byte>(i); }));
  }
  loans.clear();
  CHECK(pool.free_count() == 7);
}

TEST_CASE("pool__return_then_lend__the_same_warm_buffer") {
  Pool pool(4096, 4);
  Loan first = pool.lend();
  Loan second = pool.lend();
  const std::byte* warm = first.bytes().data();
  first.reset();
  CHECK_FALSE(first);
  first.reset();  // twice is harmless
  CHECK(pool.free_count() == 3);
  CHECK(pool.lend().bytes().data() == warm);
}

TEST_CASE("loan__moved__one_owner") {
  Pool pool(1, 2);
  Loan a = pool.lend();
  Loan b = std::move(a);
  CHECK(b);
  CHECK_FALSE(a);  // NOLINT: the moved-from state is the point
  Loan c = pool.lend();
  CHECK(pool.free_count() == 0);
  c = std::move(b);  // c's own goes back
  CHECK(pool.free_count() == 1);
  Loan& alias = c;
  c = std::move(alias);
  CHECK(c);
  CHECK(pool.free_count() == 1);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_CASE("pool__returned_buffer__poisoned_until_lent_again") {
  Pool pool(4096, 2);
  CHECK(__asan_address_is_poisoned(pool.memory().data()) != 0);
  Loan loan = pool.lend();
  std::byte* data = loan.bytes().data();
  CHECK(__asan_address_is_poisoned(data) == 0);
  loan.reset();
  CHECK(__asan_address_is_poisoned(data) != 0);
  Loan again = pool.lend();
  CHECK(__asan_address_is_poisoned(data) == 0);
}
#endif
