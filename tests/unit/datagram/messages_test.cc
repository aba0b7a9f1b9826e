// The message machines and the chunk window as scripts: receive old, in order, duplicate, future, then expect.
#include "tests/unit/datagram/scripts.h"
#include "transports/datagram/chunks.h"

namespace ccixfer::datagram::testing {
namespace {

TEST_CASE("in_messages__ordered__future_held_duplicate_and_old_ignored_all_in_order") {
  Receiver r(Attribute::reliable_ordered);
  REQUIRE(r.arrives(1));
  REQUIRE(r.arrives(3));
  REQUIRE(r.arrives(1));
  REQUIRE(r.delivered.empty());
  REQUIRE(r.held == 2);
  REQUIRE(r.arrives(0));
  REQUIRE(r.delivered == std::vector<int>{0, 1});
  REQUIRE(r.told().next == 2);
  REQUIRE(r.arrives(0));
  REQUIRE(r.arrives(2));
  REQUIRE(r.delivered == std::vector<int>{0, 1, 2, 3});
  REQUIRE(r.held == 0);
  REQUIRE(r.arrives(11));
  REQUIRE_FALSE(r.arrives(12));  // expects 4: 8 from there
}

TEST_CASE("in_messages__ordered_without_a_buffer__all_of_the_flight_is_thrown_away") {
  Receiver r(Attribute::reliable_ordered);
  r.buffers = 1;
  REQUIRE(r.arrives(0));
  REQUIRE(r.arrives(2));
  REQUIRE(r.arrives(1));  // refused, and 2 with it
  REQUIRE(r.held == 0);
  auto told = r.told();
  REQUIRE(told.next == 1);
  REQUIRE(told.status == Status::receiver_not_ready);
  REQUIRE(told.flight == 0);
  r.buffers = 10;
  REQUIRE(r.arrives(1));  // a late copy of the refused flight
  REQUIRE(r.arrives(2));
  REQUIRE(r.delivered == std::vector<int>{0});
  REQUIRE(r.told().status == Status::receiver_not_ready);
  REQUIRE(r.arrives(1, 1));
  REQUIRE(r.delivered == std::vector<int>{0, 1});
  told = r.told();
  REQUIRE(told.next == 2);
  REQUIRE(told.status == Status::success);
  REQUIRE_FALSE(r.arrives(2, 2));
}

TEST_CASE("in_messages__unordered__each_once_as_it_comes_and_the_state_names_them") {
  Receiver r(Attribute::reliable_unordered);
  REQUIRE(r.arrives(2));
  REQUIRE(r.arrives(5));
  REQUIRE(r.arrives(2));
  REQUIRE(r.delivered == std::vector<int>{2, 5});
  auto told = r.told();
  REQUIRE(told.next == 0);
  REQUIRE(told.words == 1);
  REQUIRE(told.bits[0] == ((1u << 1) | (1u << 4)));
  REQUIRE(r.arrives(0));
  REQUIRE(r.arrives(1));
  told = r.told();
  REQUIRE(told.next == 3);
  REQUIRE(told.bits[0] == (1u << 1));
  r.buffers = 0;
  REQUIRE(r.arrives(3));
  REQUIRE(r.told().status == Status::receiver_not_ready);
  r.buffers = 1;
  REQUIRE(r.arrives(4));  // late, of the refused flight
  REQUIRE(r.arrives(3, 1, true));
  REQUIRE(r.delivered == std::vector<int>{2, 5, 0, 1});
  REQUIRE(r.told().next == 4);  // given up: its number is taken, and nobody gets it
}

TEST_CASE("in_messages__what_was_told_is_lost__it_is_due_again_unless_newer_was_told") {
  Receiver r(Attribute::reliable_ordered);
  REQUIRE(r.arrives(0));
  Buffer bytes;
  wire::Writer out(bytes);
  const auto first = r.machine.take(out, 0);
  REQUIRE_FALSE(r.machine.due());
  REQUIRE(r.arrives(1));
  const auto second = r.machine.take(out, 0);
  r.machine.lost(first.b);
  REQUIRE_FALSE(r.machine.due());
  r.machine.lost(second.b);
  REQUIRE(r.machine.due());
}

TEST_CASE("out_messages__lost__goes_out_again_once_and_before_new_ones") {
  Sender s(Attribute::reliable_ordered);
  for (uint64_t i = 0; i < 3; ++i) s.push(i);
  REQUIRE(s.take()->sequence == 0);
  REQUIRE(s.take()->sequence == 1);
  s.machine.lost(0, 0);
  s.machine.lost(0, 0);
  REQUIRE(s.take()->sequence == 0);
  REQUIRE(s.take()->sequence == 2);
  REQUIRE_FALSE(s.take());
  s.machine.lost(1, 0);
  REQUIRE(s.ack(2));
  REQUIRE_FALSE(s.take());  // it is there meanwhile
  REQUIRE(s.ends == std::vector<std::pair<uint64_t, Status>>{{0, Status::success}, {1, Status::success}});
  REQUIRE(s.ack(1));  // an old state
  REQUIRE_FALSE(s.ack(4));
}

TEST_CASE("out_messages__window__no_more_in_flight_than_agreed") {
  Sender s(Attribute::reliable_ordered, 4);
  for (uint64_t i = 0; i < 4; ++i) s.push(i);
  REQUIRE(s.machine.in_queue() >= s.machine.window());
  s.machine.push({true, 9}, {}, forever);  // an RMA's message waits its turn
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(s.take()->sequence == i);
  REQUIRE_FALSE(s.take());
  REQUIRE(s.ack(1));
  REQUIRE(s.take()->sequence == 4);
}

TEST_CASE("out_messages__refused__a_pause_then_all_of_it_in_a_new_flight") {
  Sender s(Attribute::reliable_ordered);
  for (uint64_t i = 0; i < 3; ++i) {
    s.push(i);
    REQUIRE(s.take());
  }
  REQUIRE(s.ack(1, Status::receiver_not_ready, 0));
  REQUIRE_FALSE(s.take());
  REQUIRE(s.machine.deadline() == start + retry_pause_first);
  REQUIRE(s.ack(1, Status::receiver_not_ready, 0));  // the same once more: one refusal
  s.now += retry_pause_first;
  s.machine.timer(s.now, s.ended);
  const auto again = s.take();
  REQUIRE(again->sequence == 1);
  REQUIRE(again->flight == 1);
  REQUIRE(s.take()->sequence == 2);
  s.machine.lost(2, 0);  // a packet of the old flight
  REQUIRE_FALSE(s.take());
  REQUIRE(s.ack(3, Status::success, 1));
  REQUIRE(s.ends.size() == 3);
  REQUIRE_FALSE(s.ack(3, Status::success, 2));  // a flight that we have not begun
}

TEST_CASE("out_messages__refused_until_the_timeout__fail_in_order_and_numbers_are_reused") {
  Sender s(Attribute::reliable_ordered);
  for (uint64_t i = 0; i < 3; ++i) {
    s.push(i, 10ms);
    REQUIRE(s.take());
  }
  s.now += 20ms;
  REQUIRE(s.ack(1, Status::receiver_not_ready, 0));
  REQUIRE(s.ends == std::vector<std::pair<uint64_t, Status>>{
                        {0, Status::success}, {1, Status::receiver_not_ready}, {2, Status::receiver_not_ready}});
  s.push(7);
  const auto next = s.take();
  REQUIRE(next->sequence == 1);
  REQUIRE(next->flight == 1);
  REQUIRE_FALSE(s.ack(3, Status::success, 1));  // that number is not used again yet
  REQUIRE(s.ack(2, Status::success, 1));
}

TEST_CASE("out_messages__tried_again_when_the_timeout_comes__the_answer_decides") {
  Sender s(Attribute::reliable_ordered);
  s.push(0, 10ms);
  REQUIRE(s.take());
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0));
  s.now += 5ms;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.take()->flight == 1);
  s.now += 10ms;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.ends.empty());  // it may be delivered at this moment
  REQUIRE(s.machine.deadline() == start + 20ms);
  REQUIRE(s.ack(0, Status::receiver_not_ready, 1));
  REQUIRE(s.ends == std::vector<std::pair<uint64_t, Status>>{{0, Status::receiver_not_ready}});
}

