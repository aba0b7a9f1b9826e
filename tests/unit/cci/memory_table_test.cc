// What a peer's handle reaches in registered memory and mailboxes, and what it no longer reaches.
#include "core/cci/memory_table.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <vector>

#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::Handle;
using ports::RemoteRef;

namespace {

struct Fixture {
  CountingEntropy entropy;
  Counters counters;
  MemoryTable table{entropy, counters};
  std::vector<std::byte> memory = std::vector<std::byte>(100, std::byte{0xee});

  static RemoteRef at(const Handle& handle, uint64_t offset) {
    RemoteRef ref;
    ref.handle = handle;
    ref.offset_bytes = offset;
    return ref;
  }
  Status write(const Handle& handle, uint64_t offset, uint64_t length) {
    const ports::Admission admission = table.begin_write(1, at(handle, offset), length);
    return admission.status == Status::success ? table.end_write(admission.ticket, true).status : admission.status;
  }
  Status read(const Handle& handle, uint64_t offset, uint64_t length) {
    const ports::Admission admission = table.begin_read(1, at(handle, offset), length);
    if (admission.status == Status::success) table.end_read(admission.ticket);
    return admission.status;
  }
};

}  // namespace

TEST_CASE("memory_table__write_and_read_inside__the_bytes") {
  Fixture f;
  const Handle handle = f.table.register_region(f.memory, access_read | access_write);
  CHECK(handle.kind == ports::HandleKind::region);
  CHECK(handle.length == 100);
  const ports::Admission write = f.table.begin_write(1, f.at(handle, 10), 20);
  REQUIRE(write.status == Status::success);
  CHECK(f.table.write_span(write.ticket, 0).data() == f.memory.data() + 10);
  CHECK(f.table.write_span(write.ticket, 0).size() == 20);
  CHECK(f.table.write_span(write.ticket, 19).size() == 1);
  CHECK(f.table.write_span(write.ticket, 20).empty());
  CHECK(f.table.write_span(write.ticket, ~uint64_t{0}).empty());
  CHECK(f.table.read_span(write.ticket, 0).empty());  // not a reader's ticket
  f.table.end_read(write.ticket);
  CHECK(f.table.end_write(write.ticket, true).status == Status::success);
  CHECK(f.table.end_write(write.ticket, true).status == Status::error);
  CHECK(f.table.write_span(write.ticket, 0).empty());
  const ports::Admission read = f.table.begin_read(1, f.at(handle, 99), 1);
  REQUIRE(read.status == Status::success);
  CHECK(f.table.read_span(read.ticket, 0).data() == f.memory.data() + 99);
  CHECK(f.table.write_span(read.ticket, 0).empty());
  f.table.end_read(read.ticket);
  CHECK(f.table.read_span(read.ticket, 0).empty());
  const ports::Admission broken = f.table.begin_write(1, f.at(handle, 0), 5);
  CHECK(f.table.end_write(broken.ticket, false).status == Status::disconnected);
}

TEST_CASE("memory_table__a_reader_asks_for_more_than_was_asked__gets_nothing") {
  Fixture f;
  const Handle handle = f.table.register_region(f.memory, access_read);
  const ports::Admission read = f.table.begin_read(1, f.at(handle, 10), 20);
  REQUIRE(read.status == Status::success);
  CHECK(f.table.read_span(read.ticket, 0).data() == f.memory.data() + 10);
  CHECK(f.table.read_span(read.ticket, 0).size() == 20);
  CHECK(f.table.read_span(read.ticket, 19).data() == f.memory.data() + 29);
  CHECK(f.table.read_span(read.ticket, 19).size() == 1);
  for (const uint64_t beyond : {uint64_t{20}, uint64_t{21}, uint64_t{90}, uint64_t{91}, ~uint64_t{0}})
    CHECK(f.table.read_span(read.ticket, beyond).empty());
  ports::Ticket other = read.ticket;
  ++other.generation;
  CHECK(f.table.read_span(other, 0).empty());
  other = read.ticket;
  ++other.index;
  CHECK(f.table.read_span(other, 0).empty());
  CHECK(f.table.deregister_region(handle) == Status::success);
  CHECK(f.table.read_span(read.ticket, 0).empty());
  f.table.end_read(read.ticket);
}

