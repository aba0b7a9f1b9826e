// Edges of the machines: the last number that fits, what is late, what comes again after it was given up.
#include "tests/unit/datagram/scripts.h"
#include "transports/datagram/rma_in.h"
#include "transports/datagram/rma_out.h"

namespace ccixfer::datagram::testing {
namespace {

using Ends = std::vector<std::pair<uint64_t, Status>>;

TEST_CASE("in_messages__our_application_leaves__nothing_is_kept_and_everything_is_answered") {
  Receiver r(Attribute::reliable_ordered);
  REQUIRE(r.arrives(2));
  REQUIRE(r.arrives(3));
  REQUIRE(r.held == 2);
  r.machine.leave();
  REQUIRE(r.held == 0);
  REQUIRE_FALSE(r.machine.due());
  REQUIRE(r.arrives(0));
  REQUIRE(r.machine.due());
  const MessageAckFrame told = r.told();
  REQUIRE(told.next == 0);
  REQUIRE(told.status == Status::disconnected);
  REQUIRE(told.flight == 0);  // whatever the sender's is: a later one would be a lie
  REQUIRE_FALSE(r.machine.due());
  REQUIRE(r.arrives(500, 9));  // of any window and flight
  REQUIRE(r.machine.due());
  REQUIRE(r.delivered.empty());

  Receiver unreliable(Attribute::unreliable);
  REQUIRE(unreliable.arrives(7));
  unreliable.machine.leave();
  REQUIRE(unreliable.arrives(8));
  REQUIRE(unreliable.delivered == std::vector<int>{7});
  REQUIRE_FALSE(unreliable.machine.due());
}

TEST_CASE("in_messages__room__for_what_comes_before_its_turn_only") {
  const Buffer bytes(100);
  Receiver r(Attribute::reliable_ordered);
  r.held = held_bytes_max - 99;
  REQUIRE(r.machine.room_for({0, 0, false, bytes}));
  REQUIRE_FALSE(r.machine.room_for({1, 0, false, bytes}));
  r.held = held_bytes_max - 100;
  REQUIRE(r.machine.room_for({1, 0, false, bytes}));
  r.held = held_bytes_max;
  r.machine.leave();
  REQUIRE(r.machine.room_for({1, 0, false, bytes}));  // it is not kept
  Receiver unordered(Attribute::reliable_unordered);
  unordered.held = held_bytes_max;
  REQUIRE(unordered.machine.room_for({1, 0, false, bytes}));  // nor is this
}

TEST_CASE("in_messages__empty_ones__take_their_number_and_nobody_gets_them") {
  Receiver r(Attribute::reliable_ordered);
  r.buffers = 0;
  REQUIRE(r.arrives(1, 0, true));
  REQUIRE(r.arrives(0, 0, true));
  REQUIRE(r.told().next == 2);
  REQUIRE(r.told().status == Status::success);
  Receiver unordered(Attribute::reliable_unordered);
  unordered.buffers = 0;
  REQUIRE(unordered.arrives(1, 0, true));
  REQUIRE(unordered.arrives(0, 0, true));
  REQUIRE(unordered.told().next == 2);
  REQUIRE(unordered.told().words == 0);
}

TEST_CASE("in_messages__what_was_held_is_refused__the_rest_of_it_goes_too") {
  Receiver r(Attribute::reliable_ordered);
  for (const uint64_t sequence : {1u, 2u, 3u}) REQUIRE(r.arrives(sequence));
  r.buffers = 2;
  REQUIRE(r.arrives(0));  // and 1; 2 finds no buffer
  REQUIRE(r.delivered == std::vector<int>{0, 1});
  REQUIRE(r.held == 0);
  const MessageAckFrame told = r.told();
  REQUIRE(told.next == 2);
  REQUIRE(told.status == Status::receiver_not_ready);
  REQUIRE(told.flight == 0);
  r.buffers = 9;
  REQUIRE(r.arrives(3, 1));
  REQUIRE(r.held == 1);
  REQUIRE(r.told().status == Status::receiver_not_ready);  // 2 is still missing
  REQUIRE(r.arrives(2, 1));
  REQUIRE(r.delivered == std::vector<int>{0, 1, 2, 3});
  REQUIRE(r.told().status == Status::success);
  REQUIRE(r.told().flight == 1);
}

TEST_CASE("in_messages__unordered_refused__only_that_one_and_of_its_flight") {
  Receiver r(Attribute::reliable_unordered);
  REQUIRE(r.arrives(1));
  r.buffers = 0;
  REQUIRE(r.arrives(0));
  MessageAckFrame told = r.told();
  REQUIRE(told.next == 0);
  REQUIRE(told.status == Status::receiver_not_ready);
  REQUIRE(told.flight == 0);
  REQUIRE(told.words == 1);
  REQUIRE(told.bits[0] == 1);
  r.buffers = 9;
  REQUIRE(r.arrives(2));  // late: of the flight that was refused
  REQUIRE(r.delivered == std::vector<int>{1});
  REQUIRE(r.arrives(1, 1));  // delivered already
  REQUIRE(r.told().status == Status::receiver_not_ready);
  REQUIRE(r.arrives(0, 1));
  REQUIRE(r.delivered == std::vector<int>{1, 0});
  told = r.told();
  REQUIRE(told.next == 2);
  REQUIRE(told.status == Status::success);
  REQUIRE(told.words == 0);
  REQUIRE_FALSE(r.arrives(3, 2));
  REQUIRE(r.arrives(9, 1));
  REQUIRE_FALSE(r.arrives(10, 1));  // 8 from 2
  REQUIRE(r.arrives(0, 1));         // old
  REQUIRE(r.delivered == std::vector<int>{1, 0, 9});
}

TEST_CASE("in_messages__unordered_over_many_words__the_frame_is_as_long_as_it_says") {
  for (const uint64_t last : {1u, 64u, 65u, 128u, 129u, 1000u}) {
    Receiver r(Attribute::reliable_unordered, messages_window_max);
    REQUIRE(r.arrives(last));
    Buffer bytes;
    wire::Writer out(bytes);
    const size_t expected = r.machine.frame_bytes();
    static_cast<void>(r.machine.take(out, 0));
    REQUIRE(bytes.size() == expected);
    const MessageAckFrame told = r.told();
    REQUIRE(told.words == (last + 63) / 64);
    for (uint64_t sequence = 1; sequence <= last; ++sequence) {
      const uint64_t bit = sequence - 1;
      REQUIRE((told.bits[bit / 64] >> (bit % 64) & 1) == (sequence == last ? 1u : 0u));
    }
  }
}

TEST_CASE("out_messages__acknowledged_beyond_what_went_out__refused_to_the_number") {
  for (const Attribute attribute : {Attribute::reliable_ordered, Attribute::reliable_unordered}) {
    Sender s(attribute);
    for (uint64_t i = 0; i < 4; ++i) s.push(i);
    REQUIRE(s.take());
    REQUIRE(s.take());
    REQUIRE_FALSE(s.ack(3));
    REQUIRE(s.ends.empty());
    REQUIRE(s.ack(1));
    REQUIRE(s.ack(1));
    REQUIRE(s.ack(0));  // an old one
    REQUIRE_FALSE(s.ack(3));
    REQUIRE(s.ack(2));
    REQUIRE(s.ends == Ends{{0, Status::success}, {1, Status::success}});
    REQUIRE_FALSE(s.ack(2, Status::receiver_not_ready));  // of nothing
    REQUIRE(s.take()->sequence == 2);
    REQUIRE(s.ack(2, Status::receiver_not_ready));
  }
  Sender ordered(Attribute::reliable_ordered);
  ordered.push(0), ordered.push(1);
  REQUIRE(ordered.take());
  REQUIRE(ordered.take());
  REQUIRE_FALSE(ordered.ack(0, Status::success, 0, 1));  // bits are of unordered ones
  Sender unreliable(Attribute::unreliable);
  unreliable.push(0);
  REQUIRE(unreliable.take());
  REQUIRE_FALSE(unreliable.ack(0));
}

TEST_CASE("out_messages__bits__name_what_is_delivered_out_of_order") {
  Sender s(Attribute::reliable_unordered);
  for (uint64_t i = 0; i < 4; ++i) {
    s.push(i);
    REQUIRE(s.take());
  }
  REQUIRE(s.ack(0, Status::success, 0, 0b010));  // 2
  REQUIRE(s.ends == Ends{{2, Status::success}});
  REQUIRE_FALSE(s.ack(0, Status::success, 0, 0b1000));  // 4 never went out
  REQUIRE(s.ack(0, Status::success, 0, 0b110));         // 2 again, and 3
  REQUIRE(s.ends.back() == std::pair<uint64_t, Status>{3, Status::success});
  REQUIRE(s.ack(1, Status::success, 0, 0b011));
  REQUIRE(s.ends == Ends{{2, Status::success}, {3, Status::success}, {0, Status::success}});
  REQUIRE(s.ack(4));
  REQUIRE(s.machine.empty());
  s.push(9);
  REQUIRE(s.take()->sequence == 4);
  REQUIRE(s.ack(2, Status::success, 0, 0b01));  // late, of what is over
  REQUIRE(s.ends.size() == 4);
}

TEST_CASE("out_messages__unordered_refused__what_was_delivered_does_not_go_out_again") {
  Sender s(Attribute::reliable_unordered);
  for (uint64_t i = 0; i < 4; ++i) {
    s.push(i);
    REQUIRE(s.take());
  }
  s.push(4);
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0, 0b010));  // all but 2 were thrown away
  s.now += retry_pause_first;
  s.machine.timer(s.now, s.ended);
  std::vector<uint64_t> again;
  while (const auto frame = s.take()) {
    again.push_back(frame->sequence);
    REQUIRE(frame->flight == 1);
  }
  REQUIRE(again == std::vector<uint64_t>{0, 1, 3, 4});
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0, 0b010));  // an old refusal was acted upon
  REQUIRE_FALSE(s.take());
  REQUIRE(s.ack(5, Status::success, 1));
  REQUIRE(s.machine.empty());
}

