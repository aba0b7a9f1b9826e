// What the paper leaves open, as decided: one test or more for each of the nineteen decisions that core/rvma/README.md states.
#include "tests/unit/rvma/fixture.h"

using namespace ccixfer;
using namespace ccixfer::rvma;
using std::chrono::milliseconds;

TEST_CASE("rvma_decision_1__mailbox_numbers_0_and_the_last__ordinary") {
  Fixture f;
  for (const uint64_t number : {uint64_t{0}, ~uint64_t{0}}) {
    CHECK(f.table.close(number) == Status::mailbox_unknown);
    CHECK(f.begin(Put{.mailbox = number, .key = 0}.at(0), 1) == Status::mailbox_unknown);
    CHECK(f.table.open(number, {}) == Status::success);
    CHECK(f.table.post(number, f.a, 5) == Status::success);
    CHECK(f.put({.mailbox = number, .key = 0, .operation = 1}, 0, fill(1, 1)) == Status::success);
    CHECK(f.table.next_completion()->mailbox == number);
    CHECK(f.table.handle(number).number == number);
  }
}

TEST_CASE("rvma_decision_2__fragments_straddle_an_epoch__bound_first_counted_at_the_last") {
  Fixture f({.key = 7, .threshold = 2});
  f.post_both();
  const Put wide{.operation = 1, .base = 0, .total = 32};
  CHECK(f.put(wide, 24, fill(8, 1)) == Status::success);
  CHECK(f.put({.operation = 2}, 40, fill(8, 2)) == Status::success);
  CHECK(f.put({.operation = 3}, 48, fill(8, 3)) == Status::success);  // the threshold, with one bound
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.put(wide, 0, fill(24, 1)) == Status::success);  // lands where its first one did
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == 3);
  CHECK(f.a[0] == std::byte{1});
  CHECK(f.b == fill(64, 0xee));
}

TEST_CASE("rvma_decision_3__closing__binds_nothing_new_and_publishes_when_bound_ones_end") {
  const bool abort = GENERATE(false, true);
  Fixture f;
  f.post_both();
  const Put slow{.source = 9, .operation = 1, .base = 0, .total = 32};
  CHECK(f.put(slow, 0, fill(8, 1)) == Status::success);
  CHECK(f.put({.operation = 2}, 40, fill(8, 2)) == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.begin(Put{.operation = 3}.at(0), 8) == Status::mailbox_empty);
  CHECK(f.begin(Put{.operation = 3, .epoch = 0}.at(0), 8) == Status::mailbox_stale);
  if (abort) {
    CHECK(f.table.abort_source(1, 8) == 0);
    CHECK(f.table.abort_source(1, 9) == 1);  // its sender died
    CHECK(f.begin(slow.at(8), 24) == Status::mailbox_stale);
  } else {
    CHECK(f.put(slow, 8, fill(24, 1)) == Status::success);
  }
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == (abort ? 1 : 2));
  CHECK(done->length_bytes == 48);
  CHECK(f.put({.operation = 3}, 0, fill(8, 3)) == Status::success);
  CHECK(f.table.next_completion()->buffer == f.b.data());
}

TEST_CASE("rvma_decision_4__a_duplicate__acked_again_never_placed_or_counted_again") {
  Fixture f({.key = 7, .threshold = 2});
  f.post_both();
  const Put put{.operation = 9, .base = 0, .total = 16};
  CHECK(f.put(put, 0, fill(8, 1)) == Status::success);
  CHECK(place(f.table, put.at(0), fill(8, 5)).duplicate);  // of a fragment
  CHECK(f.put(put, 8, fill(8, 1)) == Status::success);
  CHECK(place(f.table, put.at(0), fill(16, 5)).duplicate);                         // of the operation, split in another way
  CHECK_FALSE(f.table.next_completion());                                          // one was counted
  CHECK(f.put({.source = 2, .operation = 9}, 16, fill(8, 2)) == Status::success);  // another incarnation: another put
  CHECK(f.table.next_completion()->count == 2);
  for (const uint64_t epoch : {ports::PutOperation::any_epoch, uint64_t{0}}) {
    Put late = put;
    late.epoch = epoch;
    CHECK(place(f.table, late.at(8), fill(8, 5)).duplicate);
  }
  CHECK(f.a[0] == std::byte{1});
  CHECK(f.b == fill(64, 0xee));
}

