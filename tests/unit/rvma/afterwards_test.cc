// What a mailbox leaves behind: when it is closed or rewound in the middle of puts, and what is told of it afterwards.
#include <array>

#include "core/rvma/table_impl.h"
#include "tests/unit/rvma/fixture.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

TEST_CASE("close__in_the_middle_of_puts__keeps_no_buffer_and_has_no_put_to_abort") {
  Fixture f({.key = 7, .threshold = 1, .retired_max = 1});
  f.post_both();
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
  std::array<CompletedBuffer, 2> kept;
  CHECK(f.table.buffer_pointers(1, kept) == 1);
  CHECK(f.put({.source = 1, .operation = 2, .base = 0, .total = 16}, 0, fill(8, 1)) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.source = 2, .operation = 1, .base = 32, .total = 16}.at(32), 8);
  REQUIRE(placing.status == Status::success);
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.table.buffer_pointers(1, kept) == 0);
  CHECK(f.table.abort_source(1, 1) == 0);
  CHECK(f.table.next_completion()->status == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_closed);
  const auto last = f.table.next_completion();
  REQUIRE(last);
  CHECK(last->status == Status::cancelled);
  CHECK(last->epoch == 1);
}

TEST_CASE("catch_all__closed_and_opened_again__catches_nothing_until_it_is_set_anew") {
  Fixture f;
  f.table.set_catch_all(1);
  CHECK(f.table.close(1) == Status::success);
  REQUIRE(f.table.open(1, {.key = 8}) == Status::success);
  f.post_both();
  const Put unknown{.mailbox = 55, .key = 8};
  CHECK(f.put(unknown, 0, fill(8, 1)) == Status::mailbox_unknown);
  f.table.set_catch_all(1);
  CHECK(f.put(unknown, 0, fill(8, 1)) == Status::success);
}

TEST_CASE("close__mailbox_rewound_in_mid_put__buffers_come_back_with_their_epoch") {
  Fixture f({.key = 7, .threshold = 1, .retired_max = 1});
  std::vector<std::byte> c = fill(64, 0xee);
  f.post_both();
  REQUIRE(f.table.post(1, c, 102) == Status::success);
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 2}.at(0), 8);
  std::vector<CompletedBuffer> undone;
  REQUIRE(f.table.rewind(1, 0, undone) == Status::success);
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.table.next_completion()->context == 100);
  const auto behind = f.table.next_completion();
  REQUIRE(behind);
  CHECK(behind->context == 102);
  CHECK(behind->epoch == 0);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_closed);
  const auto head = f.table.next_completion();
  REQUIRE(head);
  CHECK(head->context == 101);
  CHECK(head->epoch == 1);
  CHECK(head->status == Status::cancelled);
}

TEST_CASE("abort_source__after_a_rewind__is_nothing_that_the_new_incarnation_remembers") {
  Fixture f({.key = 7, .threshold = 0});
  f.post_both();
  CHECK(f.put({.source = 1, .operation = 1, .base = 0, .total = 16}, 0, fill(8, 1)) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.source = 2, .operation = 1}.at(32), 8);
  std::vector<CompletedBuffer> undone;
  REQUIRE(f.table.rewind(1, 0, undone) == Status::success);
  CHECK(f.table.abort_source(1, 1) == 1);
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_stale);
  CHECK(f.table.next_completion()->status == Status::cancelled);
  CHECK(f.put({.source = 1, .operation = 1, .incarnation = 1}, 0, fill(8, 3)) == Status::success);
  CHECK(f.b[0] == std::byte{3});
}

TEST_CASE("threshold__of_operations__may_be_more_than_the_buffer_has_bytes") {
  Fixture f({.key = 7, .threshold = 5});
  REQUIRE(f.table.post(1, MutableBytes(f.a).first(4), 1) == Status::success);
  for (uint64_t i = 0; i < 4; ++i) CHECK(f.put({.operation = i}, i, fill(1, 1)) == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.put({.operation = 4}, 0, fill(1, 1)) == Status::success);
  CHECK(f.table.next_completion().has_value());
}

