// Edges of the machines: the last number that fits, what is late, what comes again after it was given up.
#include "tests/unit/datagram/scripts.h"

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
  REQUIRE(r.came({0, 0, false, bytes}) == Arrival::taken);
  REQUIRE(r.came({2, 0, false, bytes}) == Arrival::no_room);
  REQUIRE(r.came({2, 0, true, {}}) == Arrival::taken);
  REQUIRE(r.held == held_bytes_max - 99);
  r.held = held_bytes_max - 100;
  REQUIRE(r.came({3, 0, false, bytes}) == Arrival::taken);
  REQUIRE(r.held == held_bytes_max);
  REQUIRE(r.came({3, 0, false, bytes}) == Arrival::taken);  // it is here
  REQUIRE(r.came({4, 0, false, bytes}) == Arrival::no_room);
  REQUIRE(r.came({1, 0, false, bytes}) == Arrival::taken);  // and 2 and 3 after it
  REQUIRE(r.delivered.size() == 3);
  REQUIRE(r.held == held_bytes_max - 100);
  REQUIRE(r.came({4, 0, false, bytes}) == Arrival::taken);
  r.held = held_bytes_max;
  r.machine.leave();
  REQUIRE(r.came({6, 0, false, bytes}) == Arrival::taken);  // it is not kept
  Receiver unordered(Attribute::reliable_unordered);
  unordered.held = held_bytes_max;
  REQUIRE(unordered.came({1, 0, false, bytes}) == Arrival::taken);  // nor is this
}

TEST_CASE("in_messages__room_of_one_connection__others_have_the_rest") {
  const Buffer bytes(held_bytes_of_one_max / 4);
  Receiver r(Attribute::reliable_ordered, 32);
  for (const uint64_t sequence : {1u, 2u, 3u, 4u}) REQUIRE(r.came({sequence, 0, false, bytes}) == Arrival::taken);
  REQUIRE(r.held == held_bytes_of_one_max);
  REQUIRE(r.came({5, 0, false, Buffer(1)}) == Arrival::no_room);
  REQUIRE(r.came({0, 0, false, bytes}) == Arrival::taken);
  REQUIRE(r.delivered.size() == 5);
  REQUIRE(r.held == 0);
  REQUIRE(r.came({6, 0, false, bytes}) == Arrival::taken);
}

TEST_CASE("in_messages__no_room__what_came_in_parts_has_its_place_and_is_never_thrown_away") {
  const Buffer part(part_bytes, std::byte{1});
  const Buffer end(10, std::byte{2});
  const auto parts_of_message = [&](uint64_t sequence, uint8_t index) {
    return MessagePartFrame{sequence, 0, part_bytes + 10, index, index == 0 ? Bytes(part) : Bytes(end)};
  };
  for (const Attribute attribute : {Attribute::reliable_ordered, Attribute::reliable_unordered}) {
    Receiver r(attribute);
    REQUIRE(r.part_came(parts_of_message(1, 0)) == Arrival::taken);
    REQUIRE(r.part_came(parts_of_message(2, 0)) == Arrival::taken);
    r.held = held_bytes_max;
    REQUIRE(r.part_came(parts_of_message(3, 0)) == Arrival::no_room);
    REQUIRE(r.part_came(parts_of_message(0, 0)) == Arrival::taken);  // the first that is missing: beyond the bound
    REQUIRE(r.part_came(parts_of_message(1, 1)) == Arrival::taken);
    // Whole, and longer than its parts said: only what was counted has a place.
    const bool is_ordered = attribute == Attribute::reliable_ordered;
    REQUIRE(r.came({2, 0, false, Buffer(part_bytes + 11)}) == (is_ordered ? Arrival::no_room : Arrival::taken));
    REQUIRE(r.came({2, 0, false, Buffer(part_bytes + 10)}) == Arrival::taken);
    REQUIRE(r.part_came(parts_of_message(0, 1)) == Arrival::taken);
    REQUIRE(r.delivered.size() == 3);
    REQUIRE(r.told().next == 3);
    REQUIRE(r.held == held_bytes_max - 2 * (part_bytes + 10));
  }
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

TEST_CASE("out_messages__refused_again_and_again__the_pause_doubles_until_a_delivery") {
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

}  // namespace
}  // namespace ccixfer::datagram::testing
