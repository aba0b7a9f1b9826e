// Where two rules meet: each case fails when the second condition of a decision is left out.
#include <catch2/catch.hpp>

#include "tests/unit/rvma/place.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

namespace {

struct Fixture {
  Counters counters;
  MailboxTable table;
  std::vector<std::byte> memory = fill(192, 0xee);

  explicit Fixture(const MailboxOptions& options, const MailboxTable::Limits& limits = {}) : table(limits, counters) {
    REQUIRE(table.open(1, options) == Status::success);
  }
  MutableBytes part(size_t at, size_t count) { return MutableBytes(memory).subspan(at, count); }
  Status put(const Put& put, uint64_t at, size_t count, int value) { return place(table, put.at(at), fill(count, value)).status; }
};

}  // namespace

TEST_CASE("catch_all__its_put_has_begun_and_the_mailbox_was_opened_and_closed__still_ends_there") {
  Fixture f({.key = 3});
  f.table.set_catch_all(1);
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  const Put put{.mailbox = 77, .operation = 1, .base = 0, .total = 16};
  CHECK(f.put(put, 0, 8, 1) == Status::success);
  REQUIRE(f.table.open(77, {.key = 7}) == Status::success);
  REQUIRE(f.table.close(77) == Status::success);
  CHECK(f.put(put, 8, 8, 1) == Status::success);
  CHECK(f.table.next_completion()->address == 77);
  CHECK(place(f.table, put.at(0), fill(16, 1)).duplicate);
  CHECK(f.put({.mailbox = 77, .operation = 2}, 0, 8, 1) == Status::mailbox_closed);  // a new one is told what happened to it
}

TEST_CASE("catch_all__of_an_empty_mailbox__only_if_there_is_one_and_no_buffer_is_posted_for_later") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::catch_all});
  CHECK(f.put({.operation = 1}, 0, 8, 1) == Status::mailbox_empty);  // there is none
  REQUIRE(f.table.open(50, {.key = 3, .when_empty = WhenEmpty::catch_all}) == Status::success);
  f.table.set_catch_all(50);
  CHECK(f.put({.operation = 1}, 0, 8, 1) == Status::mailbox_empty);           // nor has it a buffer
  CHECK(f.put({.mailbox = 50, .key = 3}, 0, 8, 1) == Status::mailbox_empty);  // it is not its own
  REQUIRE(f.table.post(50, f.part(128, 64), 1) == Status::success);
  REQUIRE(f.table.post(1, f.part(0, 64), 2) == Status::success);
  REQUIRE(f.table.post(1, f.part(64, 64), 3) == Status::success);
  CHECK(f.put({.operation = 2, .epoch = 1}, 0, 8, 1) == Status::mailbox_empty);  // its buffer is the second: it comes again
  CHECK(f.memory == fill(192, 0xee));
  CHECK(f.put({.operation = 2, .epoch = 2}, 0, 8, 1) == Status::success);  // for that one there is none
  CHECK(f.memory[128] == std::byte{1});
}

TEST_CASE("held_put_that_tells_its_epoch__only_the_buffer_of_that_epoch_must_have_room") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  CHECK(f.put({.operation = 1, .epoch = 1}, 0, 32, 1) == Status::success);
  REQUIRE(f.table.post(1, f.part(0, 8), 1) == Status::success);  // epoch 0 may be small
  CHECK(f.table.post(1, f.part(64, 31), 2) == Status::range);    // epoch 1 may not
  CHECK(f.table.post(1, f.part(64, 32), 2) == Status::success);
  CHECK(f.put({.operation = 2}, 0, 8, 2) == Status::success);
  CHECK(f.table.next_completion()->epoch == 0);
  const auto second = f.table.next_completion();
  REQUIRE(second);
  CHECK(second->epoch == 1);
  CHECK(second->length_bytes == 32);
}