TEST_CASE("rvma_decision_4__any_epoch_and_numbers_out_of_order__late_first_is_no_duplicate") {
  Fixture f;
  for (uint64_t i = 1; i < 300; ++i) {
    REQUIRE(f.table.post(1, f.a, i) == Status::success);
    REQUIRE(f.put({.operation = i}, 0, fill(8, 1)) == Status::success);
    REQUIRE(f.table.next_completion());
  }
  REQUIRE(f.table.post(1, f.b, 0) == Status::success);
  CHECK(place(f.table, Put{.operation = 1}.at(0), fill(8, 2)).duplicate);
  CHECK(f.b == fill(64, 0xee));
  CHECK(f.put({.operation = 0}, 0, fill(8, 2)) == Status::success);  // it was on a slow path all the while
  CHECK(f.b[0] == std::byte{2});
}

TEST_CASE("rvma_decision_5__a_put_larger_than_the_buffer__refused_whole_with_the_length") {
  const auto placement = GENERATE(Placement::steered, Placement::managed);
  Fixture f({.key = 7, .placement = placement});
  f.post_both();
  const Put put{.operation = 1, .base = 0, .total = 65};
  const ports::Admission refused = f.table.begin_write(1, put.at(0), 8);  // this fragment would fit
  CHECK(refused.status == Status::mailbox_too_long);
  CHECK(refused.ending().buffer_bytes() == 64u);
  CHECK(f.a == fill(64, 0xee));
  CHECK(f.put({.operation = 2, .base = 0, .total = 64}, 0, fill(64, 2)) == Status::success);
}

TEST_CASE("rvma_decision_6__empty_bucket__nack_then_a_hint_when_a_buffer_is_posted") {
  Fixture f({.key = 7, .hints = true});
  for (const uint64_t connection : {uint64_t{5}, uint64_t{6}, uint64_t{5}})
    CHECK(f.begin(Put{.operation = connection}.at(0), 8, connection) == Status::mailbox_empty);
  CHECK(f.table.begin_write(5, Put{}.at(0), 8, 2).status == Status::mailbox_empty);  // of another transport: another connection
  CHECK_FALSE(f.table.hint_waits(0));
  CHECK_FALSE(f.table.next_hint(0));
  f.post_both();
  for (const uint64_t connection : {uint64_t{5}, uint64_t{6}}) {
    CHECK(f.table.hint_waits(0));
    const auto hint = f.table.next_hint(0);
    REQUIRE(hint);
    CHECK(hint->mailbox == 1);
    CHECK(hint->connection == connection);
    CHECK(hint->epoch == 0);
  }
  CHECK_FALSE(f.table.hint_waits(0));
  CHECK_FALSE(f.table.next_hint(0));  // once each
  CHECK(f.table.next_hint(2)->connection == 5);
  CHECK_FALSE(f.table.next_hint(2));
  const bool silent = GENERATE(true, false);
  Fixture none({.key = 7, .negative_acks = !silent, .hints = silent});
  CHECK(none.begin(Put{}.at(0), 8) == (silent ? Status::withheld : Status::mailbox_empty));
  none.post_both();
  CHECK_FALSE(none.table.hint_waits(0));  // nobody asked for them, or nobody is to be told
}

TEST_CASE("rvma_decision_6__empty_bucket_and_the_next_buffer_comes_with_the_epoch__hint_too") {
  Fixture f({.key = 7, .hints = true});
  f.post_both();
  const Put slow{.operation = 1, .base = 0, .total = 16};
  CHECK(f.put(slow, 0, fill(8, 1)) == Status::success);
  CHECK(f.put({.operation = 2}, 20, fill(8, 1)) == Status::success);
  CHECK(f.begin(Put{.source = 5, .operation = 1}.at(0), 8, 9) == Status::mailbox_empty);  // closing
  CHECK(f.put(slow, 8, fill(8, 1)) == Status::success);
  const auto hint = f.table.next_hint(0);
  REQUIRE(hint);
  CHECK(hint->connection == 9);
  CHECK(hint->epoch == 1);
}

