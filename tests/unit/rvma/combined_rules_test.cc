// Where two rules meet: each case fails when the second condition of a decision is left out.
#include <catch2/catch.hpp>
#include <set>

#include "core/rvma/mailbox.h"
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

TEST_CASE("catch_all__a_put_begun_there_and_its_mailbox_opened_and_closed__ends_there") {
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

TEST_CASE("catch_all__of_an_empty_mailbox__only_without_a_buffer_posted_for_later") {
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

TEST_CASE("held_put_that_tells_the_epoch_of_the_next_buffer__bounds_the_first_one_posted") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  CHECK(f.put({.operation = 1, .epoch = 0}, 0, 32, 1) == Status::success);
  CHECK(f.table.post(1, f.part(0, 31), 1) == Status::range);
  CHECK(f.table.post(1, f.part(0, 32), 1) == Status::success);
  CHECK(f.table.next_completion()->epoch == 0);
  CHECK(f.put({.operation = 2, .epoch = 1}, 0, 16, 2) == Status::success);  // the same in the epoch after it
  CHECK(f.table.post(1, f.part(0, 15), 2) == Status::range);
  CHECK(f.table.post(1, f.part(0, 16), 2) == Status::success);
  CHECK(f.table.next_completion()->epoch == 1);
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

TEST_CASE("catch_all__holds_the_first_half_of_a_put__the_rest_goes_there_too") {
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

TEST_CASE("abort_source__held_puts__those_of_it_that_are_not_whole_and_no_others") {
  Fixture f({.key = 7, .threshold = 2, .when_empty = WhenEmpty::hold, .held_bytes_max = 48});
  const Put partial{.source = 1, .operation = 1, .base = 0, .total = 16};
  const Put others{.source = 2, .operation = 1, .base = 16, .total = 16};
  CHECK(f.put(partial, 0, 8, 1) == Status::success);
  CHECK(f.put({.source = 1, .operation = 2}, 32, 16, 2) == Status::success);  // whole: it was acknowledged
  CHECK(f.put(others, 16, 8, 3) == Status::success);
  CHECK(f.put({.source = 3}, 0, 1, 4) == Status::mailbox_empty);  // no room is left
  CHECK(f.table.abort_source(1, 1) == 1);
  CHECK(f.table.abort_source(1, 1) == 0);
  CHECK(f.table.abort_source(77, 1) == 0);
  CHECK(f.put(partial, 8, 8, 1) == Status::mailbox_stale);         // nobody waits for its rest
  CHECK(f.put({.source = 3}, 0, 17, 4) == Status::mailbox_empty);  // its room is free again, and no more than that
  CHECK(f.put({.source = 3, .operation = 9, .base = 48, .total = 16}, 48, 8, 4) == Status::success);
  CHECK(f.put(others, 24, 8, 3) == Status::success);
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == 2);
  CHECK(f.memory[0] == std::byte{0xee});
  CHECK(f.memory[16] == std::byte{3});
  CHECK(f.memory[32] == std::byte{2});
}

TEST_CASE("abort_source__bound_puts__not_those_placing_nor_of_others_nor_once_closed") {
  Fixture f({.key = 7, .threshold = 0});
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  CHECK(f.put({.source = 1, .operation = 1, .base = 0, .total = 16}, 0, 8, 1) == Status::success);
  CHECK(f.put({.source = 2, .operation = 1, .base = 16, .total = 16}, 16, 8, 1) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.source = 1, .operation = 2, .base = 32, .total = 16}.at(32), 8);
  REQUIRE(placing.status == Status::success);
  CHECK(f.table.abort_source(1, 1) == 1);
  CHECK(f.put({.source = 1, .operation = 1, .base = 0, .total = 16}, 8, 8, 1) == Status::mailbox_stale);
  CHECK(f.put({.source = 2, .operation = 1, .base = 16, .total = 16}, 24, 8, 1) == Status::success);
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.table.abort_source(1, 1) == 0);
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_closed);
}