TEST_CASE("held_put_of_any_epoch__ends_when_the_buffer_is_there__the_answer_names_the_epoch") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
  const Put halves{.operation = 2, .base = 0, .total = 16};
  CHECK(f.put(halves, 0, fill(8, 2)) == Status::success);
  const ports::Admission rest = f.table.begin_write(1, halves.at(8), 8);
  REQUIRE(rest.status == Status::success);
  CHECK(rest.detail == ports::PutOperation::any_epoch);
  REQUIRE(f.table.post(1, f.b, 2) == Status::success);
  const ports::OperationResult ending = f.table.end_write(rest.ticket, true);
  CHECK(ending.status == Status::success);
  CHECK(ending.detail == 1);
}

TEST_CASE("hints__owed_while_a_buffer_fills__are_told_when_the_next_takes_its_place") {
  const bool another_is_posted = GENERATE(true, false);
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 16, .hints = true});
  REQUIRE(f.table.post(1, f.a, 100) == Status::success);
  if (another_is_posted) REQUIRE(f.table.post(1, f.b, 101) == Status::success);
  const Put slow{.operation = 1, .base = 0, .total = 24};
  CHECK(f.put(slow, 0, fill(8, 1)) == Status::success);
  CHECK(f.put({.operation = 2}, 40, fill(8, 1)) == Status::success);  // the threshold, while the first is on its way
  CHECK(f.begin(Put{.source = 5, .operation = 1}.at(0), 8, 9) == Status::mailbox_empty);
  CHECK(f.put(slow, 8, fill(8, 1)) == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK_FALSE(f.table.hint_waits(0));  // the buffer still takes no other
  CHECK(f.put(slow, 16, fill(8, 1)) == Status::success);
  CHECK(f.table.next_completion()->context == 100);
  CHECK(f.table.hint_waits(0) == another_is_posted);
  if (!another_is_posted) REQUIRE(f.table.post(1, f.b, 101) == Status::success);
  const auto hint = f.table.next_hint(0);
  REQUIRE(hint);
  CHECK(hint->connection == 9);
  CHECK(hint->epoch == 1);
  CHECK_FALSE(f.table.next_hint(0));
}

TEST_CASE("hints__that_no_transport_takes__as_many_wait_as_may_and_the_others_are_lost") {
  Fixture f({.key = 7, .hints = true});
  for (uint64_t i = 0; i <= hints_max; ++i) {
    REQUIRE(f.begin(Put{.source = 9, .operation = i}.at(0), 1, i) == Status::mailbox_empty);
    REQUIRE(f.table.post(1, f.a, 1) == Status::success);
    REQUIRE(f.put({.operation = i}, 0, fill(1, 1)) == Status::success);
    REQUIRE(f.table.next_completion());
  }
  size_t count = 0;
  uint64_t last = 0;
  while (const auto hint = f.table.next_hint(0)) {
    ++count;
    last = hint->connection;
  }
  CHECK(count == hints_max);
  CHECK(last == hints_max - 1);
  REQUIRE(f.begin(Put{.source = 9, .operation = 1}.at(0), 1, 5) == Status::mailbox_empty);
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);
  CHECK(f.table.hint_waits(0));
}

TEST_CASE("held_put__its_buffer_is_behind_a_cancelled_head__is_bounded_by_its_own_buffer") {
  Fixture f({.key = 7, .threshold = 0, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  std::vector<CompletedBuffer> undone;
  REQUIRE(f.table.rewind(1, 0, undone) == Status::success);
  REQUIRE(f.table.post(1, MutableBytes(f.b).first(31), 2) == Status::success);
  const Put next{.operation = 2, .epoch = 0, .incarnation = 1};
  const ports::Admission longer = f.table.begin_write(1, next.at(0), 32);
  CHECK(longer.status == Status::mailbox_too_long);
  CHECK(longer.detail == 31);
  CHECK(f.put(next, 0, fill(31, 2)) == Status::success);
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_stale);
  CHECK(f.b[30] == std::byte{2});
}

TEST_CASE("held_put_that_tells_its_epoch__each_fragment_is_answered_with_that_epoch") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  const Put halves{.operation = 2, .epoch = 3, .base = 0, .total = 16};
  for (const uint64_t at : {uint64_t{0}, uint64_t{8}}) {
    const ports::Admission half = f.table.begin_write(1, halves.at(at), 8);
    REQUIRE(half.status == Status::success);
    CHECK(half.detail == 3);
    CHECK(f.table.end_write(half.ticket, true).detail == 3);
  }
}