TEST_CASE("rvma_decision_6__empty_bucket__held_bounded_and_placed_when_a_buffer_is_posted") {
  Fixture f({.key = 7, .threshold = 2, .when_empty = WhenEmpty::hold, .held_bytes_max = 40});
  const Put split{.operation = 1, .base = 8, .total = 16};
  CHECK(f.put(split, 16, fill(8, 2)) == Status::success);
  CHECK(place(f.table, split.at(16), fill(8, 9)).duplicate);
  CHECK(f.put(split, 8, fill(8, 1)) == Status::success);
  CHECK(place(f.table, split.at(8), fill(16, 9)).duplicate);
  CHECK(f.begin(Put{.operation = 2}.at(0), 25) == Status::mailbox_empty);  // 16 + 25 > 40
  CHECK(f.put({.operation = 2}, 30, fill(24, 3)) == Status::success);
  std::vector<std::byte> small = fill(53, 0xee);
  CHECK(f.table.post(1, small, 1) == Status::range);  // the second ends at 54
  CHECK(f.table.increment_epoch(1) == Status::again);
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == 2);
  CHECK(done->length_bytes == 54);
  CHECK(f.a[8] == std::byte{1});
  CHECK(f.a[16] == std::byte{2});
  CHECK(f.a[53] == std::byte{3});
  CHECK(place(f.table, split.at(8), fill(16, 9)).duplicate);          // it is known as placed
  CHECK(f.put({.operation = 3}, 0, fill(40, 4)) == Status::success);  // all of the room is free again
}

TEST_CASE("rvma_decision_6__a_held_put_that_breaks__gives_its_room_back_and_may_come_again") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 16});
  const ports::Admission broken = f.table.begin_write(1, Put{.operation = 1}.at(0), 16);
  REQUIRE(broken.status == Status::success);
  CHECK(f.begin(Put{.operation = 1}.at(0), 16) == Status::mailbox_busy);
  CHECK(f.begin(Put{.operation = 2}.at(0), 1) == Status::mailbox_empty);
  CHECK(f.table.write_span(broken.ticket, 4).size() == 12);
  CHECK(f.table.end_write(broken.ticket, false).status == Status::disconnected);
  CHECK(f.put({.operation = 1}, 0, fill(16, 1)) == Status::success);
  const ports::Admission cut = f.table.begin_write(1, Put{.operation = 1, .base = 4}.at(4), 8);
  CHECK(cut.status == Status::invalid);  // another extent
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);
  CHECK(f.table.next_completion()->length_bytes == 16);
}

TEST_CASE("rvma_decision_6__held_and_the_mailbox_is_closed__discarded_and_told") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 16);
  CHECK(f.put({.operation = 2}, 0, fill(16, 1)) == Status::success);
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.table.write_span(placing.ticket, 0).empty());
  REQUIRE(f.table.open(1, {.key = 8}) == Status::success);  // the number is another mailbox by now
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_stale);
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.a == fill(64, 0xee));
}

TEST_CASE("rvma_decision_6__empty_bucket__dropped_without_an_answer") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::drop});
  CHECK(f.begin(Put{.operation = 1}.at(0), 8) == Status::withheld);
  f.post_both();
  CHECK(f.begin(Put{.key = 1}.at(0), 8) == Status::mailbox_key);  // only want of a buffer is silent
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
}

TEST_CASE("rvma_decision_7__unknown_mailbox__nack_or_catch_all") {
  Fixture f;
  CHECK(f.begin(Put{.mailbox = 77}.at(0), 8) == Status::mailbox_unknown);
  REQUIRE(f.table.open(50, {.key = 3, .threshold = 2, .placement = Placement::managed}) == Status::success);
  f.table.set_catch_all(50);
  CHECK(f.begin(Put{.mailbox = 77}.at(0), 8) == Status::mailbox_empty);  // the catch-all's bucket
  REQUIRE(f.table.post(50, f.a, 1) == Status::success);
  CHECK(f.put({.mailbox = 77, .operation = 1}, 30, fill(8, 1)) == Status::success);
  CHECK(f.begin(Put{.mailbox = 50, .key = 4}.at(0), 8) == Status::mailbox_key);  // by its own name it is a mailbox as any other
  // The same put sent to another number is another put.
  CHECK(f.put({.mailbox = 78, .operation = 1, .epoch = 900}, 0, fill(8, 2)) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->mailbox == 50);
  CHECK(done->address == 78);
  CHECK(done->count == 2);
  CHECK(f.a[0] == std::byte{1});
  CHECK(f.a[8] == std::byte{2});
  CHECK(place(f.table, Put{.mailbox = 77, .operation = 1}.at(30), fill(8, 1)).duplicate);
  CHECK(f.table.close(50) == Status::success);
  CHECK(f.begin(Put{.mailbox = 77, .operation = 2}.at(0), 8) == Status::mailbox_unknown);
}

