// Regions whose memory a network refers to, and regions that are still being filled: what the table lets go of, and when.
#include <catch2/catch.hpp>
#include <vector>

#include "core/cci/memory_table.h"
#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::Handle;
using ports::RemoteRef;

namespace {

// Gives back at settle() what it was told to.
struct Lender final : ports::Lender {
  ports::RmaTarget* target = nullptr;
  std::vector<ports::Ticket> acknowledged;
  size_t asked = 0;
  void settle() override {
    ++asked;
    for (const ports::Ticket ticket : std::exchange(acknowledged, {})) target->end_read(ticket);
  }
};

struct Fixture {
  CountingEntropy entropy;
  Counters counters;
  MemoryTable table{entropy, counters};
  // The same promises through the table itself and through the target of one transport among several.
  ports::RmaTarget* target = &table;
  std::vector<std::byte> memory = std::vector<std::byte>(100, std::byte{0xee});
  Lender lender, other;

  Fixture() {
    ports::RmaTarget& first = table.target_of_another_transport();
    ports::RmaTarget& second = table.target_of_another_transport();
    if (GENERATE(false, true)) target = &second;
    lender.target = target;
    target->set_lender(&lender);
    first.set_lender(&other);
    CHECK(table.is_target_of_this(*target));
    CHECK(table.is_target_of_this(first));
  }
  Handle region() { return table.register_region(memory, access_read | access_write); }
  ports::Ticket read(const Handle& handle, uint64_t offset = 0, uint64_t length = 10) {
    RemoteRef ref;
    ref.handle = handle;
    ref.offset_bytes = offset;
    const ports::Admission admission = target->begin_read(1, ref, length);
    REQUIRE(admission.status == Status::success);
    return admission.ticket;
  }
};

}  // namespace

TEST_CASE("lent_region__deregistered__busy_until_each_read_that_was_lent_has_ended") {
  Fixture f;
  const Handle handle = f.region();
  const ports::Ticket one = f.read(handle), two = f.read(handle, 50), plain = f.read(handle);
  REQUIRE(f.target->lend(one));
  REQUIRE(f.target->lend(one));  // more of it: it is lent once
  REQUIRE(f.target->lend(two));
  CHECK_FALSE(f.table.in_use(handle));  // nobody wants it back
  Handle before = handle;
  --before.generation;
  CHECK_FALSE(f.table.in_use(before));  // what its place held before has nothing to do with it
  CHECK_FALSE(f.target->wanted_back(one));
  const uint64_t wants = f.target->wants();
  REQUIRE(f.table.deregister_region(handle) == Status::busy);
  CHECK(f.lender.asked == 1);
  CHECK(f.other.asked == 1);
  CHECK(f.target->wants() == wants + 1);
  CHECK(f.table.in_use(handle));
  CHECK(f.target->wanted_back(one));
  CHECK(f.target->wanted_back(two));
  CHECK_FALSE(f.target->wanted_back(plain));  // nothing of it is with a network
  CHECK(f.target->read_span(one, 0).empty());
  CHECK_FALSE(f.target->lend(plain));
  CHECK(f.table.deregister_region(handle) == Status::rma_handle);
  CHECK(f.lender.asked == 1);
  Handle former = handle, later = handle, mailbox = handle, far = handle;
  --former.generation;
  ++later.generation;
  mailbox.kind = ports::HandleKind::mailbox;
  far.number += 1;
  for (const Handle& none : {former, later, mailbox, far}) CHECK_FALSE(f.table.in_use(none));
  const Handle next = f.region();
  CHECK(next.number != handle.number);
  f.target->end_read(one);
  CHECK(f.table.in_use(handle));
  CHECK_FALSE(f.target->wanted_back(one));
  f.target->end_read(plain);
  f.target->end_read(one);  // again: it means nothing
  CHECK(f.table.in_use(handle));
  f.target->end_read(two);
  CHECK_FALSE(f.table.in_use(handle));
  CHECK(f.region().number == handle.number);  // its place is free, once
  CHECK(f.region().number != handle.number);
}

TEST_CASE("lent_region__acknowledged_when_it_is_asked_for__is_its_owners_at_once") {
  Fixture f;
  const Handle handle = f.region();
  const ports::Ticket ticket = f.read(handle);
  REQUIRE(f.target->lend(ticket));
  f.lender.acknowledged = {ticket};
  const uint64_t wants = f.target->wants();
  CHECK(f.table.deregister_region(handle) == Status::success);
  CHECK_FALSE(f.table.in_use(handle));
  CHECK(f.target->wants() == wants);
  CHECK(f.region().number == handle.number);
}

TEST_CASE("lent_region__read_to_its_end_before__does_not_concern_who_deregisters") {
  Fixture f;
  const Handle handle = f.region();
  const ports::Ticket ticket = f.read(handle);
  REQUIRE(f.target->lend(ticket));
  f.target->end_read(ticket);
  CHECK(f.table.deregister_region(handle) == Status::success);
  CHECK(f.lender.asked == 0);  // nothing is lent: nobody is asked
}