// Two regions behind one another in memory: what was begun in one ends in no byte of the other.
TEST_CASE("memory_table__ticket_of_a_region_that_is_gone__does_not_reach_its_successor") {
  Fixture f;
  const Handle before = f.table.register_region(f.memory, access_read | access_write);
  const ports::Admission read = f.table.begin_read(1, f.at(before, 0), 10);
  const ports::Admission write = f.table.begin_write(1, f.at(before, 0), 10);
  REQUIRE(read.status == Status::success);
  REQUIRE(write.status == Status::success);
  CHECK(f.table.deregister_region(before) == Status::success);
  const Handle next = f.table.register_region(f.memory, access_read | access_write);
  CHECK(next.number == before.number);
  CHECK(f.table.read_span(read.ticket, 0).empty());
  CHECK(f.table.write_span(write.ticket, 0).empty());
  CHECK(f.table.end_write(write.ticket, true).status == Status::rma_handle);
  f.table.end_read(read.ticket);
  CHECK(f.read(next, 0, 10) == Status::success);
}

TEST_CASE("memory_table__out_of_bounds_in_any_way__rma_handle") {
  Fixture f;
  const Handle handle = f.table.register_region(f.memory, access_read | access_write);
  CHECK(f.write(handle, 0, 100) == Status::success);
  for (const auto& [offset, length] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 101},
                                                                                 {1, 100},
                                                                                 {100, 1},
                                                                                 {99, 2},
                                                                                 {~uint64_t{0}, 1},
                                                                                 {~uint64_t{0}, 2},
                                                                                 {1, ~uint64_t{0}},
                                                                                 {50, ~uint64_t{0} - 40}}) {
    CHECK(f.write(handle, offset, length) == Status::rma_handle);
    CHECK(f.read(handle, offset, length) == Status::rma_handle);
  }
  CHECK(f.write(handle, 0, 0) == Status::invalid);
  CHECK(f.read(handle, 100, 0) == Status::invalid);
  CHECK(f.counters.get(Counter::rma_rejected) == 18);
}

TEST_CASE("memory_table__access_not_granted__rma_op") {
  Fixture f;
  const Handle none = f.table.register_region(f.memory, 0);
  const Handle readable = f.table.register_region(f.memory, access_read);
  const Handle writable = f.table.register_region(f.memory, access_write);
  const Handle constant = f.table.register_region(Bytes(f.memory));
  CHECK(f.read(none, 0, 1) == Status::rma_op);
  CHECK(f.write(none, 0, 1) == Status::rma_op);
  CHECK(f.read(readable, 0, 1) == Status::success);
  CHECK(f.write(readable, 0, 1) == Status::rma_op);
  CHECK(f.read(writable, 0, 1) == Status::rma_op);
  CHECK(f.write(writable, 0, 1) == Status::success);
  CHECK(f.read(constant, 0, 1) == Status::success);
  CHECK(f.write(constant, 0, 1) == Status::rma_op);
  Handle forged = readable;
  forged.access = access_read | access_write;  // informative only
  forged.length = 1000;
  CHECK(f.write(forged, 0, 1) == Status::rma_op);
  CHECK(f.read(forged, 100, 1) == Status::rma_handle);
}

TEST_CASE("memory_table__forged_and_stale_handles__rma_handle") {
  Fixture f;
  const Handle handle = f.table.register_region(f.memory, access_read | access_write);
  Handle wrong = handle;
  wrong.key ^= 1;
  CHECK(f.write(wrong, 0, 1) == Status::rma_handle);
  wrong = handle;
  wrong.generation++;
  CHECK(f.write(wrong, 0, 1) == Status::rma_handle);
  wrong = handle;
  wrong.number = ~uint64_t{0};
  CHECK(f.write(wrong, 0, 1) == Status::rma_handle);
  CHECK(f.table.deregister_region(wrong) == Status::rma_handle);
  for (const unsigned kind : {0u, 3u, 255u}) {
    wrong = handle;
    wrong.kind = static_cast<ports::HandleKind>(kind);
    CHECK(f.write(wrong, 0, 1) == Status::rma_handle);
    CHECK(f.read(wrong, 0, 1) == Status::rma_handle);
  }
  CHECK(f.table.deregister_region(handle) == Status::success);
  CHECK(f.table.deregister_region(handle) == Status::rma_handle);
  CHECK(f.write(handle, 0, 1) == Status::rma_handle);
  const Handle again = f.table.register_region(f.memory, access_read | access_write);
  CHECK(again.number == handle.number);  // the slot is used again ...
  CHECK(again.generation != handle.generation);
  CHECK(again.key != handle.key);
  CHECK(f.write(handle, 0, 1) == Status::rma_handle);  // ... and the old name is not
  CHECK(f.write(again, 0, 1) == Status::success);
  CHECK(f.table.register_region(MutableBytes{}, access_read).kind == ports::HandleKind::none);
}