TEST_CASE("rvma_decision_7__what_began_in_the_catch_all__ends_there_despite_an_open_mailbox") {
  Fixture f;
  REQUIRE(f.table.open(50, {}) == Status::success);
  f.table.set_catch_all(50);
  REQUIRE(f.table.post(50, f.a, 1) == Status::success);
  const Put put{.mailbox = 77, .operation = 1, .base = 0, .total = 16};
  CHECK(f.put(put, 0, fill(8, 1)) == Status::success);
  REQUIRE(f.table.open(77, {.key = 7}) == Status::success);
  REQUIRE(f.table.post(77, f.b, 2) == Status::success);
  CHECK(f.put(put, 8, fill(8, 1)) == Status::success);
  CHECK(f.table.next_completion()->mailbox == 50);
  CHECK(f.b == fill(64, 0xee));
  CHECK(place(f.table, put.at(8), fill(8, 1)).duplicate);  // of what the catch-all has
  CHECK(f.put({.mailbox = 77, .operation = 2}, 0, fill(8, 2)) == Status::success);
  CHECK(f.table.next_completion()->mailbox == 77);
}

TEST_CASE("rvma_decision_7__a_closed_mailbox__is_not_unknown_an_empty_one_only_on_request") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::catch_all});
  REQUIRE(f.table.open(50, {.threshold = 0}) == Status::success);
  REQUIRE(f.table.open(2, {.key = 7}) == Status::success);
  f.table.set_catch_all(50);
  REQUIRE(f.table.post(50, f.a, 1) == Status::success);
  CHECK(f.begin(Put{.mailbox = 2}.at(0), 8) == Status::mailbox_empty);
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
  CHECK(f.a[0] == std::byte{1});
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.begin(Put{.operation = 2}.at(0), 8) == Status::mailbox_closed);
}

TEST_CASE("rvma_decision_8__length_of_a_completion__extent_bytes_counted_and_holes") {
  Fixture f({.key = 7, .threshold = 2});
  f.post_both();
  CHECK(f.put({.operation = 1}, 0, fill(16, 1)) == Status::success);
  CHECK(f.put({.operation = 2}, 24, fill(16, 1)) == Status::success);
  const auto holes = f.table.next_completion();
  CHECK(holes->length_bytes == 40);
  CHECK(holes->bytes == 32);
  CHECK(holes->count == 2);
  CHECK(holes->has_holes);
  CHECK(f.put({.operation = 3}, 16, fill(16, 1)) == Status::success);
  CHECK(f.put({.operation = 4}, 0, fill(24, 1)) == Status::success);
  const auto overlap = f.table.next_completion();
  CHECK(overlap->length_bytes == 32);
  CHECK(overlap->bytes == 40);
  CHECK_FALSE(overlap->has_holes);
}

TEST_CASE("rvma_decision_9__overlap__gross_or_in_unique_mode_each_byte_once") {
  for (const bool unique : {false, true}) {
    Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 40, .unique = unique});
    f.post_both();
    CHECK(f.put({.operation = 1}, 0, fill(20, 1)) == Status::success);
    CHECK(f.put({.operation = 2}, 10, fill(20, 2)) == Status::success);  // gross 40, in truth 30
    auto done = f.table.next_completion();
    CHECK(done.has_value() == !unique);
    if (!unique) continue;
    CHECK(f.put({.operation = 3}, 0, fill(30, 3)) == Status::success);  // nothing new
    CHECK_FALSE(f.table.next_completion());
    CHECK(f.put({.operation = 4}, 30, fill(10, 4)) == Status::success);
    done = f.table.next_completion();
    REQUIRE(done);
    CHECK(done->count == 40);
    CHECK_FALSE(done->has_holes);
  }
}

