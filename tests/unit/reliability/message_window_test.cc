// Messages over a network that keeps the order: windows, refusals, timeouts and goodbyes, number by number.
#include "core/reliability/message_window.h"

#include <catch2/catch.hpp>
#include <optional>

using namespace ccixfer;
using namespace ccixfer::reliability;
using namespace std::chrono_literals;

namespace {

using Ends = std::vector<std::pair<uint64_t, Status>>;
using Verdict = MessageReceiver::Verdict;
const Instant start{1000s};

struct Sender {
  explicit Sender(uint32_t window = 8, bool unreliable = false) { machine.open(window, unreliable); }
  void push(uint64_t token, Duration timeout = forever, bool rma = false) {
    const std::byte byte{static_cast<uint8_t>(token)};
    const Bytes part(&byte, 1);
    machine.push({rma, token}, copy_message({&part, 1}), timeout);
    machine.stamp(now);
  }
  // FragmentReleased and wholly with the network.
  std::optional<uint64_t> go() {
    if (!machine.sendable()) return std::nullopt;
    const auto out = machine.take(ended);
    machine.sent(out.flight);
    return out.sequence;
  }
  bool ack(uint64_t next, Status status = Status::success) { return machine.acknowledge(next, status, now, ended); }
  void timer() { machine.timer(now, ended); }
  MessageSender machine;
  Instant now = start;
  Ends ends;
  MessageSender::Ended ended = [this](const MessageOwner& owner, Status status) { ends.emplace_back(owner.token, status); };
};

}  // namespace

TEST_CASE("message_bytes__short_and_long__whole_and_with_their_check") {
  const std::vector<std::byte> bytes(MessageBytes::short_bytes_max + 1, std::byte{7});
  const Bytes parts[] = {Bytes(bytes).first(100), {}, Bytes(bytes).subspan(100)};
  for (const size_t count : {1u, 2u, 3u}) {
    const MessageBytes copy = copy_message({parts, count});
    CHECK(copy.size == (count == 3 ? 129 : 100));
    CHECK(copy.is_short() == (count != 3));
    CHECK(std::equal(copy.bytes().begin(), copy.bytes().end(), bytes.begin(), bytes.begin() + copy.size));
  }
  const Bytes most = Bytes(bytes).first(MessageBytes::short_bytes_max);
  CHECK(copy_message({&most, 1}).is_short());
}

TEST_CASE("message_sender__acknowledgements__of_what_is_wholly_sent_and_no_other") {
  Sender s;
  for (uint64_t i = 0; i < 4; ++i) s.push(i);
  CHECK(s.go() == 0);
  CHECK(s.go() == 1);
  const auto half = s.machine.take(s.ended);  // its bytes are not with the network yet
  CHECK(half.sequence == 2);
  CHECK_FALSE(s.ack(3));
  CHECK(s.ack(1));
  CHECK(s.ends == Ends{{0, Status::success}});
  CHECK_FALSE(s.ack(0));  // back
  CHECK(s.ack(2));
  CHECK_FALSE(s.ack(2, Status::receiver_not_ready));  // the next is not with it yet
  s.machine.sent(half.flight);
  CHECK(s.ack(3));
  CHECK_FALSE(s.ack(4));
  CHECK(s.machine.in_queue() == 1);
  CHECK(s.machine.issued() == 4);
  CHECK(s.machine.ended() == 3);
  Sender unreliable(8, true);
  unreliable.push(0);
  CHECK(unreliable.go() == 0);
  CHECK(unreliable.ends == Ends{{0, Status::success}});
  CHECK_FALSE(unreliable.ack(0));
  CHECK(unreliable.machine.empty());
}

TEST_CASE("message_sender__window__counts_what_goes_out_and_the_applications_own") {
  Sender s(2);
  s.push(0);
  CHECK_FALSE(s.machine.full());
  s.push(10, forever, true);  // an RMA's: it has its slot
  CHECK_FALSE(s.machine.full());
  s.push(1);
  CHECK(s.machine.full());
  CHECK(s.machine.in_queue() == 2);
  CHECK(s.go() == 0);
  CHECK(s.go() == 1);
  CHECK_FALSE(s.machine.sendable());
  CHECK(s.ack(1));
  CHECK_FALSE(s.machine.full());
  CHECK(s.machine.sendable());
}