TEST_CASE("out_messages__tried_again_and_no_answer_for_twice_the_timeout__timed_out") {
  Sender s(Attribute::reliable_ordered);
  s.push(0, 10ms);
  REQUIRE(s.take());
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0));
  s.now += 5ms;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.take()->flight == 1);
  s.now = start + 20ms;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.ends == std::vector<std::pair<uint64_t, Status>>{{0, Status::timed_out}});
}

TEST_CASE("out_messages__unordered_refused_until_the_timeout__only_that_one_goes_out_empty") {
  Sender s(Attribute::reliable_unordered);
  s.push(0, 10ms);
  s.push(1);
  REQUIRE(s.take());
  REQUIRE(s.take());
  s.now += 20ms;
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0, 1));  // 1 is delivered
  REQUIRE(s.ends == std::vector<std::pair<uint64_t, Status>>{{1, Status::success}, {0, Status::receiver_not_ready}});
  s.now += retry_pause_max;
  s.machine.timer(s.now, s.ended);
  const auto empty = s.take();
  REQUIRE(empty->sequence == 0);
  REQUIRE(empty->empty);
  REQUIRE_FALSE(s.take());
  REQUIRE(s.ack(2, Status::success, 1));
  REQUIRE(s.machine.empty());
  REQUIRE(s.ends.size() == 2);
}