TEST_CASE("rvma_decision_10__completion_record__64_bytes_of_one_line_with_the_pointer_last") {
  static_assert(sizeof(CompletionRecord) == 64 && alignof(CompletionRecord) == 64);
  static_assert(offsetof(CompletionRecord, buffer) == 56);
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 10});
  CompletionRecord record;
  record.buffer = f.b.data();  // used before
  record.sleepers = CompletionRecord::completing;
  REQUIRE(f.table.post(1, f.a, {.context = 3, .record = &record}) == Status::success);
  CHECK(record.buffer == nullptr);
  CHECK(f.put({.operation = 1}, 2, fill(10, 1)) == Status::success);
  CHECK(record.buffer == f.a.data());
  CHECK(record.length_bytes == 12);
  CHECK(record.count == 10);
  CHECK(record.epoch == 0);
  CHECK(record.status == Status::success);
  CHECK(record.sleepers == CompletionRecord::completing);
}

TEST_CASE("rvma_decision_11__the_next_epoch_fills_first__published_in_epoch_order") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  f.post_both();
  CHECK(f.put({.operation = 2, .epoch = 1}, 0, fill(8, 2)) == Status::success);  // held: it is the second one's
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.b == fill(64, 0xee));
  CHECK(f.put({.operation = 1, .epoch = 0}, 0, fill(8, 1)) == Status::success);
  for (const uint64_t epoch : {0u, 1u}) {
    const auto done = f.table.next_completion();
    REQUIRE(done);
    CHECK(done->epoch == epoch);
  }
  CHECK(f.a[0] == std::byte{1});
  CHECK(f.b[0] == std::byte{2});
  Fixture plain;
  plain.post_both();
  CHECK(plain.begin(Put{.operation = 2, .epoch = 1}.at(0), 8) == Status::mailbox_empty);  // comes again
}

TEST_CASE("rvma_decision_11__held_for_an_epoch_that_ends_without_it__refused_not_lost") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  f.post_both();
  const Put early{.operation = 2, .epoch = 1, .base = 0, .total = 16};
  CHECK(f.put(early, 0, fill(8, 2)) == Status::success);
  CHECK(f.put({.operation = 1, .epoch = 0}, 0, fill(8, 1)) == Status::success);
  CHECK(f.put({.operation = 3, .epoch = 1}, 0, fill(8, 3)) == Status::success);  // completes epoch 1 before the rest came
  CHECK(f.begin(early.at(8), 8) == Status::mailbox_stale);
  CHECK(f.table.next_completion()->count == 1);
  CHECK(f.table.next_completion()->count == 1);
}

TEST_CASE("rvma_decision_12__inc_epoch__again_on_an_empty_bucket_length_0_on_an_empty_head") {
  Fixture f;
  CHECK(f.table.increment_epoch(1) == Status::again);
  CHECK(f.table.epoch(1) == 0u);
  f.post_both();
  CHECK(f.table.increment_epoch(1) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->buffer == f.a.data());
  CHECK(done->length_bytes == 0);
  CHECK(done->count == 0);
  CHECK_FALSE(done->has_holes);
  CHECK(f.table.epoch(1) == 1u);
}

TEST_CASE("rvma_decision_13__threshold_0_or_bytes_over_the_length__manual_completion_only") {
  const uint64_t threshold = GENERATE(0u, 65u, 1000u);
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = threshold});
  f.post_both();
  for (uint64_t i = 0; i < 40; ++i) CHECK(f.put({.operation = i}, 0, fill(64, 1)) == Status::success);  // 2,560 bytes gross
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.increment_epoch(1) == Status::success);
  CHECK(f.table.next_completion()->count == 2560);
  REQUIRE(f.table.post(1, f.a, {.threshold = 64}) == Status::success);
  CHECK(f.table.increment_epoch(1) == Status::success);
  CHECK(f.put({.operation = 100}, 0, fill(64, 1)) == Status::success);
  CHECK(f.table.next_completion()->epoch == 1);
  CHECK(f.table.next_completion()->epoch == 2);  // this post had one it can reach
}