TEST_CASE("message_sender__refused__a_pause_that_doubles_then_all_of_it_again") {
  Sender s;
  for (uint64_t i = 0; i < 3; ++i) s.push(i);
  Duration pause = retry_pause_first;
  for (int round = 0; round < 9; ++round) {
    CHECK(s.go() == 0);
    CHECK(s.go() == 1);
    const auto half = s.machine.take(s.ended);
    CHECK(s.ack(0, Status::receiver_not_ready));
    s.machine.sent(half.flight);  // of the flight before: it does not count
    CHECK_FALSE(s.machine.sendable());
    CHECK(s.machine.deadline() == s.now + pause);
    s.now += pause - 1ns;
    s.timer();
    CHECK_FALSE(s.machine.sendable());
    s.now += 1ns;
    s.timer();
    CHECK(s.machine.sendable());
    CHECK(s.machine.deadline() == never);
    CHECK_FALSE(s.ack(1));  // nothing of this flight is out
    pause = std::min(pause * 2, retry_pause_max);
  }
  CHECK(pause == retry_pause_max);
  CHECK(s.go() == 0);
  CHECK(s.go() == 1);
  CHECK(s.ack(1, Status::receiver_not_ready));
  CHECK(s.machine.deadline() == s.now + retry_pause_first);  // one was delivered: from the first pause on
}

TEST_CASE("message_sender__timeouts__what_is_out_keeps_its_number_and_what_is_not_goes") {
  Sender s(2);
  s.push(0, 10ms);
  s.push(1, 10ms);
  s.push(2, 10ms);
  s.push(3, 30ms);
  CHECK(s.go() == 0);
  CHECK(s.machine.deadline() == start + 10ms);
  s.now += 10ms - 1ns;
  s.timer();
  CHECK(s.ends.empty());
  s.now += 1ns;
  s.timer();
  CHECK(s.ends == Ends{{0, Status::timed_out}, {1, Status::timed_out}, {2, Status::timed_out}});
  CHECK(s.machine.in_queue() == 1);
  CHECK(s.machine.deadline() == start + 30ms);  // that of the one that is left, though three went before it
  CHECK(s.go() == 1);                           // 3 of the tokens, under the number of those that never went out
  CHECK(s.ack(2));
  CHECK(s.ends.size() == 4);
  CHECK(s.ends.back() == std::pair<uint64_t, Status>{3, Status::success});
  CHECK(s.machine.empty());
  s.push(9, 5ms);  // stamped as any other
  CHECK(s.machine.deadline() == s.now + 5ms);
}

TEST_CASE("message_sender__refused_when_the_timeout_comes__fails_and_all_behind_it") {
  Sender s;
  s.push(0, 10ms);
  s.push(1);
  CHECK(s.go() == 0);
  CHECK(s.go() == 1);
  s.now += 10ms;
  CHECK(s.ack(0, Status::receiver_not_ready));
  CHECK(s.ends == Ends{{0, Status::receiver_not_ready}, {1, Status::receiver_not_ready}});
  CHECK(s.machine.empty());
  CHECK(s.machine.deadline() == never);
  s.push(2);
  CHECK(s.go() == 0);  // the numbers serve again, at once
  // Tried again before it: the answer decides, and is waited for as long again.
  Sender again;
  again.push(0, 10ms);
  CHECK(again.go() == 0);
  CHECK(again.ack(0, Status::receiver_not_ready));
  again.now += 5ms;
  again.timer();
  CHECK(again.go() == 0);
  again.now += 10ms;
  again.timer();
  CHECK(again.ends.empty());
  CHECK(again.machine.deadline() == start + 20ms);
  again.now = start + 20ms;
  again.timer();
  CHECK(again.ends == Ends{{0, Status::timed_out}});
}

TEST_CASE("message_sender__paused_at_its_deadline__the_earlier_of_both") {
  Sender s;
  s.push(0, 1500us);
  for (const uint64_t pause_us : {1000u, 2000u}) {
    CHECK(s.go() == 0);
    CHECK(s.ack(0, Status::receiver_not_ready));
    CHECK(s.machine.deadline() == std::min(s.now + std::chrono::microseconds(pause_us), start + 1500us));
    s.now = s.machine.deadline();
    s.timer();
  }
  CHECK(s.ends == Ends{{0, Status::receiver_not_ready}});
}

