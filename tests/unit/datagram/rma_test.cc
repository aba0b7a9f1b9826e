// The machines of RMA, both sides: what is lost, late, withdrawn or cut off, and a peer that takes nothing of what it is sent.
#include <map>

#include "tests/unit/datagram/scripts.h"
#include "transports/datagram/rma_in.h"
#include "transports/datagram/rma_out.h"

namespace ccixfer::datagram::testing {
namespace {

using Ends = std::vector<std::pair<uint64_t, Status>>;

TEST_CASE("rma_in__operations_begun_anew_without_end__wait_once_a_slot_the_newest_answered") {
  constexpr uint32_t slots = 4;
  CountingEntropy entropy;
  Counters counters;
  cci::MemoryTable target(entropy, counters);
  Buffer memory(5000, std::byte{1});
  RmaIn in;
  in.open(slots, 1000, 1);
  RmaReadFrame good;
  good.total_bytes = memory.size();
  good.remote.handle = target.register_region(Bytes(memory));
  RmaReadFrame bad = good;
  bad.remote.handle.key ^= 1;
  RmaWriteFrame refused;
  refused.total_bytes = 500;
  refused.remote = bad.remote;
  const Buffer data(500);
  refused.bytes = data;
  for (uint64_t generation = 1; generation < 10'000; ++generation) {
    for (uint64_t slot = 0; slot < slots; ++slot) {
      const uint64_t id = generation << 16 | slot;
      good.operation = bad.operation = refused.operation = id;
      switch ((generation + slot) % 3) {
        case 0:
          REQUIRE(in.read(good, target));
          break;
        case 1:
          REQUIRE(in.read(bad, target));
          break;
        default:
          REQUIRE(in.write(refused, target));
      }
    }
    REQUIRE(in.waiting() <= 2 * slots);
  }
  // What comes out at last is of the newest operation of each slot, once.
  std::vector<std::byte> out_bytes;
  std::map<uint64_t, size_t> answers, chunks;
  while (in.reply_due()) {
    wire::Writer out(out_bytes);
    ++answers[in.take_reply(out, 0).b];
  }
  while (in.chunk_due()) {
    wire::Writer out(out_bytes);
    const auto chunk = in.take_chunk(out, 0, target);
    REQUIRE(chunk);
    ++chunks[chunk->b];
  }
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const uint64_t id = uint64_t{9'999} << 16 | slot;
    const bool is_good = (9'999 + slot) % 3 == 0;
    CHECK(answers[id] == (is_good ? 0 : 1));
    CHECK(chunks[id] == (is_good ? 5 : 0));
    // Lost on the way, the answer is due again, and once.
    if (is_good) continue;
    in.reply_lost(id);
    in.reply_lost(id);
    REQUIRE(in.reply_due());
    wire::Writer out(out_bytes);
    CHECK(in.take_reply(out, 0).b == id);
    CHECK_FALSE(in.reply_due());
  }
  CHECK(answers.size() + chunks.size() == 2 * slots);
  CHECK(in.waiting() == 0);
  in.abandon(target);
}

TEST_CASE("rma_in__pieces_of_a_read_that_are_lost__go_out_again_if_they_still_matter") {
  CountingEntropy entropy;
  Counters counters;
  cci::MemoryTable target(entropy, counters);
  Buffer memory = filled(2500, 3);
  RmaIn in;
  in.open(4, 1000, 1);
  RmaReadFrame frame;
  frame.operation = 1 << 16;
  frame.total_bytes = memory.size();
  frame.remote.handle = target.register_region(Bytes(memory));
  REQUIRE(in.read(frame, target));
  Buffer bytes;
  const auto take = [&] {
    bytes.clear();
    wire::Writer out(bytes);
    const size_t expected = in.next_chunk_frame_bytes();
    const auto carried = in.take_chunk(out, 0, target);
    REQUIRE(carried);
    REQUIRE(bytes.size() == expected);
    return carried->c;
  };
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(take() == i);
  REQUIRE_FALSE(in.chunk_due());
  in.chunk_lost(frame.operation, {1, 0});
  in.chunk_lost(frame.operation, {0, 0});
  in.chunk_acked(frame.operation, {1, 0}, target);  // it had arrived after all
  REQUIRE(in.chunk_due());
  REQUIRE(take() == 0);
  REQUIRE_FALSE(in.chunk_due());
  in.chunk_lost(frame.operation, {1, 0});  // acknowledged
  REQUIRE_FALSE(in.chunk_due());
  in.chunk_lost(2 << 16, {0, 0});  // another one
  REQUIRE_FALSE(in.chunk_due());
  in.chunk_acked(frame.operation, {0, 0}, target);
  in.chunk_acked(frame.operation, {2, 0}, target);
  REQUIRE_FALSE(in.reply_due());  // a read that ended well needs none
  in.chunk_lost(frame.operation, {2, 0});
  REQUIRE_FALSE(in.chunk_due());
  REQUIRE(in.read(frame, target));  // a late copy of the request
  REQUIRE_FALSE(in.chunk_due());
}

TEST_CASE("rma_in__a_read_of_what_is_not_filled_so_far__ends_and_nothing_else_goes_out") {
  CountingEntropy entropy;
  Counters counters;
  cci::MemoryTable target(entropy, counters);
  const Buffer memory = filled(2500, 3);
  ports::FillProgress fill;
  RmaIn in;
  in.open(4, 1000, 1);
  RmaReadFrame frame;
  frame.operation = 1 << 16;
  frame.total_bytes = memory.size();
  frame.remote.handle = target.register_filling(Bytes(memory), &fill);
  REQUIRE(in.read(frame, target));
  fill.placed_bytes = 1999;  // the second chunk is there but for a byte
  Buffer bytes;
  wire::Writer first(bytes);
  REQUIRE(in.take_chunk(first, 0, target));
  bytes.clear();
  wire::Writer then(bytes);
  CHECK_FALSE(in.take_chunk(then, 0, target));
  CHECK(bytes.empty());
  CHECK_FALSE(in.chunk_due());
  REQUIRE(in.reply_due());
  REQUIRE(in.take_reply(then, 0).b == frame.operation);
  wire::Reader reader(bytes);
  const auto reply = decode_frame(reader);
  REQUIRE(reply);
  CHECK(std::get<RmaEndFrame>(*reply).ending.status == Status::rma_handle);
  CHECK(target.deregister_region(frame.remote.handle) == Status::success);
}

TEST_CASE("rma_in__after_our_application_left__each_operation_is_answered_so") {
  CountingEntropy entropy;
  Counters counters;
  cci::MemoryTable target(entropy, counters);
  Buffer memory(100);
  ports::RemoteRef remote;
  remote.handle = target.register_region(memory, cci::access_read | cci::access_write);
  RmaIn in;
  in.open(4, 1000, 1);
  in.leave();
  const Buffer data(100, std::byte{9});
  REQUIRE(in.write(RmaWriteFrame{1 << 16, 100, 0, remote, data}, target));
  RmaReadFrame read;
  read.operation = 1 << 16 | 1;
  read.total_bytes = 100;
  read.remote = remote;
  REQUIRE(in.read(read, target));
  REQUIRE(memory == Buffer(100));
  Buffer bytes;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(in.reply_due());
    bytes.clear();
    wire::Writer out(bytes);
    static_cast<void>(in.take_reply(out, 0));
    wire::Reader reader(bytes);
    const auto frame = decode_frame(reader);
    REQUIRE(frame);
    REQUIRE(std::get<RmaEndFrame>(*frame).ending.status == Status::disconnected);
    REQUIRE(std::get<RmaEndFrame>(*frame).write == (i == 0));
  }
  REQUIRE_FALSE(in.reply_due());
  REQUIRE_FALSE(in.chunk_due());
}

// Counts what is held: tickets that begin must end, once.
struct Tickets final : ports::RmaTarget {
  explicit Tickets(MutableBytes memory_) : memory(memory_) {}
  ports::Admission begin(std::vector<int>& of) {
    ports::Admission admission;
    admission.status = Status::success;
    admission.ticket.index = static_cast<uint32_t>(of.size());
    of.push_back(1);
    return admission;
  }
  ports::Admission begin_write(uint64_t, const ports::RemoteRef&, uint64_t) override { return begin(writes); }
  MutableBytes write_span(ports::Ticket, uint64_t at) override { return memory.subspan(at); }
  ports::OperationResult end_write(ports::Ticket ticket, bool complete) override {
    --writes.at(ticket.index);
    completed += complete ? 1u : 0u;
    return Status::success;
  }
  ports::Admission begin_read(uint64_t, const ports::RemoteRef&, uint64_t) override { return begin(reads); }
  Bytes read_span(ports::Ticket, uint64_t at) override { return revoked ? Bytes{} : Bytes(memory).subspan(at); }
  void end_read(ports::Ticket ticket) override { --reads.at(ticket.index); }
  MutableBytes memory;
  bool revoked = false;
  std::vector<int> writes, reads;  // 1: held, 0: ended, less: ended twice
  size_t completed = 0;
};

TEST_CASE("rma_in__what_is_held__ends_once_however_it_ends") {
  Buffer memory(3000);
  Tickets target(memory);
  RmaIn in;
  in.open(8, 1000, 1);
  const Buffer data(1000, std::byte{9});
  Buffer bytes;
  const auto write = [&](uint64_t id, uint64_t at) { REQUIRE(in.write(RmaWriteFrame{id, 2000, at, {}, data}, target)); };
  const auto read = [&](uint64_t id) {
    RmaReadFrame frame;
    frame.operation = id;
    frame.total_bytes = 1500;
    REQUIRE(in.read(frame, target));
  };
  write(1 << 16, 0);  // 0: to its end
  write(1 << 16, 1000);
  write(1 << 16 | 1, 0);  // 1: cut off by the end of the connection
  read(1 << 16 | 2);      // 0: acknowledged to its end
  for (int i = 0; i < 2; ++i) {
    wire::Writer out(bytes);
    REQUIRE(in.take_chunk(out, 0, target));
  }
  in.chunk_acked(1 << 16 | 2, {0, 0}, target);
  REQUIRE(target.reads == std::vector<int>{1});
  in.chunk_acked(1 << 16 | 2, {1, 0}, target);
  REQUIRE(target.reads == std::vector<int>{0});
  read(1 << 16 | 3);  // 1: another one begins in its slot: the peer has it all
  read(2 << 16 | 3);  // 2: its memory is withdrawn
  REQUIRE(target.reads == std::vector<int>{0, 0, 1});
  target.revoked = true;
  wire::Writer out(bytes);
  REQUIRE_FALSE(in.take_chunk(out, 0, target));
  REQUIRE(target.reads == std::vector<int>{0, 0, 0});
  REQUIRE(in.reply_due());
  target.revoked = false;
  read(1 << 16 | 4);  // 3: cut off by the end of the connection
  in.abandon(target);
  in.abandon(target);
  REQUIRE(target.reads == std::vector<int>{0, 0, 0, 0});
  REQUIRE(target.writes == std::vector<int>{0, 0});
  REQUIRE(target.completed == 1);
}

TEST_CASE("rma_in__writes_that_do_not_fit_together__are_a_violation") {
  CountingEntropy entropy;
  Counters counters;
  cci::MemoryTable target(entropy, counters);
  Buffer memory(3000);
  ports::RemoteRef remote;
  remote.handle = target.register_region(memory, cci::access_read | cci::access_write);
  const Buffer data(1000, std::byte{9});
  const auto begun = [&](RmaIn& in) {
    in.open(4, 1000, 1);
    REQUIRE(in.write(RmaWriteFrame{2 << 16, 2000, 0, remote, data}, target));
  };
  ports::RemoteRef other = remote;
  other.offset_bytes = 1;
  ports::RemoteRef stranger = remote;
  stranger.handle.key ^= 1;
  RmaReadFrame read;
  read.operation = 2 << 16;
  read.total_bytes = 2000;
  read.remote = remote;
  RmaReadFrame newer = read;
  newer.operation = 3 << 16;
  {
    RmaIn in;
    begun(in);
    REQUIRE_FALSE(in.write(RmaWriteFrame{2 << 16, 3000, 1000, remote, data}, target));
    REQUIRE_FALSE(in.write(RmaWriteFrame{2 << 16, 2000, 1000, other, data}, target));
    REQUIRE_FALSE(in.write(RmaWriteFrame{2 << 16, 2000, 1000, stranger, data}, target));
    REQUIRE_FALSE(in.read(read, target));
    REQUIRE_FALSE(in.read(newer, target));  // in the slot of one that has not ended
    REQUIRE_FALSE(in.write(RmaWriteFrame{3 << 16, 2000, 0, remote, data}, target));
    REQUIRE(in.write(RmaWriteFrame{1 << 16, 2000, 0, remote, data}, target));  // late
    REQUIRE_FALSE(in.reply_due());
    REQUIRE(in.write(RmaWriteFrame{2 << 16, 2000, 1000, remote, data}, target));
    REQUIRE(in.reply_due());
    REQUIRE(in.read(newer, target));
    REQUIRE_FALSE(in.reply_due());  // another one has the slot: the peer knows
    REQUIRE_FALSE(in.write(RmaWriteFrame{3 << 16, 2000, 0, remote, data}, target));
    in.abandon(target);
  }
  RmaIn in;
  begun(in);
  REQUIRE(in.write(RmaWriteFrame{2 << 16 | 3, 1000, 0, remote, data}, target));        // the last slot
  REQUIRE_FALSE(in.write(RmaWriteFrame{2 << 16 | 4, 1000, 0, remote, data}, target));  // beyond
  in.abandon(target);
}

struct Giver {
  explicit Giver(uint32_t slots = 4) {
    out.open(slots, 1000);
    messages.open(8, Attribute::reliable_ordered);
  }
  void push(uint64_t token, size_t size, bool fence = false, bool local = false) {
    source.resize(size);
    ports::RmaRequest request;
    request.write = true;
    request.source = source;
    request.remote.handle.kind = kind;
    request.fence = fence;
    request.local_completion = local;
    out.push(request, token, 0);
    if (started) out.start(0);
  }
  std::optional<std::pair<uint64_t, uint64_t>> take() {
    if (!out.chunk_due()) return std::nullopt;
    bytes.clear();
    wire::Writer to(bytes);
    const size_t expected = out.next_chunk_frame_bytes();
    const auto carried = out.take_chunk(to, 0);
    REQUIRE(bytes.size() == expected);
    return std::pair{carried.b, carried.c};
  }
  bool end(uint64_t operation, Status status = Status::success) {
    return out.end(RmaEndFrame{operation, ports::OperationResult(status), true}, messages, forever, ended);
  }
  RmaOut out;
  OutMessages messages;
  Buffer source, bytes;
  bool started = true;
  ports::HandleKind kind = ports::HandleKind::region;
  Ends ends;
  RmaOut::Ended ended = [this](uint64_t token, ports::OperationResult ending) { ends.emplace_back(token, ending.status); };
};

TEST_CASE("rma_out__pieces_that_are_lost__go_out_again_if_they_still_matter") {
  Giver w;
  w.push(1, 2500, false, true);
  constexpr uint64_t id = 1 << 16;
  for (const uint64_t i : {RmaOut::description, uint64_t{0}, uint64_t{1}, RmaOut::description, uint64_t{2}})
    REQUIRE(w.take() == std::pair{id, i});
  REQUIRE_FALSE(w.take());
  w.out.chunk_lost(id, {RmaOut::description, 0});
  REQUIRE(w.take() == std::pair{id, RmaOut::description});
  w.out.chunk_lost(id, {1, 0});
  w.out.chunk_lost(id, {RmaOut::description, 0});
  w.out.chunk_lost(id, {0, 0});
  REQUIRE_FALSE(w.out.chunk_acked(id, {1, 0}));
  REQUIRE(w.take() == std::pair{id, uint64_t{0}});  // who has a chunk knows the description
  REQUIRE_FALSE(w.take());
  w.out.chunk_lost(id, {1, 0});
  w.out.chunk_lost(id, {RmaOut::description, 0});
  REQUIRE_FALSE(w.take());
  REQUIRE_FALSE(w.out.chunk_acked(id, {0, 0}));
  REQUIRE(w.out.chunk_acked(id, {2, 0}) == 1);  // its memory may be used again
  REQUIRE_FALSE(w.out.chunk_acked(9 << 16, {0, 0}));
  REQUIRE(w.ends.empty());
  REQUIRE(w.end(id));
  REQUIRE(w.ends == Ends{{1, Status::success}});
  w.out.chunk_lost(id, {2, 0});
  REQUIRE_FALSE(w.take());
  REQUIRE(w.end(id));  // come again
  REQUIRE(w.ends.size() == 1);
  REQUIRE(w.out.empty());
}

// A packet with a chunk before its description is not taken as long as the peer does not know the write, however often it comes.
TEST_CASE("rma_out__a_description_that_is_lost__goes_out_before_what_was_lost_before_it") {
  Giver w;
  w.push(1, 2500);
  constexpr uint64_t id = 1 << 16;
  while (w.take()) {
  }
  for (const uint64_t i : {uint64_t{0}, uint64_t{2}, RmaOut::description}) w.out.chunk_lost(id, {i, 0});
  for (const uint64_t i : {RmaOut::description, uint64_t{0}, uint64_t{2}}) REQUIRE(w.take() == std::pair{id, i});
  REQUIRE_FALSE(w.take());
}

TEST_CASE("rma_out__success_before_all_is_out__only_of_a_put_that_is_known") {
  constexpr uint64_t id = 1 << 16;
  Giver region;
  region.push(1, 2000);
  REQUIRE(region.take());
  REQUIRE_FALSE(region.end(id));
  REQUIRE(region.end(id, Status::rma_handle));  // it may well fail early
  REQUIRE(region.ends == Ends{{1, Status::rma_handle}});
  Giver mailbox;
  mailbox.kind = ports::HandleKind::mailbox;
  mailbox.push(1, 2000);
  REQUIRE_FALSE(mailbox.end(id));  // nothing of it went out
  REQUIRE(mailbox.take());
  REQUIRE(mailbox.end(id));
  REQUIRE(mailbox.ends == Ends{{1, Status::success}});
  REQUIRE_FALSE(mailbox.take());
  Giver none;
  none.push(1, 2000);
  REQUIRE_FALSE(none.end(2 << 16));      // a generation that is not begun
  REQUIRE_FALSE(none.end(0));            // none
  REQUIRE_FALSE(none.end(1 << 16 | 1));  // a slot that was never used
  REQUIRE_FALSE(
      none.out.end(RmaEndFrame{id, ports::OperationResult(Status::rma_handle), false}, none.messages, forever, none.ended));
}

TEST_CASE("rma_out__fence__waits_for_what_is_before_it_and_holds_what_is_behind") {
  Giver w(3);
  w.push(1, 10);
  w.push(2, 10, true);
  w.push(3, 10);
  Giver unstarted;
  unstarted.started = false;
  unstarted.push(1, 10);
  unstarted.push(2, 10);
  REQUIRE_FALSE(unstarted.out.fence_before(2));  // they wait for their turn, and none is a fence
  REQUIRE(w.out.fence_before(3));
  REQUIRE(w.out.fence_before(2));
  REQUIRE_FALSE(w.out.fence_before(1));  // the fence is the second
  REQUIRE(w.take()->first == 1 << 16);
  REQUIRE_FALSE(w.take());
  REQUIRE(w.end(1 << 16));
  REQUIRE_FALSE(w.take());
  w.out.start(0);
  REQUIRE(w.take()->first == (1 << 16 | 1));
  REQUIRE(w.take()->first == (1 << 16 | 2));
  REQUIRE_FALSE(w.out.fence_before(3));
  w.push(4, 10);
  REQUIRE(w.out.full());
  w.out.fail_all(Status::disconnected, w.ended);
  REQUIRE(w.ends == Ends{{1, Status::success}, {2, Status::disconnected}, {3, Status::disconnected}, {4, Status::disconnected}});
  REQUIRE(w.out.empty());
  REQUIRE_FALSE(w.out.full());
}

TEST_CASE("rma_out__more_than_a_window_of_chunks__waits_for_the_first_that_is_missing") {
  Giver w;
  w.push(1, 1000 * (chunks_window + 10));
  constexpr uint64_t id = 1 << 16;
  uint64_t taken = 0;
  while (const auto piece = w.take()) taken += piece->second == RmaOut::description ? 0u : 1u;
  REQUIRE(taken == chunks_window);
  static_cast<void>(w.out.chunk_acked(id, {1, 0}));
  REQUIRE_FALSE(w.take());
  static_cast<void>(w.out.chunk_acked(id, {0, 0}));
  REQUIRE(w.take() == std::pair{id, uint64_t{chunks_window}});
  REQUIRE(w.take() == std::pair{id, uint64_t{chunks_window + 1}});
  REQUIRE_FALSE(w.take());
}

TEST_CASE("rma_out__a_description__comes_before_the_first_chunk_and_again_until_the_peer_knows_it") {
  constexpr uint64_t id = 1 << 16;
  const auto described_before = [](Giver& w) {
    std::vector<uint64_t> places;
    uint64_t chunks = 0;
    while (const auto piece = w.take()) {
      if (piece->second == RmaOut::description) places.push_back(chunks);
      chunks += piece->second == RmaOut::description ? 0u : 1u;
    }
    return places;
  };
  Giver silent;
  silent.push(1, 1000 * 600);
  REQUIRE(described_before(silent) == std::vector<uint64_t>{0, 2, 16, 128});
  for (const bool by_chunk : {false, true}) {
    Giver told;
    told.push(1, 1000 * 600);
    for (int i = 0; i < 10; ++i) REQUIRE(told.take());
    REQUIRE_FALSE(told.out.chunk_acked(id, {by_chunk ? 3 : RmaOut::description, 0}));
    REQUIRE(described_before(told).empty());
  }
  // What fits one packet with its description has no other one.
  Giver small;
  constexpr size_t most = 1000 + chunk_frame_bytes_short - rma_write_frame_bytes;
  small.source.reserve(most + 1);  // the first one refers to it
  small.push(1, most);
  small.push(2, most + 1);
  REQUIRE(small.take() == std::pair{id, uint64_t{0}});
  wire::Reader whole(small.bytes);
  const auto frame = decode_frame(whole);
  REQUIRE(std::get<RmaWriteFrame>(frame.value()).bytes.size() == most);
  REQUIRE(small.take() == std::pair{id | 1, RmaOut::description});
  wire::Reader alone(small.bytes);
  const auto description = decode_frame(alone);
  REQUIRE(std::get<RmaWriteFrame>(description.value()).bytes.empty());
  REQUIRE(std::get<RmaWriteFrame>(description.value()).total_bytes == most + 1);
  REQUIRE(small.take() == std::pair{id | 1, uint64_t{0}});
  wire::Reader more(small.bytes);
  const auto chunk = decode_frame(more);
  REQUIRE(std::get<RmaWriteMoreFrame>(chunk.value()).bytes.size() == most + 1);
}

TEST_CASE("rma_in__chunks_of_a_described_write__are_placed_and_what_cannot_be_is_a_violation") {
  Buffer memory(3000);
  Tickets target(memory);
  RmaIn in;
  in.open(4, 1000, 1);
  const Buffer data(1000, std::byte{9});
  constexpr uint64_t id = 2 << 16;
  const auto more = [&](uint64_t operation, uint64_t at, size_t size = 1000) {
    return in.write_more(RmaWriteMoreFrame{operation, at, Bytes(data).first(size)}, target);
  };
  REQUIRE_FALSE(in.knows(id));
  REQUIRE_FALSE(more(id, 0));
  REQUIRE(in.write(RmaWriteFrame{id, 2500, 0, {}, {}}, target));
  REQUIRE(in.write(RmaWriteFrame{id, 2500, 0, {}, {}}, target));  // again
  REQUIRE_FALSE(in.write(RmaWriteFrame{id, 2501, 0, {}, {}}, target));
  REQUIRE(target.writes == std::vector<int>{1});
  REQUIRE(in.knows(id));
  REQUIRE(in.knows(1 << 16));  // late
  REQUIRE_FALSE(in.knows(3 << 16));
  REQUIRE_FALSE(in.knows(1 << 16 | 3));
  REQUIRE(in.knows(1 << 16 | 4));  // beyond what was agreed: a violation, and no reason to wait
  REQUIRE_FALSE(more(1 << 16 | 4, 0));
  REQUIRE(more(1 << 16, 0));  // late
  REQUIRE(more(id, 2000, 500));
  REQUIRE_FALSE(more(id, 500));
  REQUIRE_FALSE(more(id, 1000, 999));
  REQUIRE_FALSE(more(id, 3000));
  REQUIRE(more(id, 0));
  REQUIRE(more(id, 0));  // twice
  REQUIRE_FALSE(in.reply_due());
  REQUIRE(more(id, 1000));
  REQUIRE(in.reply_due());
  REQUIRE(target.completed == 1);
  REQUIRE(std::count(memory.begin(), memory.end(), std::byte{9}) == 2500);
  REQUIRE(more(id, 0));  // after its end
  RmaReadFrame read;
  read.operation = 1 << 16 | 1;
  read.total_bytes = 100;
  REQUIRE(in.read(read, target));
  REQUIRE_FALSE(more(1 << 16 | 1, 0));  // of a read
  in.abandon(target);
}

}  // namespace
}  // namespace ccixfer::datagram::testing