TEST_CASE("rvma_decision_14__close_with_posted_buffers__all_come_back_cancelled") {
  Fixture f;
  CompletionRecord record;
  REQUIRE(f.table.post(1, f.a, 100) == Status::success);
  REQUIRE(f.table.post(1, f.b, {.record = &record}) == Status::success);
  CHECK(f.put({.operation = 1, .base = 0, .total = 16}, 0, fill(8, 1)) == Status::success);
  CHECK(f.table.close(1) == Status::success);
  const auto first = f.table.next_completion();
  REQUIRE(first);
  CHECK(first->status == Status::cancelled);
  CHECK(first->context == 100);
  CHECK(record.buffer == f.b.data());
  CHECK(record.status == Status::cancelled);
  CHECK(record.epoch == 1);
  CHECK(f.table.open(1, {.key = 7}) == Status::mailbox_key);  // the same generation: stale puts would find it
  REQUIRE(f.table.open(1, {.key = 8}) == Status::success);
  REQUIRE(f.table.post(1, f.b, 5) == Status::success);
  CHECK(f.begin(Put{.operation = 1, .base = 0, .total = 16}.at(8), 8) == Status::mailbox_key);
  CHECK(f.put({.key = 8, .operation = 1}, 0, fill(8, 1)) == Status::success);
}

TEST_CASE("rvma_decision_14__very_many_closed_mailboxes__remembered_up_to_the_bound") {
  Fixture f({.key = 7}, {.closed_remembered_max = 10});
  for (uint64_t n = 100; n < 120; ++n) {
    REQUIRE(f.table.open(n, {.key = n}) == Status::success);
    REQUIRE(f.table.close(n) == Status::success);
  }
  for (uint64_t n = 100; n < 120; ++n) {
    CHECK(f.begin(Put{.mailbox = n, .key = n}.at(0), 8) == (n < 110 ? Status::mailbox_unknown : Status::mailbox_closed));
  }
}

TEST_CASE("rvma_decision_15__the_ack__carries_the_epoch_and_does_not_say_that_it_completed") {
  Fixture f({.key = 7, .threshold = 2});
  f.post_both();
  const ports::Admission first = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  CHECK(first.ending().epoch() == 0u);
  CHECK(f.table.end_write(first.ticket, true).status == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.put({.operation = 2}, 8, fill(8, 1)) == Status::success);
  const ports::Admission third = f.table.begin_write(1, Put{.operation = 3, .base = 0, .total = 16}.at(0), 8);
  CHECK(third.ending().epoch() == 1u);
  CHECK(f.table.end_write(third.ticket, true).status == Status::success);
  const ports::Admission again = f.table.begin_write(1, Put{.operation = 3, .base = 0, .total = 16}.at(0), 8);
  CHECK(again.already_placed);
  CHECK(again.ending().epoch() == 1u);
}

TEST_CASE("rvma_decision_16__expected_epoch__optional_and_a_mismatch_is_stale") {
  Fixture f;
  f.post_both();
  CHECK(f.put({.operation = 1, .epoch = 0}, 0, fill(8, 1)) == Status::success);
  CHECK(f.begin(Put{.operation = 2, .epoch = 0}.at(0), 8) == Status::mailbox_stale);
  CHECK(f.put({.operation = 2, .epoch = 1}, 0, fill(8, 1)) == Status::success);
  CHECK(f.begin(Put{.operation = 3}.at(0), 8) == Status::mailbox_empty);
}

TEST_CASE("rvma_decision_17__get__reads_the_last_completed_epoch_and_never_counts") {
  Fixture f({.key = 7, .threshold = 1, .retired_max = 2});
  CHECK(get(f.table, Put{}.at(0), 1).status == Status::mailbox_empty);
  f.post_both();
  CHECK(get(f.table, Put{}.at(0), 1).status == Status::mailbox_empty);  // posted is not completed
  CHECK(f.put({.operation = 1}, 0, fill(16, 1)) == Status::success);
  for (int i = 0; i < 10; ++i) CHECK(get(f.table, Put{}.at(8), 8).bytes == fill(8, 1));
  CHECK(f.table.epoch(1) == 1u);
  CHECK(get(f.table, Put{.epoch = 0}.at(0), 16).status == Status::success);
  CHECK(get(f.table, Put{.epoch = 1}.at(0), 16).status == Status::mailbox_stale);
  CHECK(get(f.table, Put{}.at(8), 9).status == Status::mailbox_too_long);
  CHECK(get(f.table, Put{}.at(~uint64_t{0}), 2).status == Status::mailbox_too_long);
  CHECK(get(f.table, Put{}.at(0), 0).status == Status::invalid);
  CHECK(get(f.table, Put{.key = 8}.at(0), 1).status == Status::mailbox_key);
  CHECK(get(f.table, Put{.mailbox = 9}.at(0), 1).status == Status::mailbox_unknown);
  const ports::Admission reading = f.table.begin_read(1, Put{}.at(0), 16);
  REQUIRE(reading.status == Status::success);
  CHECK(f.table.write_span(reading.ticket, 0).empty());
  CHECK(f.table.end_write(reading.ticket, true).status == Status::error);  // not a writer's ticket
  CHECK(f.table.read_span(reading.ticket, 15).size() == 1);
  CHECK(f.table.read_span(reading.ticket, 16).empty());
  CHECK(f.put({.operation = 2}, 0, fill(4, 2)) == Status::success);
  CHECK(get(f.table, Put{}.at(0), 4).bytes == fill(4, 2));   // the newest
  CHECK(f.table.read_span(reading.ticket, 0).size() == 16);  // what was begun goes on: the buffer is still kept
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);       // the owner has it back
  CHECK(f.table.read_span(reading.ticket, 0).empty());
  f.table.end_read(reading.ticket);
  f.table.end_read(reading.ticket);
  CHECK(f.table.release(1, f.b.data()) == Status::success);
  CHECK(get(f.table, Put{}.at(0), 1).status == Status::mailbox_empty);
  Fixture none;
  none.post_both();
  CHECK(none.put({.operation = 1}, 0, fill(4, 2)) == Status::success);
  CHECK(get(none.table, Put{}.at(0), 1).status == Status::mailbox_empty);  // it keeps nothing
}