TEST_CASE("held_managed_puts__that_fill_a_buffer_to_its_last_byte__are_all_in_it") {
  Fixture f({.key = 7, .threshold = 3, .placement = Placement::managed, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  CHECK(f.put({.operation = 1}, 0, 24, 1) == Status::success);
  CHECK(f.put({.operation = 2}, 0, 8, 2) == Status::success);
  REQUIRE(f.table.post(1, f.part(0, 32), 1) == Status::success);
  CHECK_FALSE(f.table.next_completion());  // both are in it, and it waits for a third that it has no room for
  CHECK(f.memory[31] == std::byte{2});
  REQUIRE(f.table.post(1, f.part(64, 32), 2) == Status::success);
  CHECK(f.put({.operation = 3}, 0, 1, 3) == Status::success);  // ends the first
  const auto full = f.table.next_completion();
  REQUIRE(full);
  CHECK(full->count == 2);
  CHECK(full->length_bytes == 32);
  CHECK(f.memory[64] == std::byte{3});
}

TEST_CASE("kept_buffer__memory_beside_it_is_posted__stays_readable_until_a_byte_of_it_is") {
  Fixture f({.key = 7, .retired_max = 4});
  REQUIRE(f.table.post(1, f.part(64, 64), 1) == Status::success);
  CHECK(f.put({.operation = 1}, 0, 64, 1) == Status::success);
  REQUIRE(f.table.post(1, f.part(0, 64), 2) == Status::success);    // ends where it begins
  REQUIRE(f.table.post(1, f.part(128, 64), 3) == Status::success);  // begins where it ends
  CHECK(get(f.table, Put{.epoch = 0}.at(0), 64).bytes == fill(64, 1));
  REQUIRE(f.table.post(1, f.part(127, 1), 4) == Status::success);
  CHECK(get(f.table, Put{.epoch = 0}.at(0), 64).status == Status::mailbox_empty);
}

TEST_CASE("catch_all__holds_the_first_half_of_a_put__the_rest_goes_there_though_its_mailbox_has_a_buffer") {
  Fixture f({.key = 3, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  f.table.set_catch_all(1);
  const Put put{.mailbox = 77, .operation = 1, .base = 0, .total = 16};
  CHECK(f.put(put, 0, 8, 1) == Status::success);
  REQUIRE(f.table.open(77, {.key = 7}) == Status::success);
  REQUIRE(f.table.post(77, f.part(64, 64), 1) == Status::success);
  CHECK(f.put({.mailbox = 77, .operation = 2}, 0, 8, 2) == Status::success);  // another put is its own
  CHECK(f.table.next_completion()->mailbox == 77);
  REQUIRE(f.table.post(77, f.part(128, 64), 1) == Status::success);
  CHECK(f.put(put, 8, 8, 1) == Status::success);
  CHECK_FALSE(f.table.next_completion());
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  CHECK(f.table.next_completion()->mailbox == 1);
  CHECK(f.memory[15] == std::byte{1});
  CHECK(f.memory[128] == std::byte{0xee});
}

TEST_CASE("held_put__mailbox_without_negative_acks_is_closed_in_the_middle__gets_no_answer") {
  for (const bool answers : {true, false}) {
    Fixture f({.key = 7, .negative_acks = answers, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
    const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 16);
    REQUIRE(placing.status == Status::success);
    REQUIRE(f.table.close(1) == Status::success);
    CHECK(f.table.end_write(placing.ticket, true).status == (answers ? Status::mailbox_closed : Status::withheld));
  }
}

TEST_CASE("held_put_that_breaks_again_and_again__gives_its_room_back_once_each") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 16});
  for (int i = 0; i < 3; ++i) {
    const ports::Admission broken = f.table.begin_write(1, Put{.operation = 1}.at(0), 16);
    REQUIRE(broken.status == Status::success);
    CHECK(f.table.end_write(broken.ticket, false).status == Status::disconnected);
  }
  CHECK(f.put({.operation = 2}, 0, 17, 1) == Status::mailbox_empty);
  CHECK(f.put({.operation = 2}, 0, 16, 1) == Status::success);
  CHECK(f.put({.operation = 3}, 0, 1, 1) == Status::mailbox_empty);
}

TEST_CASE("tickets__as_many_as_there_may_be__no_buffers_until_one_ends") {
  Fixture f({.key = 7, .retired_max = 1});
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  CHECK(f.put({.operation = 1}, 0, 64, 1) == Status::success);
  REQUIRE(f.table.post(1, f.part(64, 64), 1) == Status::success);
  constexpr uint32_t all = 1u << 20;  // tickets_max
  const ports::RemoteRef ref = Put{}.at(0);
  uint32_t begun = 0;
  while (begun < all && f.table.begin_read(1, ref, 8).status == Status::success) ++begun;
  CHECK(begun == all);
  CHECK(f.table.begin_read(1, ref, 8).status == Status::no_buffers);
  CHECK(f.put({.operation = 2}, 0, 8, 2) == Status::no_buffers);
  f.table.end_read({5, 1});
  CHECK(f.put({.operation = 2}, 0, 8, 2) == Status::success);  // the one that is free again
  CHECK(f.table.begin_read(1, ref, 8).status == Status::success);
}