TEST_CASE("message_sender__the_peer_leaves__everything_ends_so") {
  Sender s;
  s.push(0);
  s.push(1);
  CHECK(s.go() == 0);
  CHECK_FALSE(s.machine.peer_leaving());
  CHECK(s.ack(0, Status::disconnected));
  CHECK(s.machine.peer_leaving());
  CHECK(s.ends == Ends{{0, Status::disconnected}, {1, Status::disconnected}});
}

TEST_CASE("message_receiver__numbers__in_order_within_the_window_and_never_back") {
  MessageReceiver r;
  r.open(2, false);
  CHECK(r.arriving(0) == Verdict::deliver);
  r.delivered();
  CHECK(r.arriving(0) == Verdict::violation);
  CHECK(r.arriving(2) == Verdict::violation);  // before 1
  CHECK(r.arriving(1) == Verdict::deliver);
  r.delivered();
  CHECK(r.arriving(2) == Verdict::violation);  // 2 were not acknowledged yet
  CHECK(r.acknowledgement_due());
  CHECK_FALSE(r.acknowledgement_may_wait());  // it tells of two
  const auto told = r.acknowledgement();
  CHECK(told.next == 2);
  CHECK(told.status == Status::success);
  CHECK_FALSE(r.acknowledgement_due());
  CHECK(r.arriving(2) == Verdict::deliver);
  r.delivered();
  CHECK(r.acknowledgement_may_wait());
  CHECK(r.carried_acknowledgement() == 3);
  CHECK_FALSE(r.acknowledgement_due());
}

TEST_CASE("message_receiver__no_buffer__one_refusal_and_what_is_behind_it_is_dropped") {
  MessageReceiver r;
  r.open(8, false);
  CHECK(r.arriving(0) == Verdict::deliver);
  r.delivered();
  r.refused();
  CHECK(r.refusal_due());
  CHECK_FALSE(r.acknowledgement_may_wait());
  CHECK(r.carried_acknowledgement() == 1);
  CHECK(r.acknowledgement_due());  // the refusal is not told yet
  CHECK(r.arriving(2) == Verdict::drop);
  CHECK(r.arriving(0) == Verdict::violation);
  r.dropped();
  auto told = r.acknowledgement();
  CHECK(told.next == 1);
  CHECK(told.status == Status::receiver_not_ready);
  CHECK_FALSE(r.acknowledgement_due());
  CHECK(r.arriving(2) == Verdict::drop);
  r.dropped();
  CHECK_FALSE(r.acknowledgement_due());
  CHECK(r.arriving(1) == Verdict::deliver);
  r.delivered();
  CHECK(r.arriving(3) == Verdict::violation);
  told = r.acknowledgement();
  CHECK(told.next == 2);
  CHECK(told.status == Status::success);
}

TEST_CASE("message_receiver__it_comes_again_before_its_refusal_was_told__success_is_told") {
  MessageReceiver r;
  r.open(8, false);
  r.refused();
  CHECK(r.arriving(0) == Verdict::deliver);  // a sender that does not wait for our word
  r.delivered();
  CHECK_FALSE(r.refusal_due());
  CHECK(r.acknowledgement().status == Status::success);
}

TEST_CASE("message_receiver__our_application_left__said_once") {
  MessageReceiver r;
  r.open(8, false);
  r.leave();
  CHECK(r.arriving(0) == Verdict::drop);
  r.dropped();
  CHECK(r.acknowledgement_due());
  const auto told = r.acknowledgement();
  CHECK(told.next == 0);
  CHECK(told.status == Status::disconnected);
  r.dropped();
  r.refused();  // a message that had begun before
  CHECK_FALSE(r.acknowledgement_due());
  CHECK(r.arriving(8) == Verdict::violation);
}

TEST_CASE("message_receiver__unreliable__any_later_number_of_no_window_and_nothing_to_tell") {
  MessageReceiver r;
  r.open(2, true);
  for (uint64_t i = 0; i < 5; ++i) {
    CHECK(r.arriving(i) == Verdict::deliver);
    i % 2 == 0 ? r.delivered() : r.refused();
    CHECK_FALSE(r.acknowledgement_due());
  }
  CHECK(r.arriving(4) == Verdict::violation);
  CHECK(r.carried_acknowledgement() == 0);
  r.leave();
  r.dropped();
  CHECK_FALSE(r.acknowledgement_due());
}