TEST_CASE("rvma_decision_18__rewind__epoch_back_incarnation_up_older_operations_nacked") {
  Fixture f({.key = 7, .retired_max = 2});
  std::vector<std::vector<std::byte>> buffers(5, fill(64, 0));
  for (size_t i = 0; i < 4; ++i) {
    REQUIRE(f.table.post(1, buffers[i], i) == Status::success);
    REQUIRE(f.put({.operation = i}, 0, fill(8, int(i) + 1)) == Status::success);
    REQUIRE(f.table.next_completion());
  }
  REQUIRE(f.table.post(1, buffers[4], 4) == Status::success);
  std::vector<CompletedBuffer> undone;
  CHECK(f.table.rewind(1, 5, undone) == Status::range);
  CHECK(f.table.rewind(1, 1, undone) == Status::range);  // only two are kept
  CHECK(f.table.rewind(9, 1, undone) == Status::mailbox_unknown);
  CHECK(f.table.handle(1).generation == 0);
  REQUIRE(f.table.rewind(1, 3, undone) == Status::success);
  REQUIRE(undone.size() == 1);
  CHECK(undone[0].memory.data() == buffers[3].data());
  CHECK(f.table.epoch(1) == 3u);
  CHECK(f.table.handle(1).generation == 1);
  for (uint64_t operation = 0; operation < 10; ++operation)  // placed once or new: all of the older incarnation
    CHECK(f.begin(Put{.operation = operation}.at(0), 8) == Status::mailbox_stale);
  CHECK(get(f.table, Put{}.at(0), 8).status == Status::mailbox_stale);
  CHECK(get(f.table, Put{.incarnation = 1}.at(0), 8).bytes == fill(8, 3));  // the last completed one is 2 again
  CHECK(f.put({.operation = 3, .epoch = 3, .incarnation = 1}, 0, fill(8, 0x55)) == Status::success);
  const auto done = f.table.next_completion();  // the untouched buffer stayed posted
  REQUIRE(done);
  CHECK(done->epoch == 3);
  CHECK(done->buffer == buffers[4].data());
}

