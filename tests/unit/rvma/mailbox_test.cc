// Puts into mailboxes: thresholds, epochs, duplicates, broken fragments, and the owner's mistakes.
#include <catch2/catch.hpp>

#include "core/rvma/operation.h"
#include "tests/unit/rvma/place.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

namespace {

struct Fixture {
  Counters counters;
  MailboxTable table;
  std::vector<std::byte> a = fill(64, 0xee);
  std::vector<std::byte> b = fill(64, 0xee);

  explicit Fixture(MailboxOptions options = {7, ThresholdType::operations, 1, true}, MailboxTable::Limits limits = {})
      : table(limits, counters) {
    REQUIRE(table.open(1, options) == Status::success);
  }
  void post_both() {
    REQUIRE(table.post(1, a, 100) == Status::success);
    REQUIRE(table.post(1, b, 101) == Status::success);
  }
  Status begin(const ports::RemoteRef& ref, uint64_t length) { return table.begin_write(1, ref, length).status; }
};

}  // namespace

TEST_CASE("mailbox__one_put_reaches_the_threshold__published_and_next_is_head") {
  Fixture f;
  f.post_both();
  CHECK(f.table.epoch(1) == 0u);
  CHECK(place(f.table, Put{.operation = 1}.at(8), fill(16, 1)).status == Status::success);
  const std::optional<Completion> done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->buffer == f.a.data());
  CHECK(done->length_bytes == 24);
  CHECK(done->count == 1);
  CHECK(done->epoch == 0);
  CHECK(done->mailbox == 1);
  CHECK(done->context == 100);
  CHECK(done->status == Status::success);
  CHECK(done->has_holes);  // [0, 8) never came
  CHECK(f.a[7] == std::byte{0xee});
  CHECK(f.a[8] == std::byte{1});
  CHECK(f.a[24] == std::byte{0xee});
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.epoch(1) == 1u);
  CHECK(place(f.table, Put{.operation = 2}.at(0), fill(64, 2)).status == Status::success);
  const std::optional<Completion> second = f.table.next_completion();
  REQUIRE(second);
  CHECK(second->buffer == f.b.data());
  CHECK_FALSE(second->has_holes);
}

TEST_CASE("mailbox__refusals__each_with_its_reason_and_no_byte") {
  Fixture f;
  CHECK(f.begin(Put{.mailbox = 2}.at(0), 8) == Status::mailbox_unknown);
  CHECK(f.begin(Put{.key = 8}.at(0), 8) == Status::mailbox_key);
  CHECK(f.begin(Put{}.at(0), 8) == Status::mailbox_empty);
  f.post_both();
  CHECK(f.begin(Put{}.at(0), 0) == Status::invalid);
  CHECK(f.begin(Put{}.at(0), 65) == Status::mailbox_too_long);
  CHECK(f.begin(Put{}.at(60), 5) == Status::mailbox_too_long);
  CHECK(f.begin(Put{}.at(~uint64_t{0}), 2) == Status::mailbox_too_long);
  CHECK(f.begin(Put{.base = 0, .total = 65}.at(0), 8) == Status::mailbox_too_long);  // whole, though this part would fit
  CHECK(f.begin(Put{.base = ~uint64_t{0} - 3, .total = 8}.at(~uint64_t{0} - 3), 2) == Status::mailbox_too_long);
  CHECK(f.begin(Put{.base = 8, .total = 8}.at(0), 8) == Status::invalid);  // outside its own put
  CHECK(f.begin(Put{.base = 8, .total = 8}.at(12), 8) == Status::invalid);
  CHECK(f.begin(Put{.base = 0, .total = 8}.at(~uint64_t{0}), 8) == Status::invalid);
  CHECK(f.begin(Put{.epoch = 1}.at(0), 8) == Status::mailbox_empty);  // yet to come, although a buffer for it is posted
  REQUIRE(f.table.increment_epoch(1) == Status::success);
  CHECK(f.begin(Put{.epoch = 0}.at(0), 8) == Status::mailbox_stale);
  CHECK(f.counters.get(Counter::mailbox_rejected) == 14);
  CHECK(f.a == fill(64, 0xee));
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.begin(Put{}.at(0), 8) == Status::mailbox_closed);
  CHECK(f.table.close(1) == Status::mailbox_unknown);
  CHECK(f.table.open(1, {.key = 8}) == Status::success);
  CHECK(f.begin(Put{}.at(0), 8) == Status::mailbox_key);  // a late put to the mailbox that was
}

