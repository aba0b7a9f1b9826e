// What the paper states: one test for each of the twelve sentences of RVMA §III-§IV that fix a behaviour.
#include "core/rvma/buffer_state.h"
#include "tests/unit/rvma/fixture.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

TEST_CASE("rvma_row_1__an_address_is_an_opaque_number__exact_lookup_one_answer_no_wildcards") {
  Fixture f;
  REQUIRE(f.table.open(0x11, {.key = 7}) == Status::success);
  std::vector<std::byte> buffer = fill(64, 0xee);
  REQUIRE(f.table.post(0x11, buffer, 5) == Status::success);
  for (const uint64_t near : {uint64_t{0x10}, uint64_t{0x12}, uint64_t{0x1100}, uint64_t{0x11} << 56, ~uint64_t{0x11}}) {
    CHECK(f.begin(Put{.mailbox = near}.at(0), 8) == Status::mailbox_unknown);
  }
  CHECK(f.put({.mailbox = 0x11}, 0, fill(8, 1)) == Status::success);
  CHECK(f.table.next_completion()->mailbox == 0x11);
  CHECK(f.table.epoch(1) == 0u);  // the other one saw nothing
}

TEST_CASE("rvma_row_2__no_arithmetic_across_mailboxes__neighbouring_numbers_are_separate") {
  Fixture f;
  std::vector<std::byte> first = fill(64, 0xee), second = fill(64, 0xee);
  REQUIRE(f.table.open(0x11FF0011, {.key = 7}) == Status::success);
  REQUIRE(f.table.open(0x11FF0031, {.key = 7}) == Status::success);
  REQUIRE(f.table.post(0x11FF0011, first, 1) == Status::success);
  REQUIRE(f.table.post(0x11FF0031, second, 2) == Status::success);
  CHECK(f.put({.mailbox = 0x11FF0011, .operation = 1}, 0, fill(32, 1)) == Status::success);
  CHECK(f.put({.mailbox = 0x11FF0031, .operation = 2}, 0, fill(32, 2)) == Status::success);
  CHECK(f.table.next_completion()->length_bytes == 32);
  CHECK(f.table.next_completion()->length_bytes == 32);
  CHECK(first[31] == std::byte{1});
  CHECK(first[32] == std::byte{0xee});  // not continued by the neighbour
  CHECK(second[0] == std::byte{2});
}

TEST_CASE("rvma_row_3__a_mailbox_is_a_queue__operations_touch_only_the_head") {
  Fixture f({.key = 7, .threshold = 2});
  f.post_both();
  CHECK(f.put({.operation = 1}, 10, fill(4, 1)) == Status::success);
  CHECK(f.a[10] == std::byte{1});
  CHECK(f.b == fill(64, 0xee));
  CHECK(f.put({.operation = 2}, 20, fill(4, 2)) == Status::success);
  CHECK(f.put({.operation = 3}, 10, fill(4, 3)) == Status::success);
  CHECK(f.a[10] == std::byte{1});
  CHECK(f.b[10] == std::byte{3});
}

TEST_CASE("rvma_row_4__the_window_gives_the_threshold__a_post_overrides_it") {
  Fixture f({.key = 7, .type = ThresholdType::operations, .threshold = 2});
  CompletionRecord record;
  REQUIRE(f.table.post(1, f.a, {.context = 5, .threshold = 24, .type = ThresholdType::bytes, .record = &record}) ==
          Status::success);
  REQUIRE(f.table.post(1, f.b, 6) == Status::success);
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);
  CHECK(f.put({.operation = 2}, 8, fill(8, 1)) == Status::success);
  CHECK(record.buffer == nullptr);  // two operations, but it counts bytes
  CHECK(f.put({.operation = 3}, 16, fill(8, 1)) == Status::success);
  REQUIRE(record.buffer == f.a.data());
  CHECK(record.count == 24);
  CHECK(record.context == 5);
  CHECK(f.put({.operation = 4}, 0, fill(8, 1)) == Status::success);
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.put({.operation = 5}, 8, fill(8, 1)) == Status::success);
  const auto second = f.table.next_completion();  // the window's default: two operations
  REQUIRE(second);
  CHECK(second->context == 6);
  CHECK(second->count == 2);
  CHECK(second->bytes == 16);
}