TEST_CASE("rvma_decision_18__rewind_with_a_head_begun__cancelled_when_all_are_off") {
  const bool placing = GENERATE(false, true);
  Fixture f({.key = 7, .retired_max = 2});
  f.post_both();
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
  REQUIRE(f.table.next_completion());
  const Put half{.operation = 2, .base = 0, .total = 16};
  CHECK(f.put(half, 0, fill(8, 2)) == Status::success);
  const ports::Admission admission = f.table.begin_write(1, half.at(8), 8);
  if (!placing) CHECK(f.table.end_write(admission.ticket, false).status == Status::disconnected);
  std::vector<std::byte> c = fill(64, 0xee);
  REQUIRE(f.table.post(1, c, 102) == Status::success);
  std::vector<CompletedBuffer> undone;
  REQUIRE(f.table.rewind(1, 0, undone) == Status::success);
  if (placing) {
    CHECK_FALSE(f.table.next_completion());
    CHECK(f.table.rewind(1, 0, undone) == Status::busy);
    CHECK(f.begin(Put{.operation = 1, .epoch = 0, .incarnation = 1}.at(0), 8) == Status::mailbox_empty);  // in a moment
    CHECK(f.table.write_span(admission.ticket, 0).empty());
    CHECK(f.table.end_write(admission.ticket, false).status == Status::mailbox_stale);
  }
  const auto back = f.table.next_completion();
  REQUIRE(back);
  CHECK(back->status == Status::cancelled);
  CHECK(back->context == 101);
  CHECK(back->epoch == 1);
  CHECK(f.put({.operation = 1, .epoch = 0, .incarnation = 1}, 0, fill(8, 9)) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->context == 102);
  CHECK(done->epoch == 0);
}

TEST_CASE("rvma_decision_19__hostile_sender__quota_of_a_source_and_of_a_connection") {
  Fixture f({.key = 7, .threshold = 0, .operations_per_source_max = 2, .bytes_per_source_max = 40});
  f.post_both();
  const auto part = [&](uint64_t source, uint64_t operation, uint64_t connection) {
    return f.put({.source = source, .operation = operation, .base = 0, .total = 2}, 0, fill(1, 1), connection);
  };
  CHECK(part(1, 1, 10) == Status::success);
  CHECK(part(1, 2, 11) == Status::success);
  CHECK(part(1, 3, 12) == Status::no_buffers);  // one name, many connections
  CHECK(part(2, 1, 13) == Status::success);     // others are served
  CHECK(part(3, 1, 13) == Status::success);
  CHECK(part(4, 1, 13) == Status::no_buffers);  // one connection, many names
  CHECK(f.put({.source = 1, .operation = 1, .base = 0, .total = 2}, 1, fill(1, 1), 10) == Status::success);
  CHECK(part(1, 3, 14) == Status::success);  // one ended: room again
  CHECK(f.put({.source = 9, .operation = 1}, 0, fill(41, 1), 20) == Status::no_buffers);
  CHECK(f.put({.source = 9, .operation = 1}, 0, fill(30, 1), 20) == Status::success);
  CHECK(f.put({.source = 9, .operation = 2}, 0, fill(11, 1), 21) == Status::no_buffers);
  CHECK(f.put({.source = 9, .operation = 2}, 0, fill(10, 1), 21) == Status::success);
  CHECK(f.table.increment_epoch(1) == Status::success);
  CHECK(f.put({.source = 9, .operation = 3}, 0, fill(40, 1), 20) == Status::success);  // each buffer anew
}

TEST_CASE("rvma_decision_19__hostile_sender__held_puts_within_its_quota") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 1000, .operations_per_source_max = 2});
  CHECK(f.put({.source = 1, .operation = 1}, 0, fill(8, 1), 1) == Status::success);
  CHECK(f.put({.source = 1, .operation = 2}, 0, fill(8, 1), 1) == Status::success);
  CHECK(f.put({.source = 1, .operation = 3}, 0, fill(8, 1), 2) == Status::no_buffers);
  CHECK(f.put({.source = 2, .operation = 3}, 0, fill(8, 1), 1) == Status::no_buffers);
  CHECK(f.put({.source = 2, .operation = 3}, 0, fill(8, 1), 3) == Status::success);
}

TEST_CASE("rvma_decision_19__hostile_sender__negative_acks_at_a_limited_rate") {
  Fixture f({.key = 7}, {.nacks_per_second = 10});
  f.post_both();
  Instant now{};
  f.table.turn(now);
  const auto answers = [&](uint64_t connection, int tries) {
    int answered = 0;
    for (int i = 0; i < tries; ++i) {
      const Status status = f.begin(Put{.key = 8}.at(0), 8, connection);
      CHECK((status == Status::mailbox_key || status == Status::withheld));
      answered += status == Status::mailbox_key ? 1 : 0;
    }
    return answered;
  };
  CHECK(answers(1, 100) == 10);
  CHECK(answers(2, 5) == 5);  // another connection has its own
  f.table.turn(now += milliseconds(500));
  CHECK(answers(1, 100) == 5);
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);  // success is always told
  CHECK(f.counters.get(Counter::mailbox_rejected) == 205);
}
