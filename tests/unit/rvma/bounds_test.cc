// The bounds of a mailbox's memory, and what is given back when a put breaks.
#include <algorithm>

#include "core/rvma/mailbox.h"
#include "tests/unit/rvma/fixture.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

namespace {

// Bytes that do not touch one another, each a put of its own.
Status scatter(Fixture& f, uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) {
    const Status status = f.put({.operation = i + 1}, 2 * i, fill(1, 1));
    if (status != Status::success) return status;
  }
  return Status::success;
}

}  // namespace

TEST_CASE("rvma_get__the_owner_took_the_last_epoch_back__the_one_before_is_not_read") {
  Fixture f({.key = 7, .threshold = 1, .retired_max = 2});
  f.post_both();
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
  CHECK(f.put({.operation = 2}, 0, fill(8, 2)) == Status::success);
  CHECK(get(f.table, Put{}.at(0), 8).bytes == fill(8, 2));
  CHECK(f.table.release(1, f.b.data()) == Status::success);
  CHECK(get(f.table, Put{}.at(0), 8).status == Status::mailbox_empty);
  CHECK(get(f.table, Put{.epoch = 0}.at(0), 8).status == Status::mailbox_empty);
  CompletedBuffer kept;
  CHECK(f.table.buffer_pointers(1, {&kept, 1}) == 1);  // though it is kept
  CHECK(kept.memory.data() == f.a.data());
}

TEST_CASE("rvma_coverage__as_many_ranges_as_are_kept__holes_are_known_beyond_them_only_some") {
  const bool beyond = GENERATE(false, true);
  Fixture f({.key = 7, .threshold = 0});
  const uint64_t count = coverage_ranges_max + (beyond ? 1 : 0);
  std::vector<std::byte> wide(2 * count);
  REQUIRE(f.table.post(1, wide, 1) == Status::success);
  REQUIRE(scatter(f, 0, count) == Status::success);
  CHECK(f.put({.operation = count + 1}, 0, fill(2 * count, 2)) == Status::success);  // there is none any more
  CHECK(f.table.increment_epoch(1) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->length_bytes == 2 * count);
  CHECK(done->bytes == count + 2 * count);
  CHECK(done->count == count + 1);
  CHECK(done->has_holes == beyond);
}

TEST_CASE("rvma_coverage__unique_and_all_ranges_kept__further_ones_refused_until_some_join") {
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 0, .unique = true});
  std::vector<std::byte> wide(4 * coverage_ranges_max);
  REQUIRE(f.table.post(1, wide, 1) == Status::success);
  REQUIRE(scatter(f, 0, coverage_ranges_max) == Status::success);
  CHECK(scatter(f, coverage_ranges_max, 1) == Status::no_buffers);
  CHECK(f.table.increment_epoch(1) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == coverage_ranges_max);
}

TEST_CASE("rvma_quota__a_put_that_breaks_before_its_first_byte__gives_back_what_it_counted") {
  Fixture f({.key = 7, .threshold = 0, .operations_per_source_max = 1, .bytes_per_source_max = 40});
  f.post_both();
  const ports::Admission broken = f.table.begin_write(1, Put{.operation = 1}.at(0), 30);
  REQUIRE(broken.status == Status::success);
  CHECK(f.begin(Put{.operation = 2}.at(0), 8) == Status::no_buffers);  // one at a time
  CHECK(f.table.end_write(broken.ticket, false).status == Status::disconnected);
  CHECK(f.put({.operation = 2}, 0, fill(30, 1)) == Status::success);
  CHECK(f.put({.operation = 3}, 0, fill(11, 1)) == Status::no_buffers);
  CHECK(f.put({.operation = 3}, 0, fill(10, 1)) == Status::success);
  CHECK(f.put({.operation = 4}, 0, fill(1, 1)) == Status::no_buffers);
}

TEST_CASE("rvma_managed__held_puts_that_do_not_fit_together__each_ends_the_buffer_before_it") {
  Fixture f({.key = 7, .threshold = 0, .placement = Placement::managed, .when_empty = WhenEmpty::hold, .held_bytes_max = 1000});
  for (int i = 1; i <= 3; ++i)
    CHECK(f.put({.operation = static_cast<uint64_t>(i)}, 0, fill(i == 2 ? 40 : 30, i)) == Status::success);
  REQUIRE(f.table.post(1, f.a, 100) == Status::success);
  auto done = f.table.next_completion();
  REQUIRE(done);  // full with the first: the second does not fit behind it
  CHECK(done->count == 1);
  CHECK(done->length_bytes == 30);
  CHECK(done->epoch == 0);
  CHECK(std::equal(f.a.begin(), f.a.begin() + 30, fill(30, 1).begin()));
  REQUIRE(f.table.post(1, f.b, 101) == Status::success);
  done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->length_bytes == 40);
  CHECK(std::equal(f.b.begin(), f.b.begin() + 40, fill(40, 2).begin()));
  std::vector<std::byte> c = fill(64, 0xee);
  REQUIRE(f.table.post(1, c, 102) == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(c[29] == std::byte{3});
  CHECK(c[30] == std::byte{0xee});
  // Its memory for held puts is free again.
  CHECK(f.table.increment_epoch(1) == Status::success);
  CHECK(f.put({.operation = 9}, 0, fill(1000, 9)) == Status::success);
  CHECK(f.put({.operation = 10}, 0, fill(1, 9)) == Status::mailbox_empty);
}