TEST_CASE("rvma_row_5__at_the_threshold__pointer_and_length_are_told_and_the_next_is_head") {
  Fixture f;
  CompletionRecord first, second;
  static_assert(sizeof(CompletionRecord) == 64 && alignof(CompletionRecord) == 64);
  REQUIRE(f.table.post(1, f.a, {.record = &first}) == Status::success);
  REQUIRE(f.table.post(1, f.b, {.record = &second}) == Status::success);
  const Put same{.operation = 1};
  CHECK(f.put(same, 8, fill(16, 1)) == Status::success);
  CHECK(first.buffer == f.a.data());
  CHECK(first.length_bytes == 24);
  CHECK(first.epoch == 0);
  CHECK(first.status == Status::success);
  CHECK(first.has_holes);
  CHECK(second.buffer == nullptr);
  CHECK(f.put({.operation = 2}, 0, fill(16, 2)) == Status::success);
  CHECK(f.a[8] == std::byte{1});  // deactivated: not written again
  CHECK(second.buffer == f.b.data());
  CHECK(second.epoch == 1);
  CHECK_FALSE(second.has_holes);
}

TEST_CASE("rvma_row_6__a_buffer_in_progress_is_hidden__each_completion_stands_alone") {
  Fixture f({.key = 7, .threshold = 3});
  std::vector<std::vector<std::byte>> buffers(500, fill(64, 0));
  std::vector<CompletionRecord> records(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) REQUIRE(f.table.post(1, buffers[i], {.record = &records[i]}) == Status::success);
  uint64_t operation = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const std::vector<std::byte> before(reinterpret_cast<std::byte*>(&records[i]), reinterpret_cast<std::byte*>(&records[i] + 1));
    for (int put = 0; put < 2; ++put) CHECK(f.put({.operation = ++operation}, 0, fill(8, 1)) == Status::success);
    const std::vector<std::byte> amid(reinterpret_cast<std::byte*>(&records[i]), reinterpret_cast<std::byte*>(&records[i] + 1));
    CHECK(amid == before);  // not one bit of the line
    CHECK(f.put({.operation = ++operation}, 0, fill(8, 1)) == Status::success);
    CHECK(records[i].buffer == buffers[i].data());
  }
  CHECK_FALSE(f.table.next_completion());                                    // nothing went to a shared queue
  for (size_t i = 0; i < buffers.size(); ++i) CHECK(records[i].epoch == i);  // and nobody had looked until now
}

TEST_CASE("rvma_row_7__arrival_order_is_irrelevant__a_window_written_in_reverse") {
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 64});
  f.post_both();
  for (uint64_t at = 64; at-- > 0;) CHECK(f.put({.operation = 100 - at}, at, fill(1, int(at))) == Status::success);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->length_bytes == 64);
  CHECK_FALSE(done->has_holes);
  for (uint64_t at = 0; at < 64; ++at) CHECK(f.a[at] == static_cast<std::byte>(at));
}

TEST_CASE("rvma_row_7__two_puts_that_reach_the_threshold__two_buffers_offsets_build_one") {
  Fixture two;
  two.post_both();
  CHECK(two.put({.operation = 1}, 0, fill(32, 1)) == Status::success);
  CHECK(two.put({.operation = 2}, 32, fill(32, 2)) == Status::success);
  CHECK(two.table.next_completion()->buffer == two.a.data());
  CHECK(two.table.next_completion()->buffer == two.b.data());
  Fixture one({.key = 7, .type = ThresholdType::bytes, .threshold = 64});
  one.post_both();
  CHECK(one.put({.operation = 1}, 0, fill(32, 1)) == Status::success);
  CHECK(one.put({.operation = 2}, 32, fill(32, 2)) == Status::success);
  const auto done = one.table.next_completion();
  REQUIRE(done);
  CHECK(done->length_bytes == 64);
  CHECK(one.a[31] == std::byte{1});
  CHECK(one.a[32] == std::byte{2});
  CHECK_FALSE(one.table.next_completion());
}

TEST_CASE("rvma_row_8__no_handshake_any_number_of_initiators__share_a_mailbox") {
  constexpr uint64_t sources = 1000;
  Fixture f({.key = 7, .threshold = sources});
  std::vector<std::byte> buffer(sources);
  REQUIRE(f.table.post(1, buffer, 1) == Status::success);
  for (uint64_t s = 0; s < sources; ++s)  // the same operation number from each: they are different puts
    CHECK(f.put({.source = s + 1, .operation = 1}, s, fill(1, 1), s) == Status::success);
  CHECK(f.table.next_completion()->count == sources);
  CHECK(buffer == fill(sources, 1));
}