TEST_CASE("memory_table__deregister_while_transferring__revoked_also_if_the_slot_is_reused") {
  Fixture f;
  const Handle handle = f.table.register_region(f.memory, access_read | access_write);
  const ports::Admission write = f.table.begin_write(1, f.at(handle, 0), 10);
  const ports::Admission read = f.table.begin_read(1, f.at(handle, 0), 10);
  const ports::Admission given_up = f.table.begin_write(1, f.at(handle, 20), 10);
  REQUIRE(write.status == Status::success);
  REQUIRE(read.status == Status::success);
  CHECK(f.table.deregister_region(handle) == Status::success);
  CHECK(f.table.write_span(write.ticket, 0).empty());
  std::vector<std::byte> other(100);
  const Handle next = f.table.register_region(other, access_read | access_write);
  REQUIRE(next.number == handle.number);
  CHECK(f.table.write_span(write.ticket, 0).empty());
  CHECK(f.table.read_span(read.ticket, 0).empty());
  CHECK(f.table.end_write(write.ticket, true).status == Status::rma_handle);
  CHECK(f.table.end_write(given_up.ticket, false).status == Status::rma_handle);  // the transport gives up at the empty span
  f.table.end_read(read.ticket);
}

TEST_CASE("memory_table__mailboxes__through_the_same_target") {
  Fixture f;
  REQUIRE(f.table.mailboxes().open(5, {.key = 9}) == Status::success);
  REQUIRE(f.table.mailboxes().post(5, f.memory, 1) == Status::success);
  Handle mailbox;
  mailbox.kind = ports::HandleKind::mailbox;
  mailbox.number = 5;
  mailbox.key = 9;
  const Handle region = f.table.register_region(f.memory, access_write);
  const ports::Admission a = f.table.begin_write(1, f.at(region, 50), 10);
  const ports::Admission b = f.table.begin_write(1, f.at(mailbox, 20), 10);
  REQUIRE(a.status == Status::success);
  REQUIRE(b.status == Status::success);
  CHECK(a.ticket.index != b.ticket.index);
  CHECK(f.table.write_span(a.ticket, 0).data() == f.memory.data() + 50);
  CHECK(f.table.write_span(b.ticket, 0).data() == f.memory.data() + 20);
  CHECK(f.table.end_write(b.ticket, true).status == Status::success);
  CHECK(f.table.end_write(a.ticket, true).status == Status::success);
  CHECK(f.table.mailboxes().next_completion()->length_bytes == 30);
  CHECK(f.table.begin_read(1, f.at(mailbox, 0), 1).status == Status::mailbox_empty);  // it keeps nothing
  mailbox.number = 6;
  CHECK(f.table.begin_write(1, f.at(mailbox, 0), 1).status == Status::mailbox_unknown);
}

TEST_CASE("memory_table__get_from_a_mailbox__through_the_same_target") {
  Fixture f;
  REQUIRE(f.table.mailboxes().open(5, {.key = 9, .retired_max = 1}) == Status::success);
  REQUIRE(f.table.mailboxes().post(5, f.memory, 1) == Status::success);
  const Handle mailbox = f.table.mailboxes().handle(5);
  REQUIRE(f.write(mailbox, 20, 10) == Status::success);
  const ports::Admission get = f.table.begin_read(1, f.at(mailbox, 25), 5);
  REQUIRE(get.status == Status::success);
  CHECK(f.table.read_span(get.ticket, 1).data() == f.memory.data() + 26);
  f.table.end_read(get.ticket);
  CHECK(f.table.read_span(get.ticket, 0).empty());
}

TEST_CASE("memory_table__two_transports_with_the_same_connection_id__have_a_quota_each") {
  Fixture f;
  REQUIRE(f.table.mailboxes().open(5, {.threshold = 0, .operations_per_source_max = 1}) == Status::success);
  REQUIRE(f.table.mailboxes().post(5, f.memory, 1) == Status::success);
  ports::RmaTarget& upper = f.table.target_of_another_transport();
  ports::RmaTarget& lower = f.table.target_of_another_transport();
  RemoteRef put = f.at(f.table.mailboxes().handle(5), 0);
  put.put.total_bytes = 10;
  put.put.source = 1;
  CHECK(upper.begin_write(7, put, 5).status == Status::success);
  put.put.source = 2;
  CHECK(upper.begin_write(7, put, 5).status == Status::no_buffers);
  CHECK(lower.begin_write(7, put, 5).status == Status::success);
}