TEST_CASE("lent_region__what_is_not_a_read_of_a_region__is_not_lent") {
  Fixture f;
  const Handle handle = f.region();
  RemoteRef ref;
  ref.handle = handle;
  const ports::Ticket write = f.target->begin_write(1, ref, 10).ticket;
  CHECK_FALSE(f.target->lend(write));
  CHECK_FALSE(f.target->lend({write.index, write.generation + 1}));
  CHECK_FALSE(f.target->lend({write.index + 1, 1}));
  const ports::Ticket read = f.read(handle);
  f.target->end_read(read);
  CHECK_FALSE(f.target->lend(read));
  REQUIRE(f.table.mailboxes().open(5, {.key = 9, .retired_max = 1}) == Status::success);
  REQUIRE(f.table.mailboxes().post(5, f.memory, 1) == Status::success);
  ref.handle = f.table.mailboxes().handle(5);
  ref.put.source = 1;
  const ports::Admission put = f.target->begin_write(1, ref, 20);
  REQUIRE(f.target->end_write(put.ticket, true).status == Status::success);
  const ports::Admission get = f.target->begin_read(1, ref, 10);
  REQUIRE(get.status == Status::success);
  CHECK_FALSE(f.target->lend(get.ticket));
  CHECK_FALSE(f.target->wanted_back(get.ticket));
  CHECK_FALSE(f.target->read_waits(get.ticket, 0, 10));
  CHECK(f.target->fill_of(get.ticket) == nullptr);
  f.target->end_read(get.ticket);
}

TEST_CASE("arriving_region__read__as_far_as_it_has_come_and_the_last_byte_with_the_whole") {
  Fixture f;
  ports::FillProgress fill;
  const Handle handle = f.table.register_filling(Bytes(f.memory), &fill);
  const ports::Ticket ticket = f.read(handle, 20, 80);
  CHECK(f.target->read_waits(ticket, 0, 1));
  CHECK(f.target->read_span(ticket, 0).empty());
  fill.placed_bytes = 20;
  CHECK(f.target->read_waits(ticket, 0, 1));
  CHECK(f.target->read_span(ticket, 0).empty());
  fill.placed_bytes = 50;
  CHECK_FALSE(f.target->read_waits(ticket, 0, 30));
  CHECK(f.target->read_waits(ticket, 0, 31));
  CHECK(f.target->read_span(ticket, 10).size() == 20);
  CHECK(f.target->read_span(ticket, 10).data() == f.memory.data() + 30);
  CHECK(f.target->read_span(ticket, 30).empty());
  fill.placed_bytes = 100;
  CHECK_FALSE(f.target->read_waits(ticket, 0, 79));
  CHECK(f.target->read_waits(ticket, 0, 80));
  fill.complete = true;
  CHECK_FALSE(f.target->read_waits(ticket, 0, 80));
  CHECK(f.target->read_span(ticket, 0).size() == 80);
  CHECK(f.target->fill_of(ticket) == nullptr);  // it may be read in any order
  CHECK(f.table.deregister_region(handle) == Status::success);
  CHECK_FALSE(f.target->read_waits(ticket, 0, 80));  // revoked, not to be waited for
  CHECK(f.target->fill_of(ticket) == nullptr);
  // The place's next region has nothing to do with it.
  fill = {};
  CHECK_FALSE(f.target->read_waits(f.read(f.region()), 0, 10));
}

TEST_CASE("arriving_region__to_be_read_once__refuses_a_part_and_a_second_reader") {
  Fixture f;
  ports::FillProgress fill;
  fill.once = true;
  const Handle handle = f.table.register_filling(Bytes(f.memory), &fill);
  RemoteRef ref;
  ref.handle = handle;
  CHECK(f.target->begin_read(1, ref, 99).status == Status::rma_op);
  CHECK_FALSE(fill.taken);
  const ports::Admission read = f.target->begin_read(1, ref, 100);
  REQUIRE(read.status == Status::success);
  CHECK(fill.taken);
  CHECK(f.target->fill_of(read.ticket) == &fill);
  CHECK(f.target->begin_read(1, ref, 100).status == Status::rma_op);
  CHECK(f.counters.get(Counter::rma_rejected) == 2);
  f.target->end_read(read.ticket);
  CHECK(f.target->fill_of(read.ticket) == nullptr);
}

TEST_CASE("arriving_region__read_over_a_transport_without_cut_through__refused_until_all_is_in_memory") {
  CountingEntropy entropy;
  Counters counters;
  MemoryTable table{entropy, counters};
  const std::vector<std::byte> memory(100);
  const auto status = [&](ports::RmaTarget& target, const Handle& handle) {
    RemoteRef ref;
    ref.handle = handle;
    const ports::Admission read = target.begin_read(1, ref, 100);
    if (read.status == Status::success) target.end_read(read.ticket);
    return read.status;
  };
  const auto log = std::make_shared<FakeTransport::Log>();
  FakeTransport without(log);
  ports::RmaTarget& waits_for_none = table.target_of_another_transport();
  table.attach(waits_for_none, without);
  log->supports_cut_through = true;
  FakeTransport with(log);
  ports::RmaTarget& waits = table.target_of_another_transport();
  table.attach(waits, with);

  ports::FillProgress fill;
  const Handle arriving = table.register_filling(Bytes(memory), &fill);
  CHECK(status(waits_for_none, arriving) == Status::rma_op);
  CHECK(counters.get(Counter::rma_rejected) == 1);
  CHECK(status(waits, arriving) == Status::success);
  fill.placed_bytes = 100;
  CHECK(status(waits_for_none, arriving) == Status::rma_op);
  fill.complete = true;
  CHECK(status(waits_for_none, arriving) == Status::success);
  // What is read once may be in the splice pipe and not in memory, though all of it has come.
  ports::FillProgress spliced;
  spliced.once = spliced.complete = true;
  const Handle whole = table.register_filling(Bytes(memory), &spliced);
  CHECK(status(waits_for_none, whole) == Status::rma_op);
  CHECK_FALSE(spliced.taken);
  CHECK(status(waits, whole) == Status::success);
}

TEST_CASE("memory_table__targets_of_others__are_not_of_this") {
  Fixture f;
  CountingEntropy entropy;
  MemoryTable other(entropy, f.counters);
  CHECK_FALSE(f.table.is_target_of_this(other));
  CHECK_FALSE(f.table.is_target_of_this(other.target_of_another_transport()));
}