TEST_CASE("out_messages__lost__only_if_it_still_matters") {
  Sender s(Attribute::reliable_unordered);
  for (uint64_t i = 0; i < 3; ++i) {
    s.push(i);
    REQUIRE(s.take());
  }
  s.push(3);
  s.machine.lost(3, 0);  // it never went out
  s.machine.lost(7, 0);
  s.machine.lost(1, 1);  // a flight that is none
  REQUIRE(s.take()->sequence == 3);
  s.machine.lost(1, 0);
  s.machine.lost(2, 0);
  REQUIRE(s.ack(0, Status::success, 0, 0b01));  // 1 had arrived
  REQUIRE(s.machine.next_frame_bytes() > 0);
  REQUIRE(s.take()->sequence == 2);
  REQUIRE_FALSE(s.take());
  s.machine.lost(1, 0);  // done
  REQUIRE_FALSE(s.take());
  s.machine.lost(0, 0);
  REQUIRE(s.ack(2));
  s.machine.lost(0, 0);  // before the window
  REQUIRE_FALSE(s.take());
}

TEST_CASE("out_messages__refused_again_and_again__the_pause_doubles_to_its_bound_and_a_delivery_ends_it") {
  Sender s(Attribute::reliable_ordered);
  s.push(0), s.push(1);
  Duration pause = retry_pause_first;
  for (uint32_t flight = 0; flight < 10; ++flight) {
    REQUIRE(s.take()->sequence == 0);
    REQUIRE(s.ack(0, Status::receiver_not_ready, flight));
    REQUIRE_FALSE(s.machine.sendable());
    REQUIRE(s.machine.deadline() == after(s.now, pause));
    s.now += pause - 1ns;
    s.machine.timer(s.now, s.ended);
    REQUIRE_FALSE(s.machine.sendable());
    s.now += 1ns;
    s.machine.timer(s.now, s.ended);
    REQUIRE(s.machine.sendable());
    REQUIRE(s.machine.deadline() == never);
    pause = std::min(pause * 2, retry_pause_max);
  }
  REQUIRE(pause == retry_pause_max);
  REQUIRE(s.take());
  REQUIRE(s.take());
  REQUIRE(s.ack(1, Status::receiver_not_ready, 10));
  REQUIRE(s.machine.deadline() == after(s.now, retry_pause_first));
}

