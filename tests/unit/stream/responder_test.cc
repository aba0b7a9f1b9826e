// The target's side of RMA as a pure machine, over a target that writes down what it is asked and notices what it must not be.
#include <algorithm>
#include <set>

#include "tests/unit/stream/rig.h"
#include "transports/stream/rma_responder.h"

namespace ccixfer::stream::testing {
namespace {

constexpr uint64_t connection = 77;
constexpr uint32_t slots = 8;
// Generations that are even and odd: neither is a part of the slot.
constexpr uint32_t id_of(uint32_t slot, uint32_t generation = 2) { return generation << 16 | slot; }

struct Target final : ports::RmaTarget {
  struct Transfer {
    bool write = false;
    uint64_t connection = 0;
    uint64_t offset_bytes = 0;
    uint64_t length_bytes = 0;
    bool over = false;
    bool complete = false;
    bool revoked = false;
    uint64_t arrived_bytes = UINT64_MAX;
  };
  std::vector<Transfer> transfers;
  ports::OperationResult refusal{Status::success};  // of what begins now
  bool already_placed = false;
  ports::OperationResult at_end{Status::success};
  bool lends = true;
  size_t misused = 0;  // asked about what has ended
  Buffer memory = filled(4u << 20, 1);
  ports::FillProgress fill;

  Transfer& of(ports::Ticket ticket) {
    Transfer& transfer = transfers.at(ticket.index);
    misused += transfer.over ? 1u : 0u;
    return transfer;
  }
  ports::Admission begin(bool write, uint64_t from, const ports::RemoteRef& ref, uint64_t length) {
    ports::Admission admission;
    admission.status = refusal.status;
    admission.detail = refusal.detail;
    admission.already_placed = already_placed;
    admission.ticket.index = static_cast<uint32_t>(transfers.size());
    if (refusal.good() && !already_placed) transfers.push_back({write, from, ref.offset_bytes, length});
    return admission;
  }
  ports::Admission begin_write(uint64_t from, const ports::RemoteRef& ref, uint64_t length) override {
    return begin(true, from, ref, length);
  }
  MutableBytes write_span(ports::Ticket ticket, uint64_t at) override {
    const Transfer& transfer = of(ticket);
    if (transfer.revoked) return {};
    return MutableBytes(memory).subspan(transfer.offset_bytes + at, transfer.length_bytes - at);
  }
  ports::OperationResult end_write(ports::Ticket ticket, bool complete) override {
    Transfer& transfer = of(ticket);
    transfer.over = true;
    transfer.complete = complete;
    return at_end;
  }
  ports::Admission begin_read(uint64_t from, const ports::RemoteRef& ref, uint64_t length) override {
    return begin(false, from, ref, length);
  }
  Bytes read_span(ports::Ticket ticket, uint64_t at) override {
    const Transfer& transfer = of(ticket);
    if (transfer.revoked) return {};
    return Bytes(memory).subspan(transfer.offset_bytes + at, transfer.length_bytes - at);
  }
  void end_read(ports::Ticket ticket) override { of(ticket).over = true; }
  bool lend(ports::Ticket ticket) override {
    static_cast<void>(of(ticket));
    return lends;
  }
  bool wanted_back(ports::Ticket ticket) const override { return transfers.at(ticket.index).revoked; }
  bool read_waits(ports::Ticket ticket, uint64_t at, uint64_t size) const override {
    const Transfer& transfer = transfers.at(ticket.index);
    return transfer.over || at + size > transfer.arrived_bytes;
  }
  const ports::FillProgress* fill_of(ports::Ticket ticket) const override {
    return transfers.at(ticket.index).over ? nullptr : &fill;
  }
};

struct Scene {
  Target target;
  RmaResponder machine;
  Scene() { machine.open(slots, connection); }
  ~Scene() { CHECK(target.misused == 0); }