TEST_CASE("mailbox__owner_mistakes__statuses") {
  Fixture f({.key = 7}, {.mailboxes_max = 2, .buffers_per_mailbox_max = 2});
  CHECK(f.table.open(1, {}) == Status::busy);
  CHECK(f.table.open(2, {}) == Status::success);
  CHECK(f.table.open(3, {}) == Status::no_memory);
  CHECK(f.table.post(3, f.a, 0) == Status::mailbox_unknown);
  CHECK(f.table.post(1, {}, 0) == Status::invalid);
  f.post_both();
  CHECK(f.table.post(1, f.a, 0) == Status::no_buffers);
  CHECK(f.table.increment_epoch(2) == Status::again);
  CHECK(f.table.epoch(2) == 0u);
  CHECK(f.table.increment_epoch(3) == Status::mailbox_unknown);
  CHECK_FALSE(f.table.epoch(3));
  CHECK(f.table.write_span({99, 1}, 0).empty());
  CHECK(f.table.end_write({99, 1}, true).status == Status::error);
  CHECK(f.table.end_write({}, true).status == Status::error);
}

TEST_CASE("mailbox__duplicate_while_placing_and_after__busy_then_acked") {
  Fixture f;
  f.post_both();
  const Put put{.operation = 9};
  const ports::Admission first = f.table.begin_write(1, put.at(0), 8);
  REQUIRE(first.status == Status::success);
  CHECK(f.begin(put.at(0), 8) == Status::mailbox_busy);
  CHECK(f.table.write_span(first.ticket, 0).size() == 8);
  CHECK(f.table.write_span(first.ticket, 5).data() == f.a.data() + 5);
  CHECK(f.table.write_span(first.ticket, 8).empty());
  CHECK(f.table.end_write(first.ticket, true).status == Status::success);
  CHECK(f.table.end_write(first.ticket, true).status == Status::error);  // a ticket ends once
  CHECK(f.table.write_span(first.ticket, 0).empty());
  // Its epoch is published: acked again, not placed in the next, with and without an expected epoch.
  for (const uint64_t epoch : {ports::PutOperation::any_epoch, uint64_t{0}}) {
    const Placed again = place(f.table, Put{.operation = 9, .epoch = epoch}.at(0), fill(8, 5));
    CHECK(again.status == Status::success);
    CHECK(again.duplicate);
  }
  CHECK(f.b == fill(64, 0xee));
  CHECK(f.table.next_completion());
  CHECK_FALSE(f.table.next_completion());
}

TEST_CASE("mailbox__broken_fragment__absent_and_placed_when_sent_again") {
  Fixture f;
  f.post_both();
  const Put put{.operation = 3, .base = 0, .total = 16};
  const ports::Admission broken = f.table.begin_write(1, put.at(0), 8);
  CHECK(f.table.end_write(broken.ticket, false).status == Status::disconnected);
  CHECK(place(f.table, put.at(8), fill(8, 2)).status == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(place(f.table, put.at(0), fill(8, 1)).status == Status::success);
  const std::optional<Completion> done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->length_bytes == 16);
  CHECK_FALSE(done->has_holes);
  CHECK(f.a[0] == std::byte{1});
  CHECK(f.a[15] == std::byte{2});
}

TEST_CASE("mailbox__fragments_that_contradict__invalid") {
  Fixture f;
  f.post_both();
  CHECK(place(f.table, Put{.operation = 3, .epoch = 0, .base = 0, .total = 16}.at(0), fill(8, 1)).status == Status::success);
  CHECK(f.begin(Put{.operation = 3, .epoch = 0, .base = 0, .total = 24}.at(8), 8) == Status::invalid);
  CHECK(f.begin(Put{.operation = 3, .epoch = 0, .base = 8, .total = 16}.at(8), 8) == Status::invalid);
  CHECK(f.begin(Put{.operation = 3, .epoch = 1, .base = 0, .total = 16}.at(8), 8) == Status::invalid);
  CHECK(f.begin(Put{.operation = 3, .epoch = 0}.at(8), 8) == Status::invalid);
}