TEST_CASE("rewind__what_cannot_be__is_refused_and_changes_nothing") {
  Fixture f({.key = 7, .hints = true, .retired_max = 1});
  std::vector<CompletedBuffer> undone;
  CHECK(f.table.rewind(77, 0, undone) == Status::mailbox_unknown);
  for (uint64_t i = 0; i < 2; ++i) {
    REQUIRE(f.table.post(1, f.part(i * 64, 64), i) == Status::success);
    CHECK(f.put({.operation = i}, 0, 8, 1) == Status::success);
  }
  CHECK(f.table.rewind(1, 3, undone) == Status::range);  // yet to come
  CHECK(f.table.rewind(1, 0, undone) == Status::range);  // not kept
  CHECK(f.table.handle(1).generation == 0);
  CHECK(f.put({.operation = 9}, 0, 8, 1) == Status::mailbox_empty);  // is owed a hint
  CHECK(f.table.rewind(1, 2, undone) == Status::success);            // the epoch of now: only the incarnation changes
  CHECK(undone.empty());
  CHECK(f.table.epoch(1) == 2u);
  CHECK(f.table.handle(1).generation == 1);
  REQUIRE(f.table.post(1, f.part(128, 64), 3) == Status::success);
  CHECK_FALSE(f.table.hint_waits(0));  // whom it was owed is refused from now on
  CHECK(f.put({.operation = 9}, 0, 8, 1) == Status::mailbox_stale);
  CHECK(f.table.rewind(1, 1, undone) == Status::success);
  REQUIRE(undone.size() == 1);
  CHECK(undone[0].epoch == 1);
  CHECK(f.table.epoch(1) == 1u);
}

TEST_CASE("rewind__the_head_is_on_its_way_out__busy") {
  Fixture f({.key = 7, .threshold = 0, .retired_max = 1});
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  REQUIRE(f.table.increment_epoch(1) == Status::success);
  std::vector<CompletedBuffer> undone;
  CHECK(f.table.rewind(1, 0, undone) == Status::busy);
  CHECK(f.table.increment_epoch(1) == Status::busy);
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_stale);
  CHECK(f.table.rewind(1, 0, undone) == Status::success);
}

TEST_CASE("kept_buffers__asked_for_or_given_back__newest_first_and_each_once") {
  Fixture f({.key = 7, .retired_max = 3});
  for (uint64_t i = 0; i < 3; ++i) {
    REQUIRE(f.table.post(1, f.part(i * 64, 64), i) == Status::success);
    CHECK(f.put({.operation = i}, 0, 8, 1) == Status::success);
  }
  std::vector<CompletedBuffer> two(2);
  CHECK(f.table.buffer_pointers(1, two) == 2);
  CHECK(two[0].epoch == 2);
  CHECK(two[1].epoch == 1);
  std::vector<CompletedBuffer> many(9);
  CHECK(f.table.buffer_pointers(1, many) == 3);
  CHECK(f.table.buffer_pointers(77, many) == 0);
  CHECK(f.table.release(77, f.memory.data()) == Status::mailbox_unknown);
  CHECK(f.table.release(1, f.memory.data() + 1) == Status::not_found);
  CHECK(f.table.release(1, f.memory.data() + 64) == Status::success);
  CHECK(f.table.release(1, f.memory.data() + 64) == Status::not_found);
  CHECK(f.table.buffer_pointers(1, many) == 2);
  CHECK(many[1].epoch == 0);
}

TEST_CASE("handle__of_a_mailbox_that_is_not_open__names_none") {
  Fixture f({.key = 7});
  CHECK(f.table.handle(77).kind == ports::HandleKind::none);
  CHECK_FALSE(f.table.closing(77));
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  CHECK_FALSE(f.table.closing(1));
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.table.closing(1));
  CHECK(f.table.handle(1).kind == ports::HandleKind::none);
  CHECK_FALSE(f.table.epoch(1));
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_closed);
  CHECK_FALSE(f.table.closing(1));
}

TEST_CASE("held_put__behind_a_head_that_is_cancelled__waits_for_the_buffer_of_its_epoch") {
  Fixture f({.key = 7, .threshold = 0, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  std::vector<CompletedBuffer> undone;
  REQUIRE(f.table.rewind(1, 0, undone) == Status::success);  // the head comes back when nobody is in it
  CHECK(f.put({.operation = 2, .epoch = 0, .incarnation = 1}, 0, 32, 2) == Status::success);
  CHECK(f.table.post(1, f.part(64, 31), 2) == Status::range);  // epoch 0 is the next one posted
  CHECK(f.table.post(1, f.part(64, 32), 2) == Status::success);
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_stale);
  CHECK(f.table.next_completion()->status == Status::cancelled);
  CHECK(f.memory[64] == std::byte{2});
}

TEST_CASE("abort_source__a_held_put_with_a_fragment_placing__that_fragment_is_discarded") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 64});
  const Put put{.source = 1, .operation = 1, .base = 0, .total = 16};
  CHECK(f.put(put, 0, 8, 1) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, put.at(8), 8);
  REQUIRE(placing.status == Status::success);
  CHECK(f.table.abort_source(1, 1) == 1);
  CHECK(f.table.write_span(placing.ticket, 0).empty());
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_stale);
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  CHECK_FALSE(f.table.next_completion());
}