TEST_CASE("out_messages__timeouts__of_each_and_as_long_again_while_it_is_tried_again") {
  Sender s(Attribute::reliable_unordered);
  s.push(0, 30ms);
  s.push(1, 10ms);
  s.push(2);
  REQUIRE(s.machine.deadline() == start + 10ms);
  REQUIRE(s.take());
  REQUIRE(s.take());
  s.now += 10ms - 1ns;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.ends.empty());
  s.now += 1ns;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.ends == Ends{{1, Status::timed_out}});
  REQUIRE(s.machine.deadline() == start + 30ms);
  REQUIRE(s.machine.in_queue() == 2);
  // Refused: it is given up at once when its time comes, and its number goes out empty; the last one waits.
  s.now = start + 29ms;
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0));
  s.now = start + 30ms;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.ends == Ends{{1, Status::timed_out}, {0, Status::receiver_not_ready}});
  REQUIRE(s.machine.deadline() == never);
  const auto first = s.take();
  REQUIRE(first->sequence == 0);
  REQUIRE(first->empty);
  REQUIRE(s.take()->sequence == 1);
  REQUIRE_FALSE(s.take()->empty);
}

TEST_CASE("out_messages__paused_and_never_out__given_up_without_a_number") {
  Sender s(Attribute::reliable_unordered);
  s.push(0);
  REQUIRE(s.take());
  s.push(1, 10ms);
  s.push(2);
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0));
  s.now += 10ms;
  s.machine.timer(s.now, s.ended);  // the pause is over as well
  REQUIRE(s.ends == Ends{{1, Status::receiver_not_ready}});
  REQUIRE(s.take()->sequence == 0);
  const auto next = s.take();
  REQUIRE(next->sequence == 1);
  REQUIRE(next->bytes[0] == std::byte{2});
  REQUIRE_FALSE(s.take());
  s.push(3, 10ms);                                // stamped although one before it went
  REQUIRE(s.machine.deadline() == s.now + 20ms);  // as all of a flight that is tried again
}