TEST_CASE("mailbox__threshold_crossed_while_others_are_bound__closing_until_they_are_placed") {
  Fixture f;
  f.post_both();
  const Put slow{.operation = 1, .base = 0, .total = 32};
  CHECK(place(f.table, slow.at(0), fill(8, 1)).status == Status::success);
  CHECK(place(f.table, Put{.operation = 2}.at(40), fill(8, 2)).status == Status::success);
  CHECK_FALSE(f.table.next_completion());                                             // one operation counted, another one bound
  CHECK(f.begin(Put{.operation = 3}.at(0), 8) == Status::mailbox_empty);              // comes back for the next
  CHECK(f.begin(Put{.operation = 3, .epoch = 0}.at(0), 8) == Status::mailbox_stale);  // never
  CHECK(place(f.table, Put{.operation = 2}.at(40), fill(8, 9)).duplicate);
  CHECK(place(f.table, slow.at(8), fill(24, 1)).status == Status::success);
  const std::optional<Completion> done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == 2);
  CHECK(done->length_bytes == 48);
  CHECK(done->has_holes);
  CHECK(f.a[40] == std::byte{2});
  CHECK(place(f.table, Put{.operation = 3}.at(0), fill(8, 3)).status == Status::success);
  CHECK(f.table.next_completion()->buffer == f.b.data());
}

TEST_CASE("mailbox__closing_and_the_bound_one_breaks__published_without_it") {
  Fixture f;
  f.post_both();
  const ports::Admission slow = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  CHECK(place(f.table, Put{.operation = 2}.at(40), fill(8, 2)).status == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.end_write(slow.ticket, false).status == Status::disconnected);
  const std::optional<Completion> done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == 1);
  // It had placed nothing whole: sent again it is an operation of the next epoch.
  CHECK(place(f.table, Put{.operation = 1}.at(0), fill(8, 1)).status == Status::success);
  CHECK(f.table.next_completion()->buffer == f.b.data());
}

TEST_CASE("mailbox__bytes_threshold__counts_each_byte_of_an_operation_once") {
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 24});
  f.post_both();
  const Put put{.operation = 1, .base = 0, .total = 20};
  CHECK(place(f.table, put.at(0), fill(10, 1)).status == Status::success);
  CHECK(place(f.table, put.at(0), fill(10, 1)).duplicate);
  CHECK(place(f.table, put.at(5), fill(15, 1)).status == Status::success);  // split in another way: five bytes came before
  CHECK_FALSE(f.table.next_completion());
  CHECK(place(f.table, Put{.operation = 2}.at(16), fill(4, 2)).status == Status::success);  // overlap of two operations: gross
  const std::optional<Completion> done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == 24);
  CHECK(done->length_bytes == 20);
  CHECK_FALSE(done->has_holes);
}

TEST_CASE("mailbox__threshold_zero__completed_by_increment_epoch_only") {
  Fixture f({.key = 7, .threshold = 0});
  f.post_both();
  for (uint64_t i = 0; i < 50; ++i) CHECK(place(f.table, Put{.operation = i}.at(i), fill(1, 1)).status == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.increment_epoch(1) == Status::success);
  CHECK(f.table.next_completion()->count == 50);
  CHECK(f.table.increment_epoch(1) == Status::success);  // an empty head
  const std::optional<Completion> empty = f.table.next_completion();
  REQUIRE(empty);
  CHECK(empty->length_bytes == 0);
  CHECK(empty->epoch == 1);
  CHECK_FALSE(empty->has_holes);
  CHECK(f.table.increment_epoch(1) == Status::again);
  CHECK(f.table.epoch(1) == 2u);
}

TEST_CASE("mailbox__increment_epoch_with_a_partial_put__the_rest_never_lands_in_the_next") {
  Fixture f;
  f.post_both();
  const Put put{.operation = 4, .base = 0, .total = 16};
  CHECK(place(f.table, put.at(0), fill(8, 1)).status == Status::success);
  CHECK(f.table.increment_epoch(1) == Status::success);
  const std::optional<Completion> done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->count == 0);
  CHECK(done->length_bytes == 8);
  CHECK(f.begin(put.at(8), 8) == Status::mailbox_stale);
  CHECK(f.begin(put.at(0), 8) == Status::mailbox_stale);
  CHECK(f.b == fill(64, 0xee));
}

TEST_CASE("mailbox__increment_epoch_while_placing__revoked_and_published_when_off") {
  Fixture f;
  f.post_both();
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  CHECK(f.table.increment_epoch(1) == Status::success);
  CHECK(f.table.increment_epoch(1) == Status::busy);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.write_span(placing.ticket, 0).empty());
  CHECK(f.begin(Put{.operation = 1}.at(0), 8) == Status::mailbox_stale);
  CHECK(f.begin(Put{.operation = 2}.at(0), 8) == Status::mailbox_empty);
  CHECK(f.table.end_write(placing.ticket, true).status == Status::mailbox_stale);
  const std::optional<Completion> done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->length_bytes == 0);
  CHECK(f.table.epoch(1) == 1u);
}