TEST_CASE("rvma_row_9__inc_epoch_hands_over_a_partial_buffer__get_buf_ptrs_says_how_many") {
  Fixture f({.key = 7, .threshold = 0, .retired_max = 3});
  std::vector<std::vector<std::byte>> buffers(5, fill(64, 0));
  for (auto& buffer : buffers) REQUIRE(f.table.post(1, buffer, 1) == Status::success);
  std::vector<CompletedBuffer> out(5);
  CHECK(f.table.buffer_pointers(1, out) == 0);
  for (uint64_t i = 0; i < 5; ++i) {
    CHECK(f.table.epoch(1) == i);
    CHECK(f.put({.operation = i}, 0, fill(i + 1, 1)) == Status::success);
    CHECK(f.table.increment_epoch(1) == Status::success);
    CHECK(f.table.buffer_pointers(1, out) == std::min<uint64_t>(i + 1, 3));
  }
  CHECK(f.table.buffer_pointers(1, std::span(out).first(2)) == 2);
  CHECK(f.table.buffer_pointers(1, out) == 3);
  for (size_t i = 0; i < 3; ++i) {  // newest first
    CHECK(out[i].memory.data() == buffers[4 - i].data());
    CHECK(out[i].epoch == 4 - i);
    CHECK(out[i].length_bytes == 5 - i);
  }
  CHECK(f.table.buffer_pointers(99, out) == 0);
  REQUIRE(f.table.post(1, buffers[4], 1) == Status::success);  // posted again: it is not a completed one any more
  CHECK(f.table.buffer_pointers(1, out) == 2);
  CHECK(f.table.release(1, buffers[3].data()) == Status::success);
  CHECK(f.table.release(1, buffers[3].data()) == Status::not_found);
  CHECK(f.table.buffer_pointers(1, out) == 1);
}

TEST_CASE("rvma_row_10__close__later_operations_are_discarded_and_nacked_or_not") {
  const bool nacks = GENERATE(true, false);
  Fixture f({.key = 7, .negative_acks = nacks});
  f.post_both();
  const ports::Admission placing = f.table.begin_write(1, Put{.operation = 1}.at(0), 8);
  CHECK(f.table.close(1) == Status::success);
  const Status answer = nacks ? Status::mailbox_closed : Status::withheld;
  CHECK(f.begin(Put{.operation = 2}.at(0), 8) == answer);
  CHECK(f.table.end_write(placing.ticket, false).status == answer);  // the one in the middle too
  CHECK_FALSE(f.table.closing(1));
  CHECK(f.begin(Put{.operation = 2}.at(0), 8) == answer);  // gone, and still not answered
  CHECK(f.table.begin_read(1, Put{}.at(0), 8).status == answer);
  CHECK(f.begin(Put{.key = 8, .operation = 3}.at(0), 8) == answer);
  CHECK(f.a == fill(64, 0xee));
  CHECK(f.counters.get(Counter::mailbox_rejected) == 4);
}

TEST_CASE("rvma_row_10__negative_acks_off__nothing_is_said_of_any_refusal") {
  Fixture f({.key = 7, .negative_acks = false});
  CHECK(f.begin(Put{.key = 8}.at(0), 8) == Status::withheld);
  CHECK(f.begin(Put{}.at(0), 8) == Status::withheld);
  f.post_both();
  CHECK(f.begin(Put{}.at(0), 65) == Status::withheld);
  CHECK(f.put({.operation = 1}, 0, fill(8, 1)) == Status::success);  // what is good is acknowledged
  CHECK(place(f.table, Put{.operation = 1}.at(0), fill(8, 1)).duplicate);
  Fixture quiet({.key = 7}, {.unknown_nacks = false});
  CHECK(quiet.begin(Put{.mailbox = 2}.at(0), 8) == Status::withheld);
  CHECK(quiet.begin(Put{}.at(0), 8) == Status::mailbox_empty);
}

TEST_CASE("rvma_row_11__managed__puts_are_placed_one_after_the_other_like_a_socket") {
  Fixture f({.key = 7, .type = ThresholdType::bytes, .threshold = 60, .placement = Placement::managed});
  f.post_both();
  CHECK(f.put({.operation = 1}, 1000, fill(10, 1)) == Status::success);  // the offset says nothing
  CHECK(f.put({.source = 2, .operation = 1}, ~uint64_t{0} - 100, fill(20, 2)) == Status::success);
  const Put split{.operation = 2, .base = 500, .total = 30};
  CHECK(f.put(split, 520, fill(10, 5)) == Status::success);  // its last part comes first
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.put(split, 500, fill(20, 4)) == Status::success);
  CHECK(place(f.table, split.at(500), fill(20, 9)).duplicate);
  const auto done = f.table.next_completion();
  REQUIRE(done);
  CHECK(done->length_bytes == 60);
  CHECK(done->count == 60);
  CHECK_FALSE(done->has_holes);
  std::vector<std::byte> expected = fill(64, 0xee);
  std::fill_n(expected.begin(), 10, std::byte{1});
  std::fill_n(expected.begin() + 10, 20, std::byte{2});
  std::fill_n(expected.begin() + 30, 20, std::byte{4});
  std::fill_n(expected.begin() + 50, 10, std::byte{5});
  CHECK(f.a == expected);
}