TEST_CASE("out_messages__unreliable__ends_as_it_goes_and_never_times_out") {
  Sender s(Attribute::unreliable);
  s.push(0, 10ms);
  s.push(1, 10ms);
  REQUIRE(s.machine.deadline() == never);
  REQUIRE(s.take()->sequence == 0);
  REQUIRE(s.ends == Ends{{0, Status::success}});
  s.now += 1s;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.ends.size() == 1);
  REQUIRE(s.take()->sequence == 1);
  REQUIRE(s.machine.empty());
  REQUIRE(s.machine.issued() == 2);
  REQUIRE(s.machine.ended() == 2);
}

// ---- RMA

class CountingEntropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override { return state_ += 0x9e3779b97f4a7c15; }

 private:
  uint64_t state_ = 1;
};

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
    const size_t expected = in.next_fragment_frame_bytes();
    const auto carried = in.take_fragment(out, 0, target);
    REQUIRE(carried);
    REQUIRE(bytes.size() == expected);
    return carried->c;
  };
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(take() == i);
  REQUIRE_FALSE(in.fragment_due());
  in.fragment_lost(frame.operation, 1);
  in.fragment_lost(frame.operation, 0);
  in.fragment_acked(frame.operation, 1, target);  // it had arrived after all
  REQUIRE(in.fragment_due());
  REQUIRE(take() == 0);
  REQUIRE_FALSE(in.fragment_due());
  in.fragment_lost(frame.operation, 1);  // acknowledged
  REQUIRE_FALSE(in.fragment_due());
  in.fragment_lost(2 << 16, 0);  // another one
  REQUIRE_FALSE(in.fragment_due());
  in.fragment_acked(frame.operation, 0, target);
  in.fragment_acked(frame.operation, 2, target);
  REQUIRE_FALSE(in.reply_due());  // a read that ended well needs none
  in.fragment_lost(frame.operation, 2);
  REQUIRE_FALSE(in.fragment_due());
  REQUIRE(in.read(frame, target));  // a late copy of the request
  REQUIRE_FALSE(in.fragment_due());
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
  REQUIRE_FALSE(in.fragment_due());
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
    if (!out.fragment_due()) return std::nullopt;
    bytes.clear();
    wire::Writer to(bytes);
    const size_t expected = out.next_fragment_frame_bytes();
    const auto carried = out.take_fragment(to, 0);
    REQUIRE(bytes.size() == expected);
    return std::pair{carried.b, carried.c};
  }
  bool end(uint64_t operation, Status status = Status::success) {
    return out.end(RmaEndFrame{operation, ports::Ending(status), true}, messages, forever, ended);
  }
  RmaOut out;
  OutMessages messages;
  Buffer source, bytes;
  bool started = true;
  ports::HandleKind kind = ports::HandleKind::region;
  Ends ends;
  RmaOut::Ended ended = [this](uint64_t token, ports::Ending ending) { ends.emplace_back(token, ending.status); };
};