  static wire::RmaWrite frame(uint32_t id, uint64_t total, uint64_t offset, bool abort = false) {
    wire::RmaWrite frame;
    frame.operation = id;
    frame.total_bytes = total;
    frame.offset_bytes = offset;
    frame.remote.handle.number = 5;
    frame.remote.offset_bytes = 100;
    frame.abort = abort;
    return frame;
  }
  // A chunk with its payload.
  bool write(uint32_t id, uint64_t total, uint64_t offset, uint32_t size) {
    if (!machine.chunk(frame(id, total, offset), size, target)) return false;
    machine.written(id & 0xffff, size, target);
    return true;
  }
  bool read(uint32_t id, uint64_t total) {
    wire::RmaRead frame;
    frame.operation = id;
    frame.total_bytes = total;
    frame.remote.offset_bytes = 100;
    return machine.request(frame, target);
  }
  // Sends a chunk of at most `size` of the read that is next; its operation and length, or nothing.
  std::pair<uint32_t, uint32_t> send(uint64_t size = 1000) {
    const std::optional<uint32_t> slot = machine.next_to_read(size, target);
    if (!slot) return {};
    const RmaResponder::Chunk chunk = machine.next_chunk(*slot, size, target);
    if (chunk.bytes > 0) machine.chunk_sent(*slot, chunk.bytes, target);
    return {chunk.frame.operation, chunk.bytes};
  }
  struct Told {
    bool write = false;
    uint32_t id = 0;
    Status status = Status::success;
    uint64_t detail = ports::OperationResult::none;
    bool early = false;
    friend bool operator==(const Told&, const Told&) = default;
  };
  std::vector<Told> told() {
    std::vector<Told> list;
    while (machine.reply_due()) {
      const RmaResponder::Reply reply = machine.next_reply();
      list.push_back({reply.write, reply.end.operation, reply.end.ending.status, reply.end.ending.detail, reply.end.early});
    }
    return list;
  }
};

using Told = Scene::Told;
using All = std::vector<Told>;
using Sent = std::pair<uint32_t, uint32_t>;

TEST_CASE("responder__a_write_in_chunks__one_bracket_and_the_targets_answer") {
  Scene s;
  s.target.at_end = {Status::success, 9};
  REQUIRE(s.machine.chunk(s.frame(id_of(3), 30, 0), 10, s.target));
  REQUIRE(s.target.transfers.size() == 1);
  CHECK(s.target.transfers[0].write);
  CHECK(s.target.transfers[0].connection == connection);
  CHECK(s.target.transfers[0].offset_bytes == 100);
  CHECK(s.target.transfers[0].length_bytes == 30);
  CHECK(s.machine.write_span(3, 10, s.target).data() == s.target.memory.data() + 100);
  CHECK(s.machine.write_span(3, 10, s.target).size() == 10);
  CHECK(s.machine.write_span(3, 40, s.target).size() == 30);  // at most what is left of it
  s.machine.written(3, 4, s.target);
  CHECK(s.machine.write_span(3, 6, s.target).data() == s.target.memory.data() + 104);
  s.machine.written(3, 6, s.target);
  REQUIRE(s.write(id_of(3), 30, 10, 19));
  CHECK_FALSE(s.machine.reply_due());
  CHECK_FALSE(s.target.transfers[0].over);
  REQUIRE(s.write(id_of(3), 30, 29, 1));
  CHECK(s.target.transfers[0].over);
  CHECK(s.target.transfers[0].complete);
  CHECK(s.told() == All{{true, id_of(3), Status::success, 9, false}});
}

TEST_CASE("responder__slots__as_many_as_agreed_each_by_itself") {
  Scene s;
  CHECK_FALSE(s.write(id_of(slots), 10, 0, 10));
  CHECK_FALSE(s.read(id_of(slots), 10));
  CHECK(s.target.transfers.empty());
  CHECK_FALSE(s.write(id_of(0), 10, 5, 5));  // the middle of nothing, where no slot was used yet
  REQUIRE(s.write(id_of(slots - 1), 10, 0, 5));
  for (uint32_t slot = 0; slot < slots - 1; ++slot) REQUIRE(s.write(id_of(slot), 10, 0, 5));
  for (uint32_t slot = 0; slot < slots; ++slot) CHECK_FALSE(s.read(id_of(slot, 3), 10));  // each is taken
  REQUIRE(s.write(id_of(0), 10, 5, 5));
  CHECK(s.told() == All{{true, id_of(0), Status::success, ports::OperationResult::none, false}});
  REQUIRE(s.write(id_of(0, 3), 10, 0, 5));  // free again, and the others are as they were
  for (uint32_t slot = 1; slot < slots; ++slot) REQUIRE(s.write(id_of(slot), 10, 5, 5));
  REQUIRE(s.write(id_of(0, 3), 10, 5, 5));
  CHECK(s.told().size() == slots);
  REQUIRE(s.read(id_of(1, 4), 10));
  CHECK(s.told().empty());
}

TEST_CASE("responder__a_chunk_that_does_not_go_on_with_its_operation__is_a_violation") {
  Scene s;
  REQUIRE(s.write(id_of(0), 30, 0, 10));
  CHECK_FALSE(s.write(id_of(1), 30, 10, 10));     // a slot that was never used
  CHECK_FALSE(s.write(id_of(0, 4), 30, 10, 10));  // another operation in it
  CHECK_FALSE(s.write(id_of(0), 30, 11, 10));     // a gap
  CHECK_FALSE(s.write(id_of(0), 30, 9, 10));      // again
  CHECK_FALSE(s.write(id_of(0), 30, 0, 10));      // from the start
  CHECK_FALSE(s.write(id_of(0), 31, 10, 10));     // another length
  wire::RmaWrite elsewhere = s.frame(id_of(0), 30, 10);
  elsewhere.remote.offset_bytes = 101;
  CHECK_FALSE(s.machine.chunk(elsewhere, 10, s.target));
  elsewhere = s.frame(id_of(0), 30, 10);
  elsewhere.remote.handle.number = 6;
  CHECK_FALSE(s.machine.chunk(elsewhere, 10, s.target));
  CHECK_FALSE(s.machine.chunk(s.frame(id_of(2), 30, 0, true), 0, s.target));  // the end of nothing
  REQUIRE(s.write(id_of(0), 30, 10, 20));
  CHECK_FALSE(s.machine.chunk(s.frame(id_of(0), 30, 30, true), 0, s.target));  // it has ended, only nobody was told yet
  CHECK(s.told().size() == 1);
  REQUIRE(s.read(id_of(4), 30));
  wire::RmaWrite of_a_read;
  of_a_read.operation = id_of(4);
  of_a_read.total_bytes = 30;
  CHECK_FALSE(s.machine.chunk(of_a_read, 10, s.target));
  CHECK(s.target.transfers.size() == 2);
}

TEST_CASE("responder__a_write_that_is_given_up__ends_incomplete_and_cancelled") {
  Scene s;
  REQUIRE(s.write(id_of(1), 30, 0, 10));
  REQUIRE(s.machine.chunk(s.frame(id_of(1), 30, 10, true), 0, s.target));
  REQUIRE(s.target.transfers[0].over);
  CHECK_FALSE(s.target.transfers[0].complete);
  s.machine.abandon(s.target);  // it has ended already
  CHECK(s.told() == All{{true, id_of(1), Status::cancelled, ports::OperationResult::none, false}});
}

TEST_CASE("responder__a_refused_write__told_at_once_if_more_is_to_come_and_again_at_its_end") {
  Scene s;
  s.target.refusal = {Status::mailbox_too_long, 12};
  const Told early{true, id_of(1), Status::mailbox_too_long, 12, true};
  Told end = early;
  end.early = false;
  REQUIRE(s.machine.chunk(s.frame(id_of(1), 30, 0), 10, s.target));
  CHECK(s.machine.write_span(1, 10, s.target).empty());
  s.machine.written(1, 10, s.target);
  CHECK(s.told() == All{early});
  CHECK_FALSE(s.write(id_of(1, 3), 30, 0, 10));  // its slot is taken until its own end
  SECTION("given up") { REQUIRE(s.machine.chunk(s.frame(id_of(1), 30, 10, true), 0, s.target)); }
  SECTION("sent all the same") { REQUIRE(s.write(id_of(1), 30, 10, 20)); }
  CHECK(s.told() == All{end});
  REQUIRE(s.write(id_of(1, 3), 30, 0, 30));  // in one chunk: one answer
  end.id = id_of(1, 3);
  CHECK(s.told() == All{end});
}

TEST_CASE("responder__a_write_whose_memory_goes_in_the_middle__discarded_and_told_early") {
  Scene s;
  const bool target_says_why = GENERATE(false, true);
  if (target_says_why) s.target.at_end = {Status::mailbox_too_long, 3};
  const Status why = target_says_why ? Status::mailbox_too_long : Status::rma_handle;
  REQUIRE(s.write(id_of(1), 30, 0, 10));
  s.target.transfers[0].revoked = true;
  REQUIRE(s.machine.chunk(s.frame(id_of(1), 30, 10), 10, s.target));
  CHECK(s.machine.write_span(1, 10, s.target).empty());
  REQUIRE(s.target.transfers[0].over);
  CHECK_FALSE(s.target.transfers[0].complete);
  CHECK(s.machine.write_span(1, 10, s.target).empty());
  s.machine.written(1, 10, s.target);
  All told = s.told();
  REQUIRE(told.size() == 1);
  CHECK(told[0].early);
  CHECK(told[0].status == why);
  REQUIRE(s.write(id_of(1), 30, 20, 10));
  told = s.told();
  REQUIRE(told.size() == 1);
  CHECK_FALSE(told[0].early);
  CHECK(told[0].status == why);
}

TEST_CASE("responder__a_duplicate_of_what_was_placed__discarded_and_answered_as_the_first") {
  Scene s;
  s.target.refusal = {Status::success, 4};
  s.target.already_placed = true;
  REQUIRE(s.write(id_of(1), 30, 0, 10));
  CHECK(s.machine.write_span(1, 10, s.target).empty());
  REQUIRE(s.write(id_of(1), 30, 10, 20));
  CHECK(s.told() == All{{true, id_of(1), Status::success, 4, false}});
}

TEST_CASE("responder__reads__each_to_its_end_before_the_next_in_the_order_of_asking") {
  Scene s;
  REQUIRE(s.read(id_of(1), 2500));
  REQUIRE(s.read(id_of(0), 400));
  REQUIRE(s.target.transfers.size() == 2);
  CHECK_FALSE(s.target.transfers[0].write);
  CHECK(s.target.transfers[0].connection == connection);
  CHECK(s.target.transfers[0].length_bytes == 2500);
  CHECK(s.machine.read_due());
  CHECK(s.send() == Sent{id_of(1), 1000});
  CHECK(s.send() == Sent{id_of(1), 1000});
  CHECK_FALSE(s.target.transfers[0].over);
  CHECK_FALSE(s.machine.reply_due());
  CHECK(s.send() == Sent{id_of(1), 500});
  CHECK(s.target.transfers[0].over);
  CHECK(s.told() == All{{false, id_of(1), Status::success, ports::OperationResult::none, false}});
  CHECK(s.send() == Sent{id_of(0), 400});
  CHECK_FALSE(s.machine.read_due());
  CHECK(s.told() == All{{false, id_of(0), Status::success, ports::OperationResult::none, false}});
}

TEST_CASE("responder__a_chunk_of_a_read__says_where_it_belongs") {
  Scene s;
  REQUIRE(s.read(id_of(1), 2500));
  const auto slot = s.machine.next_to_read(1000, s.target);
  REQUIRE(slot == 1u);
  for (const uint64_t at : {0u, 1000u, 2000u}) {
    const RmaResponder::Chunk chunk = s.machine.next_chunk(1, 1000, s.target);
    CHECK(chunk.frame.operation == id_of(1));
    CHECK(chunk.frame.total_bytes == 2500);
    CHECK(chunk.frame.offset_bytes == at);
    CHECK(chunk.bytes == std::min<uint64_t>(1000, 2500 - at));
    CHECK(s.machine.read_span(1, at + 1, 10, s.target).data() == s.target.memory.data() + 100 + at + 1);
    CHECK(s.machine.read_span(1, at + 1, 10, s.target).size() == 10);
    CHECK(s.machine.read_span(1, 2490, 30, s.target).size() == 10);
    CHECK(s.machine.continues(1, at, s.target));
    CHECK(s.machine.fill_of(1, s.target) == &s.target.fill);
    s.machine.chunk_sent(1, chunk.bytes, s.target);
    if (at < 2000) REQUIRE(s.machine.next_to_read(1000, s.target) == 1u);
  }
  CHECK_FALSE(s.machine.continues(1, 2500, s.target));
  CHECK_FALSE(s.machine.continues(1, 100, s.target));  // over, whatever is asked
  CHECK(s.machine.fill_of(1, s.target) == nullptr);
}

TEST_CASE("responder__a_refused_read__answered_and_nothing_of_it_sent") {
  Scene s;
  s.target.refusal = {Status::mailbox_too_long, 40};
  REQUIRE(s.read(id_of(1), 2500));
  CHECK_FALSE(s.machine.read_due());
  CHECK_FALSE(s.read(id_of(1, 3), 10));  // until it is told
  CHECK(s.told() == All{{false, id_of(1), Status::mailbox_too_long, 40, false}});
  REQUIRE(s.read(id_of(1, 3), 10));
}

TEST_CASE("responder__a_read_whose_memory_goes__ends_once_with_rma_handle") {
  Scene s;
  REQUIRE(s.read(id_of(1), 2500));
  REQUIRE(s.send() == Sent{id_of(1), 1000});
  s.target.transfers[0].revoked = true;
  SECTION("before a chunk") {
    CHECK(s.send().second == 0);
    CHECK(s.target.transfers[0].over);
  }
  SECTION("in the middle of one, whose length is promised") {
    s.target.transfers[0].revoked = false;
    const auto slot = s.machine.next_to_read(1000, s.target);
    REQUIRE(s.machine.next_chunk(*slot, 1000, s.target).bytes == 1000);
    s.target.transfers[0].revoked = true;
    CHECK(s.machine.read_span(*slot, 1500, 500, s.target).empty());
    CHECK(s.target.transfers[0].over);
    CHECK(s.machine.read_span(*slot, 1500, 500, s.target).empty());
    CHECK_FALSE(s.machine.continues(*slot, 2000, s.target));
    CHECK_FALSE(s.machine.reply_due());
    s.machine.chunk_sent(*slot, 1000, s.target);
  }
  CHECK_FALSE(s.machine.read_due());
  CHECK(s.told() == All{{false, id_of(1), Status::rma_handle, ports::OperationResult::none, false}});
}

// Chunks are long where the network is fast; what is here goes out in short ones all the same.
TEST_CASE("responder__reads_of_what_still_arrives__let_others_pass_and_come_in_their_order") {
  Scene s;
  constexpr uint64_t long_chunk = 3 * chunk_bytes_min;
  for (uint32_t slot = 0; slot < 3; ++slot) REQUIRE(s.read(id_of(slot), 4 * chunk_bytes_min));
  s.target.transfers[0].arrived_bytes = chunk_bytes_min - 1;
  s.target.transfers[1].arrived_bytes = 0;
  s.target.transfers[2].arrived_bytes = 2 * chunk_bytes_min;
  CHECK(s.send(long_chunk) == Sent{id_of(2), uint32_t{chunk_bytes_min}});
  CHECK(s.machine.continues(2, chunk_bytes_min, s.target));
  CHECK(s.send(long_chunk) == Sent{id_of(2), uint32_t{chunk_bytes_min}});
  CHECK_FALSE(s.machine.continues(2, 2 * chunk_bytes_min, s.target));
  CHECK(s.send(long_chunk) == Sent{});
  CHECK_FALSE(s.machine.read_due());
  for (Target::Transfer& transfer : s.target.transfers) transfer.arrived_bytes = UINT64_MAX;
  CHECK_FALSE(s.machine.read_due());  // it is told
  s.machine.resume();
  CHECK(s.send(long_chunk) == Sent{id_of(0), uint32_t{long_chunk}});
  CHECK(s.send(long_chunk) == Sent{id_of(0), uint32_t{chunk_bytes_min}});
  CHECK(s.send(long_chunk).first == id_of(1));
  CHECK(s.send(long_chunk).first == id_of(1));
  CHECK(s.send(long_chunk).first == id_of(2));
  CHECK(s.told().size() == 3);
}

TEST_CASE("responder__abandoned__each_ticket_returns_once_and_all_are_answered_disconnected") {
  Scene s;
  REQUIRE(s.write(id_of(0), 30, 0, 10));
  REQUIRE(s.read(id_of(1), 2500));
  REQUIRE(s.read(id_of(2), 2500));
  s.target.transfers[2].arrived_bytes = 0;
  REQUIRE(s.send().first == id_of(1));
  REQUIRE(s.write(id_of(3), 30, 0, 30));
  REQUIRE(s.told().size() == 1);
  s.target.refusal = Status::rma_op;
  REQUIRE(s.write(id_of(4), 30, 0, 10));
  REQUIRE(s.told().size() == 1);
  s.target.refusal = Status::success;
  s.machine.leave();
  s.machine.abandon(s.target);
  REQUIRE(s.target.transfers.size() == 4);
  for (const Target::Transfer& transfer : s.target.transfers) CHECK(transfer.over);
  CHECK_FALSE(s.target.transfers[0].complete);
  CHECK_FALSE(s.machine.reply_due());
  // The peer goes on with what it began, and begins more: nothing of it reaches the target.
  REQUIRE(s.write(id_of(0), 30, 10, 20));
  REQUIRE(s.write(id_of(4), 30, 10, 20));
  REQUIRE(s.write(id_of(5), 30, 0, 10));
  REQUIRE(s.write(id_of(5), 30, 10, 20));
  REQUIRE(s.read(id_of(6), 30));
  while (s.machine.read_due()) CHECK(s.send().second == 0);
  CHECK(s.target.transfers.size() == 4);
  All told = s.told();
  const auto one = [&](uint32_t slot, bool write, Status status, bool early) {
    return std::count(told.begin(), told.end(), Told{write, id_of(slot), status, ports::OperationResult::none, early}) == 1;
  };
  CHECK(told.size() == 7);
  CHECK(one(0, true, Status::disconnected, false));
  CHECK(one(1, false, Status::disconnected, false));
  CHECK(one(2, false, Status::disconnected, false));
  CHECK(one(4, true, Status::rma_op, false));
  CHECK(one(5, true, Status::disconnected, true));
  CHECK(one(5, true, Status::disconnected, false));
  CHECK(one(6, false, Status::disconnected, false));
}

// Their answers are due all the same, but the target has had its end of them.
TEST_CASE("responder__abandoned_with_answers_due__no_ticket_goes_back_twice") {
  Scene s;
  REQUIRE(s.write(id_of(0), 30, 0, 30));
  REQUIRE(s.read(id_of(1), 30));
  REQUIRE(s.send() == Sent{id_of(1), 30});
  s.target.refusal = Status::rma_op;
  REQUIRE(s.write(id_of(2), 30, 0, 10));
  REQUIRE(s.read(id_of(3), 30));
  REQUIRE(s.target.transfers.size() == 2);
  s.machine.leave();
  s.machine.abandon(s.target);
  const All told = s.told();
  REQUIRE(told.size() == 4);
  CHECK(std::count_if(told.begin(), told.end(), [](const Told& one) { return one.status == Status::rma_op; }) == 2);
}

// A ticket that is begun for what is admitted only: of the rest there is none to ask about.
TEST_CASE("responder__a_slot_used_again__has_nothing_of_the_read_or_write_before") {
  Scene s;
  REQUIRE(s.write(id_of(1), 30, 0, 30));
  CHECK(s.told() == All{{true, id_of(1), Status::success, ports::OperationResult::none, false}});
  REQUIRE(s.read(id_of(1, 3), 2500));
  REQUIRE(s.send() == Sent{id_of(1, 3), 1000});
  REQUIRE(s.send() == Sent{id_of(1, 3), 1000});
  REQUIRE(s.send() == Sent{id_of(1, 3), 500});
  CHECK(s.told() == All{{false, id_of(1, 3), Status::success, ports::OperationResult::none, false}});
  s.target.refusal = Status::rma_op;
  REQUIRE(s.read(id_of(1, 4), 30));
  CHECK(s.told() == All{{false, id_of(1, 4), Status::rma_op, ports::OperationResult::none, false}});
  s.target.refusal = Status::success;
  REQUIRE(s.write(id_of(1, 5), 30, 0, 10));
  REQUIRE(s.write(id_of(1, 5), 30, 10, 20));
  CHECK(s.told() == All{{true, id_of(1, 5), Status::success, ports::OperationResult::none, false}});
  CHECK(s.target.transfers.size() == 3);
}

// What the network refers to keeps its ticket until the peer's network has acknowledged it.
TEST_CASE("responder__lent_reads__hold_their_ticket_until_their_last_byte_is_acknowledged") {
  Scene s;
  REQUIRE(s.read(id_of(0), 1000));
  REQUIRE(s.read(id_of(1), 1000));
  s.target.lends = false;
  CHECK_FALSE(s.machine.lend(0, s.target));
  s.target.lends = true;
  CHECK(s.machine.lend(1, s.target));
  CHECK(s.machine.lend(1, s.target));
  CHECK_FALSE(s.machine.holds());
  s.machine.given(0, 1500);
  REQUIRE(s.send().first == id_of(0));
  CHECK(s.target.transfers[0].over);  // it was copied
  CHECK_FALSE(s.machine.holds());
  s.machine.given(1, 2000);
  s.machine.given(1, 2500);
  REQUIRE(s.send().first == id_of(1));
  CHECK(s.told().size() == 2);  // the peer is told: it is only the memory that waits
  CHECK(s.machine.holds());
  s.machine.acknowledged(2499, s.target);
  CHECK_FALSE(s.target.transfers[1].over);
  CHECK(s.machine.holds());
  s.machine.acknowledged(2500, s.target);
  CHECK(s.target.transfers[1].over);
  CHECK_FALSE(s.machine.holds());
}

TEST_CASE("responder__more_ended_reads_than_are_remembered__copied") {
  Scene s;
  const auto lent = [&](uint64_t position) {
    REQUIRE(s.read(id_of(0), 10));
    const bool by_reference = s.machine.lend(0, s.target);
    if (by_reference) s.machine.given(0, position);
    REQUIRE(s.send().second == 10);
    REQUIRE(s.told().size() == 1);
    return by_reference;
  };
  for (uint64_t i = 0; i < lent_reads_max; ++i) CHECK(lent(i + 1));
  CHECK_FALSE(lent(1000));
  s.machine.acknowledged(1, s.target);
  CHECK(lent(1001));
  CHECK_FALSE(lent(1002));
  s.machine.closed(s.target);
  for (const Target::Transfer& transfer : s.target.transfers) CHECK(transfer.over);
  CHECK_FALSE(s.machine.holds());
}

TEST_CASE("responder__lent_memory_is_wanted_back__owed_until_acknowledged") {
  Scene s;
  REQUIRE(s.read(id_of(0), 2000));
  REQUIRE(s.read(id_of(1), 2000));
  REQUIRE(s.write(id_of(2), 2000, 0, 10));
  CHECK_FALSE(s.machine.owes(0, s.target));
  REQUIRE(s.machine.lend(0, s.target));
  s.machine.given(0, 1000);
  REQUIRE(s.send() == Sent{id_of(0), 1000});
  CHECK_FALSE(s.machine.owes(0, s.target));  // nobody wants it
  CHECK_FALSE(s.target.transfers[0].over);
  for (Target::Transfer& transfer : s.target.transfers) transfer.revoked = true;
  const bool acknowledged = GENERATE(false, true);
  CHECK(s.machine.owes(acknowledged ? 1000 : 999, s.target) == !acknowledged);
  CHECK(s.target.transfers[0].over == acknowledged);
  CHECK_FALSE(s.target.transfers[1].over);  // not lent: it finds out by itself
  CHECK_FALSE(s.target.transfers[2].over);
  CHECK(s.send().second == 0);
  CHECK(s.told() == All{{false, id_of(0), Status::rma_handle, ports::OperationResult::none, false}});
  CHECK(s.machine.owes(999, s.target) == !acknowledged);
  CHECK_FALSE(s.machine.owes(1000, s.target));
  CHECK(s.target.transfers[0].over);
}

}  // namespace
}  // namespace ccixfer::stream::testing