TEST_CASE("rvma_row_11__managed_and_nothing_fits_behind__the_buffer_ends_before_the_put") {
  Fixture f({.key = 7, .threshold = 0, .placement = Placement::managed});
  f.post_both();
  CHECK(f.put({.operation = 1}, 0, fill(40, 1)) == Status::success);
  CHECK(f.begin(Put{.operation = 2}.at(0), 65) == Status::mailbox_too_long);  // that would fit nowhere: it ends nothing
  CHECK(f.put({.operation = 3}, 0, fill(24, 3)) == Status::success);          // exactly
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.put({.operation = 4}, 0, fill(25, 4)) == Status::success);
  CHECK(f.table.next_completion()->length_bytes == 64);
  CHECK(f.b[24] == std::byte{4});
  const Put slow{.operation = 5, .base = 0, .total = 20};
  CHECK(f.put(slow, 0, fill(10, 5)) == Status::success);
  CHECK(f.begin(Put{.operation = 6}.at(0), 40) == Status::mailbox_empty);  // after the bound one, in another buffer
  CHECK_FALSE(f.table.next_completion());
  CHECK(f.put(slow, 10, fill(10, 5)) == Status::success);
  CHECK(f.table.next_completion()->length_bytes == 45);
}

TEST_CASE("rvma_row_11__managed_and_a_put_breaks_before_its_first_byte__place_is_used_again") {
  Fixture f({.key = 7, .threshold = 2, .placement = Placement::managed});
  f.post_both();
  const ports::Admission broken = f.table.begin_write(1, Put{.operation = 1}.at(0), 20);
  CHECK(f.table.end_write(broken.ticket, false).status == Status::disconnected);
  CHECK(f.put({.operation = 2}, 0, fill(10, 2)) == Status::success);
  CHECK(f.put({.operation = 1}, 0, fill(20, 1)) == Status::success);
  const auto done = f.table.next_completion();
  CHECK(done->length_bytes == 30);
  CHECK_FALSE(done->has_holes);
  CHECK(f.a[0] == std::byte{2});
  CHECK(f.a[10] == std::byte{1});
}

TEST_CASE("rvma_row_12__rewind__retired_buffers_come_back_with_what_was_written_into_them") {
  Fixture f({.key = 7, .retired_max = 4});
  std::vector<std::vector<std::byte>> buffers(4, fill(64, 0));
  for (size_t i = 0; i < buffers.size(); ++i) {
    REQUIRE(f.table.post(1, buffers[i], i) == Status::success);
    REQUIRE(f.put({.operation = i}, 0, fill(8 + i, int(i) + 1)) == Status::success);
  }
  buffers[2][0] = std::byte{0x77};  // the application's
  std::vector<CompletedBuffer> undone;
  REQUIRE(f.table.rewind(1, 2, undone) == Status::success);
  REQUIRE(undone.size() == 2);
  CHECK(undone[0].memory.data() == buffers[2].data());
  CHECK(undone[0].memory[0] == std::byte{0x77});
  CHECK(undone[0].memory[1] == std::byte{3});
  CHECK(undone[0].epoch == 2);
  CHECK(undone[0].length_bytes == 10);
  CHECK(undone[1].memory.data() == buffers[3].data());
  CHECK(f.table.epoch(1) == 2u);
}

TEST_CASE("rvma_row_12__get_and_catch_all__are_there") {
  Fixture f({.key = 7, .retired_max = 1});
  REQUIRE(f.table.post(1, f.a, 1) == Status::success);
  REQUIRE(f.put({.operation = 1}, 0, fill(8, 9)) == Status::success);
  CHECK(get(f.table, Put{}.at(0), 8).bytes == fill(8, 9));
  REQUIRE(f.table.open(50, {}) == Status::success);
  f.table.set_catch_all(50);
  REQUIRE(f.table.post(50, f.b, 2) == Status::success);
  CHECK(f.put({.mailbox = 0xabcdef, .key = 123}, 0, fill(8, 3)) == Status::success);
  CHECK(f.b[7] == std::byte{3});
}