TEST_CASE("rma_out__pieces_that_are_lost__go_out_again_if_they_still_matter") {
  Giver w;
  w.push(1, 2500, false, true);
  constexpr uint64_t id = 1 << 16;
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(w.take() == std::pair{id, i});
  REQUIRE_FALSE(w.take());
  w.out.fragment_lost(id, 1);
  w.out.fragment_lost(id, 0);
  REQUIRE_FALSE(w.out.fragment_acked(id, 1));
  REQUIRE(w.take() == std::pair{id, uint64_t{0}});
  REQUIRE_FALSE(w.take());
  w.out.fragment_lost(id, 1);
  REQUIRE_FALSE(w.take());
  REQUIRE_FALSE(w.out.fragment_acked(id, 0));
  REQUIRE(w.out.fragment_acked(id, 2) == 1);  // its memory may be used again
  REQUIRE_FALSE(w.out.fragment_acked(9 << 16, 0));
  REQUIRE(w.ends.empty());
  REQUIRE(w.end(id));
  REQUIRE(w.ends == Ends{{1, Status::success}});
  w.out.fragment_lost(id, 2);
  REQUIRE_FALSE(w.take());
  REQUIRE(w.end(id));  // come again
  REQUIRE(w.ends.size() == 1);
  REQUIRE(w.out.empty());
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
  REQUIRE_FALSE(none.out.end(RmaEndFrame{id, ports::Ending(Status::rma_handle), false}, none.messages, forever, none.ended));
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

TEST_CASE("rma_out__more_than_a_window_of_fragments__waits_for_the_first_that_is_missing") {
  Giver w;
  w.push(1, 1000 * (fragments_window + 10));
  constexpr uint64_t id = 1 << 16;
  uint64_t taken = 0;
  while (w.take()) ++taken;
  REQUIRE(taken == fragments_window);
  static_cast<void>(w.out.fragment_acked(id, 1));
  REQUIRE_FALSE(w.take());
  static_cast<void>(w.out.fragment_acked(id, 0));
  REQUIRE(w.take() == std::pair{id, uint64_t{fragments_window}});
  REQUIRE(w.take() == std::pair{id, uint64_t{fragments_window + 1}});
  REQUIRE_FALSE(w.take());
}

}  // namespace
}  // namespace ccixfer::datagram::testing