TEST_CASE("memory_table__hints__wait_at_the_target_of_the_transport_that_has_the_connection") {
  Fixture f;
  REQUIRE(f.table.mailboxes().open(5, {.hints = true}) == Status::success);
  ports::RmaTarget& upper = f.table.target_of_another_transport();
  ports::RmaTarget& lower = f.table.target_of_another_transport();
  CHECK(lower.begin_write(7, f.at(f.table.mailboxes().handle(5), 0), 5).status == Status::mailbox_empty);
  CHECK_FALSE(lower.hint_waits());
  REQUIRE(f.table.mailboxes().post(5, f.memory, 1) == Status::success);
  CHECK_FALSE(upper.hint_waits());
  CHECK_FALSE(upper.next_hint());
  REQUIRE(lower.hint_waits());
  const auto hint = lower.next_hint();
  REQUIRE(hint);
  CHECK(hint->connection == 7);
  CHECK(hint->mailbox == 5);
  CHECK(hint->epoch == 0);
  CHECK_FALSE(lower.hint_waits());
}

TEST_CASE("memory_table__turn__refills_the_limit_of_negative_acks") {
  CountingEntropy entropy;
  Counters counters;
  MemoryTable table(entropy, counters, {.nacks_per_second = 1});
  RemoteRef put;
  put.handle.kind = ports::HandleKind::mailbox;
  CHECK(table.begin_write(1, put, 1).status == Status::mailbox_unknown);
  CHECK(table.begin_write(1, put, 1).status == Status::withheld);
  table.turn(Instant(std::chrono::seconds(1)));
  CHECK(table.begin_write(1, put, 1).status == Status::mailbox_unknown);
}

TEST_CASE("memory_table__resolve_local__checks_like_a_stranger_but_for_access") {
  Fixture f;
  MutableBytes out;
  const Handle handle = f.table.register_region(f.memory, 0);
  const Handle constant = f.table.register_region(Bytes(f.memory));
  CHECK(f.table.resolve_local(handle, 90, 10, true, out) == Status::success);
  CHECK(out.data() == f.memory.data() + 90);
  CHECK(out.size() == 10);
  CHECK(f.table.resolve_local(handle, 91, 10, true, out) == Status::range);
  CHECK(f.table.resolve_local(handle, ~uint64_t{0}, 2, true, out) == Status::range);
  CHECK(f.table.resolve_local(handle, 0, 0, true, out) == Status::range);
  CHECK(f.table.resolve_local(constant, 0, 10, false, out) == Status::success);
  CHECK(f.table.resolve_local(constant, 0, 10, true, out) == Status::rma_op);
  const Handle for_puts = f.table.register_region(f.memory, access_puts);
  CHECK(f.table.resolve_local(for_puts, 0, 10, false, out) == Status::success);
  CHECK(f.table.resolve_local(for_puts, 0, 10, true, out) == Status::rma_op);
  CHECK(f.table.resolve_local({}, 0, 1, false, out) == Status::rma_handle);
}

TEST_CASE("memory_table__name_put__only_the_nameless_each_once") {
  Fixture f;
  ports::PutOperation named;
  named.source = 77;
  named.operation = 3;
  f.table.name_put(named);
  CHECK(named.source == 77);
  CHECK(named.operation == 3);
  ports::PutOperation a, b;
  f.table.name_put(a);
  f.table.name_put(b);
  CHECK(a.source != 0);
  CHECK(a.source == b.source);
  CHECK(a.operation < b.operation);
}

TEST_CASE("memory_table__many_regions_come_and_go__handles_never_repeat") {
  Fixture f;
  std::set<std::pair<uint64_t, uint32_t>> seen;
  std::vector<Handle> live;
  for (int i = 0; i < 2000; ++i) {
    if (live.size() > 20) {
      const size_t index = static_cast<size_t>(i * 7) % live.size();
      CHECK(f.table.deregister_region(live[index]) == Status::success);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
    }
    live.push_back(f.table.register_region(f.memory, access_read));
    CHECK(seen.insert({live.back().number, live.back().generation}).second);
  }
  for (const Handle& handle : live) CHECK(f.read(handle, 0, 1) == Status::success);
}