TEST_CASE("mailbox__close_while_placing__cancelled_when_off_the_buffer") {
  Fixture f;
  f.post_both();
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  CHECK(f.table.close(1) == Status::success);
  CHECK(f.table.closing(1));
  CHECK(f.table.close(1) == Status::mailbox_closed);
  CHECK(f.table.post(1, f.a, 0) == Status::mailbox_closed);
  CHECK(f.table.open(1, {}) == Status::busy);
  CHECK(f.table.increment_epoch(1) == Status::mailbox_closed);
  CHECK_FALSE(f.table.epoch(1));
  CHECK(f.table.write_span(placing.ticket, 0).empty());
  CHECK(f.begin(Put{.operation = 2}.at(0), 8) == Status::mailbox_closed);
  const std::optional<Completion> untouched = f.table.next_completion();  // nobody was in the second one
  REQUIRE(untouched);
  CHECK(untouched->status == Status::cancelled);
  CHECK(untouched->buffer == nullptr);
  CHECK(untouched->context == 101);
  CHECK(untouched->epoch == 1);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.table.end_write(placing.ticket, false).status == Status::mailbox_closed);  // the transport gives up at the empty span
  const std::optional<Completion> head = f.table.next_completion();
  REQUIRE(head);
  CHECK(head->context == 100);
  CHECK(head->status == Status::cancelled);
  CHECK_FALSE(f.table.closing(1));
  CHECK(f.begin(Put{}.at(0), 8) == Status::mailbox_closed);
  CHECK(f.table.open(1, {}) == Status::success);
}

TEST_CASE("mailbox__close_unused__all_buffers_back_in_order") {
  Fixture f;
  f.post_both();
  CHECK(f.table.close(1) == Status::success);
  CHECK_FALSE(f.table.closing(1));
  CHECK(f.table.next_completion()->context == 100);
  CHECK(f.table.next_completion()->context == 101);
  CHECK_FALSE(f.table.next_completion());
}

TEST_CASE("mailbox__very_late_duplicate__never_placed_again") {
  Fixture f;
  for (uint64_t i = 0; i < 200; ++i) {
    REQUIRE(f.table.post(1, f.a, i) == Status::success);
    REQUIRE(place(f.table, Put{.operation = i}.at(0), fill(8, 1)).status == Status::success);
    REQUIRE(f.table.next_completion());
  }
  f.a = fill(64, 0xee);
  REQUIRE(f.table.post(1, f.a, 0) == Status::success);
  CHECK(place(f.table, Put{.operation = 199}.at(0), fill(8, 2)).duplicate);
  CHECK(place(f.table, Put{.operation = 0}.at(0), fill(8, 2)).duplicate);
  CHECK(f.begin(Put{.operation = 1000, .epoch = 0}.at(0), 8) == Status::mailbox_stale);
  CHECK(f.a == fill(64, 0xee));
  CHECK(place(f.table, Put{.source = 2, .operation = 0}.at(0), fill(8, 2)).status == Status::success);  // another source
}

TEST_CASE("mailbox__too_many_operations_bound__no_buffers") {
  Fixture f({.key = 7}, {.operations_per_buffer_max = 4});
  f.post_both();
  for (uint64_t i = 0; i < 4; ++i)
    CHECK(place(f.table, Put{.operation = i, .base = 0, .total = 64}.at(0), fill(1, 1)).status == Status::success);
  CHECK(f.begin(Put{.operation = 4}.at(0), 1) == Status::no_buffers);
  CHECK(place(f.table, Put{.operation = 3, .base = 0, .total = 64}.at(1), fill(1, 1)).status == Status::success);
}

TEST_CASE("mailbox__numbers_at_the_ends__ordinary") {
  Fixture f;
  for (const uint64_t number : {uint64_t{0}, ~uint64_t{0}}) {
    CHECK(f.table.close(number) == Status::mailbox_unknown);
    CHECK(f.begin(Put{.mailbox = number, .key = 0}.at(0), 1) == Status::mailbox_unknown);
    CHECK(f.table.open(number, {}) == Status::success);
    CHECK(f.table.post(number, f.a, 5) == Status::success);
    CHECK(place(f.table, Put{.mailbox = number, .key = 0, .operation = 1}.at(0), fill(1, 1)).status == Status::success);
    CHECK(f.table.next_completion()->mailbox == number);
  }
}