TEST_CASE("get__of_a_mailbox_that_is_closing__is_told_so") {
  Fixture f({.key = 7, .retired_max = 1});
  REQUIRE(f.table.post(1, f.part(0, 64), 1) == Status::success);
  CHECK(f.put({.operation = 1}, 0, 8, 1) == Status::success);
  REQUIRE(f.table.post(1, f.part(64, 64), 1) == Status::success);
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 2}.at(0), 8);
  CHECK(get(f.table, Put{}.at(0), 8).status == Status::success);
  REQUIRE(f.table.close(1) == Status::success);
  CHECK(get(f.table, Put{}.at(0), 8).status == Status::mailbox_closed);
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_closed);
}

TEST_CASE("negative_acks_off__of_the_catch_all_or_with_drop__nothing_is_said") {
  Fixture f({.key = 3, .negative_acks = false});
  f.table.set_catch_all(1);
  CHECK(f.put({.mailbox = 77}, 0, 8, 1) == Status::withheld);  // its refusal, whatever is said of unknown ones
  REQUIRE(f.table.post(1, f.part(0, 8), 1) == Status::success);
  CHECK(f.put({.mailbox = 77}, 0, 9, 1) == Status::withheld);
  for (const bool answers : {false, true}) {
    Fixture drop({.key = 7, .negative_acks = answers, .when_empty = WhenEmpty::drop});
    CHECK(drop.put({.epoch = 1}, 0, 8, 1) == Status::withheld);
    REQUIRE(drop.table.post(1, drop.part(0, 64), 1) == Status::success);
    REQUIRE(drop.table.post(1, drop.part(64, 64), 2) == Status::success);
    CHECK(drop.put({.epoch = 1}, 0, 8, 1) == (answers ? Status::mailbox_empty : Status::withheld));  // its turn comes
  }
}

TEST_CASE("held_puts_and_hints_owed__bounded_in_number_too") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = uint64_t{1} << 30});
  uint64_t held = 0;
  while (held < 100'000 && f.put({.operation = held}, 0, 1, 1) == Status::success) ++held;
  CHECK(held == held_operations_max);
  Fixture hints({.key = 7, .hints = true});
  for (uint64_t i = 0; i < hints_owed_max + 10; ++i)
    CHECK(hints.table.begin_write(i, Put{}.at(0), 8).status == Status::mailbox_empty);
  REQUIRE(hints.table.post(1, hints.part(0, 64), 1) == Status::success);
  size_t told = 0;
  while (hints.table.next_hint(0)) ++told;
  CHECK(told == hints_owed_max);
}

TEST_CASE("held_put__only_the_buffer_that_it_waits_for_bounds_it_and_its_fragments_agree") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 128});
  REQUIRE(f.table.post(1, f.part(0, 8), 1) == Status::success);
  const Put next{.operation = 1, .epoch = 1, .base = 0, .total = 32};
  CHECK(f.put(next, 0, 16, 1) == Status::success);  // the head is smaller, and not its buffer
  Put other = next;
  other.epoch = 2;
  CHECK(f.put(other, 16, 16, 1) == Status::invalid);
  CHECK(f.put(next, 16, 16, 1) == Status::success);
  REQUIRE(f.table.post(1, f.part(64, 40), 2) == Status::success);
  CHECK(f.put({.operation = 2, .epoch = 1}, 0, 41, 2) == Status::mailbox_too_long);  // its buffer is posted already
}

TEST_CASE("held_puts__dropped_by_a_rewind__all_of_their_room_is_free_again") {
  Fixture f({.key = 7, .when_empty = WhenEmpty::hold, .held_bytes_max = 16});
  CHECK(f.put({.operation = 1}, 0, 16, 1) == Status::success);
  std::vector<CompletedBuffer> undone;
  REQUIRE(f.table.rewind(1, 0, undone) == Status::success);
  CHECK(f.put({.operation = 2, .incarnation = 1}, 0, 16, 2) == Status::success);
  CHECK(f.put({.operation = 3, .incarnation = 1}, 0, 1, 2) == Status::mailbox_empty);
}