TEST_CASE("out_messages__silence_until_the_timeout__timed_out_and_the_unsent_never_go") {
  Sender s(Attribute::reliable_ordered, 2);
  for (uint64_t i = 0; i < 2; ++i) s.push(i, 10ms);
  REQUIRE(s.take());
  s.now += 10ms;
  s.machine.timer(s.now, s.ended);
  REQUIRE(s.ends == std::vector<std::pair<uint64_t, Status>>{{0, Status::timed_out}, {1, Status::timed_out}});
  REQUIRE_FALSE(s.take());
  REQUIRE(s.ack(1));
  REQUIRE(s.machine.empty());
  REQUIRE(s.ends.size() == 2);
}

TEST_CASE("out_messages__a_shorter_timeout_behind_a_longer__waits_for_it_where_there_is_an_order") {
  using Ends = std::vector<std::pair<uint64_t, Status>>;
  for (const Attribute attribute : {Attribute::reliable_ordered, Attribute::reliable_unordered}) {
    const bool ordered = attribute == Attribute::reliable_ordered;
    CAPTURE(ordered);
    Sender s(attribute);
    s.push(0, 30ms);
    s.push(1, 10ms);
    REQUIRE(s.take());
    REQUIRE(s.take());
    REQUIRE(s.machine.deadline() == start + (ordered ? 30ms : 10ms));
    s.now += 10ms;
    s.machine.timer(s.now, s.ended);
    REQUIRE(s.ends == (ordered ? Ends{} : Ends{{1, Status::timed_out}}));
    REQUIRE(s.machine.deadline() == start + 30ms);
    s.now += 20ms;
    s.machine.timer(s.now, s.ended);
    REQUIRE(s.ends == (ordered ? Ends{{0, Status::timed_out}, {1, Status::timed_out}}
                               : Ends{{1, Status::timed_out}, {0, Status::timed_out}}));
  }
}

TEST_CASE("out_messages__refused_and_a_shorter_timeout_behind__nothing_is_due_before_the_next_try") {
  Sender s(Attribute::reliable_ordered);
  s.push(0);
  s.push(1, 10ms);
  REQUIRE(s.take());
  REQUIRE(s.take());
  s.now += 10ms;
  REQUIRE(s.ack(0, Status::receiver_not_ready, 0));
  REQUIRE(s.ends.empty());
  REQUIRE(s.machine.deadline() == s.now + retry_pause_first);
}

TEST_CASE("out_messages__the_peer_leaves__all_end_as_disconnected") {
  Sender s(Attribute::reliable_ordered);
  for (uint64_t i = 0; i < 3; ++i) s.push(i);
  REQUIRE(s.take());
  REQUIRE(s.ack(0, Status::disconnected));
  REQUIRE(s.ends.size() == 3);
  REQUIRE(s.ends[2] == std::pair<uint64_t, Status>{2, Status::disconnected});
  REQUIRE(s.machine.peer_leaving());
}

TEST_CASE("chunk_window__random_order__each_fresh_once_and_bounded") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    sim::Random random(seed);
    ChunkWindow window;
    const uint64_t count = 1 + random.below(20'000);
    window.open(count);
    std::vector<bool> marked(count);
    uint64_t fresh = 0;
    while (!window.complete()) {
      REQUIRE(window.end() <= window.low() + chunks_window);
      REQUIRE(window.mark(window.end()) == ChunkWindow::Mark::beyond);
      const uint64_t index = random.chance(0.3) ? window.low() : window.low() + random.below(window.end() - window.low());
      const bool was = marked[index];
      REQUIRE(window.has(index) == was);
      REQUIRE(window.mark(index) == (was ? ChunkWindow::Mark::duplicate : ChunkWindow::Mark::fresh));
      marked[index] = true;
      fresh += was ? 0u : 1u;
    }
    REQUIRE(fresh == count);
    REQUIRE(window.mark(0) == ChunkWindow::Mark::duplicate);
  }
}

}  // namespace
}  // namespace ccixfer::datagram::testing