TEST_CASE("completion_record__bytes_and_holes__as_a_completion_says_them") {
  Fixture f({.key = 7, .threshold = 2});
  CompletionRecord record;
  REQUIRE(f.table.post(1, f.part(0, 64), {.context = 9, .record = &record}) == Status::success);
  CHECK(f.put({.operation = 1}, 0, 8, 1) == Status::success);
  CHECK(f.put({.operation = 2}, 16, 8, 1) == Status::success);
  CHECK(record.buffer == f.memory.data());
  CHECK(record.length_bytes == 24);
  CHECK(record.bytes == 16);
  CHECK(record.count == 2);
  CHECK(record.context == 9);
  CHECK(record.address == 1);
  CHECK(record.has_holes);
  CHECK(record.status == Status::success);
}

TEST_CASE("closed_mailbox__opened_and_closed_again__is_remembered_for_its_last_end") {
  Fixture f({.key = 7}, {.closed_remembered_max = 2});
  REQUIRE(f.table.close(1) == Status::success);
  REQUIRE(f.table.open(1, {.key = 8}) == Status::success);
  REQUIRE(f.table.close(1) == Status::success);
  REQUIRE(f.table.open(2, {}) == Status::success);
  REQUIRE(f.table.close(2) == Status::success);  // the first end of 1 is forgotten, its last one is not
  CHECK(f.put({}, 0, 8, 1) == Status::mailbox_closed);
  CHECK(f.table.open(1, {.key = 8}) == Status::mailbox_key);
  REQUIRE(f.table.open(3, {}) == Status::success);
  REQUIRE(f.table.close(3) == Status::success);
  CHECK(f.put({}, 0, 8, 1) == Status::mailbox_unknown);
}

TEST_CASE("tickets__of_what_has_ended__name_nothing_though_their_slot_is_used_again") {
  Fixture f({.key = 7, .threshold = 5});
  std::vector<std::byte> buffer = fill(64, 0);
  REQUIRE(f.table.post(1, buffer, 1) == Status::success);
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (uint64_t i = 0; i < 5; ++i) {
    const ports::Admission one = f.table.begin_write(1, Put{.operation = i}.at(8 * i), 8);
    REQUIRE(one.status == Status::success);
    CHECK(seen.insert({one.ticket.index, one.ticket.generation}).second);
    CHECK_FALSE(f.table.write_span(one.ticket, 0).empty());
    CHECK(f.table.end_write(one.ticket, true).status == Status::success);
    CHECK(f.table.write_span(one.ticket, 0).empty());
  }
}

TEST_CASE("closed_mailbox__open_again_when_its_end_would_be_forgotten__stays_open") {
  Fixture f({.key = 7}, {.closed_remembered_max = 1});
  REQUIRE(f.table.close(1) == Status::success);
  REQUIRE(f.table.open(1, {.key = 8}) == Status::success);
  std::vector<std::byte> buffer = fill(8, 0);
  REQUIRE(f.table.post(1, buffer, 1) == Status::success);
  REQUIRE(f.table.open(2, {.key = 2}) == Status::success);
  REQUIRE(f.table.close(2) == Status::success);  // the end of 1 leaves the list
  CHECK(f.put({.mailbox = 2, .key = 2}, 0, 8, 1) == Status::mailbox_closed);
  CHECK(f.put({.key = 8}, 0, 8, 1) == Status::success);
}

TEST_CASE("unique_buffer__as_many_ranges_as_are_kept__then_no_buffers_until_some_melt") {
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 0, .unique = true}, {.operations_per_buffer_max = 1u << 20});
  std::vector<std::byte> large = fill(4 * coverage_ranges_max, 0);
  REQUIRE(f.table.post(1, large, 1) == Status::success);
  uint64_t placed = 0;
  while (placed < 2 * coverage_ranges_max && f.put({.operation = placed}, 2 * placed, 1, 1) == Status::success) ++placed;
  CHECK(placed == coverage_ranges_max);
  CHECK(f.put({.operation = placed + 1}, 1, 1, 1) == Status::no_buffers);  // it would fit between two, but that is not known before
}
