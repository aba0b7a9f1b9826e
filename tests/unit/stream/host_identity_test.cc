// The pure parts: message numbers and windows, states.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;
using Verdict = MessageReceiver::Verdict;

struct Sender {
  MessageSender machine;
  std::vector<Completion> ended;
  Instant now{100s};
  MessageSender::Ended record = [this](const MessageOwner& owner, Status status) { ended.push_back({owner.token, status}); };

  explicit Sender(uint32_t window) { machine.open(window, false); }
  void push(uint64_t token, Duration timeout = forever) {
    const Buffer bytes = filled(4, static_cast<uint8_t>(token));
    const Bytes part(bytes);
    machine.push({false, token}, copy_message({&part, 1}), timeout);
    machine.stamp(now);
  }
  // Sends all that may go; the numbers that went.
  std::vector<uint64_t> go() {
    std::vector<uint64_t> numbers;
    while (machine.sendable()) {
      const auto out = machine.take(record);
      numbers.push_back(out.sequence);
      machine.sent(out.flight);
    }
    return numbers;
  }
  bool ack(uint64_t next, Status status = Status::success) { return machine.acknowledge(next, status, now, record); }
  void pass(Duration duration) {
    now += duration;
    machine.timer(now, record);
  }
};

TEST_CASE("message_sender__window__bounds_what_is_out_and_acks_slide_it") {
  Sender s(4);
  for (uint64_t i = 0; i < 4; ++i) s.push(i);
  REQUIRE(s.machine.full());
  REQUIRE(s.go() == std::vector<uint64_t>{0, 1, 2, 3});
  REQUIRE(s.ack(2));
  REQUIRE(s.ended.size() == 2);
  REQUIRE(s.ended[1].token == 1);
  s.push(4);
  REQUIRE(s.go() == std::vector<uint64_t>{4});
  REQUIRE(s.ack(2));  // again the same: harmless
  REQUIRE(s.ack(5));
  REQUIRE(s.ended.size() == 5);
  REQUIRE(s.machine.empty());
}

TEST_CASE("message_sender__acks_of_what_was_not_sent__refused") {
  Sender s(4);
  REQUIRE_FALSE(s.ack(1));
  s.push(0);
  s.push(1);
  REQUIRE_FALSE(s.ack(1));  // queued, not sent
  REQUIRE_FALSE(s.ack(0, Status::receiver_not_ready));
  const auto out = s.machine.take(s.record);
  REQUIRE_FALSE(s.ack(1));  // half of it may be with the network
  s.machine.sent(out.flight);
  REQUIRE(s.ack(1));
  REQUIRE_FALSE(s.ack(0));  // backwards
  REQUIRE_FALSE(s.ack(UINT64_MAX));
}

TEST_CASE("message_sender__receiver_not_ready__goes_back_with_pauses_that_double") {
  Sender s(8);
  for (uint64_t i = 0; i < 3; ++i) s.push(i);
  REQUIRE(s.go().size() == 3);
  REQUIRE(s.ack(1, Status::receiver_not_ready));  // 0 arrived, 1 was refused, 2 thrown away
  REQUIRE(s.ended.size() == 1);
  REQUIRE(s.go().empty());
  Duration pause = 1ms;
  for (int i = 0; i < 10; ++i) {
    REQUIRE(s.machine.deadline() == s.now + pause);
    s.pass(pause - 1ns);
    REQUIRE(s.go().empty());
    s.pass(1ns);
    REQUIRE(s.go() == std::vector<uint64_t>{1, 2});
    REQUIRE(s.ack(1, Status::receiver_not_ready));
    pause = std::min<Duration>(pause * 2, 50ms);
  }
  s.pass(50ms);
  REQUIRE(s.go().size() == 2);
  REQUIRE(s.ack(3));
  REQUIRE(s.ended.size() == 3);
}

TEST_CASE("message_sender__half_out_when_refused__counts_as_sent_only_in_its_own_flight") {
  Sender s(8);
  for (uint64_t i = 0; i < 3; ++i) s.push(i);
  const auto first = s.machine.take(s.record);
  s.machine.sent(first.flight);
  const auto second = s.machine.take(s.record);
  REQUIRE(s.ack(0, Status::receiver_not_ready));
  s.machine.sent(second.flight);  // the rest of it went out; the receiver throws it away
  REQUIRE_FALSE(s.ack(1));
}

TEST_CASE("message_sender__send_timeout_while_refused__all_that_follow_fail_numbers_go_on") {
  Sender s(8);
  s.push(0, 1s);
  s.push(1, forever);
  REQUIRE(s.go().size() == 2);
  REQUIRE(s.ack(0, Status::receiver_not_ready));
  for (int i = 0; i < 100 && s.ended.empty(); ++i) {
    s.pass(50ms);
    if (!s.go().empty()) REQUIRE(s.ack(0, Status::receiver_not_ready));
  }
  REQUIRE(s.ended.size() == 2);
  REQUIRE(s.ended[0].token == 0);
  REQUIRE(s.ended[0].status == Status::receiver_not_ready);
  REQUIRE(s.ended[1].status == Status::receiver_not_ready);
  REQUIRE(s.machine.empty());
  s.push(2);
  REQUIRE(s.go() == std::vector<uint64_t>{0});  // the receiver still waits for 0
  REQUIRE(s.ack(1));
  REQUIRE(s.ended.back().status == Status::success);
}

TEST_CASE("message_sender__tried_again_when_the_timeout_comes__the_answer_decides") {
  Sender s(8);
  const Instant start = s.now;
  s.push(0, 1s);
  s.push(1, 1s);
  REQUIRE(s.go().size() == 2);
  REQUIRE(s.ack(0, Status::receiver_not_ready));
  s.pass(900ms);
  REQUIRE(s.go().size() == 2);  // the last try; the answer is on its way for longer than is left
  s.pass(200ms);
  REQUIRE(s.ended.empty());
  REQUIRE(s.machine.deadline() == start + 2s);
  SECTION("refused: that, and all that follow") {
    REQUIRE(s.ack(0, Status::receiver_not_ready));
    REQUIRE(s.ended.size() == 2);
    REQUIRE(s.ended[0].status == Status::receiver_not_ready);
    REQUIRE(s.ended[1].status == Status::receiver_not_ready);
  }
  SECTION("taken") {
    REQUIRE(s.ack(2));
    REQUIRE(s.ended.size() == 2);
    REQUIRE(s.ended[0].status == Status::success);
  }
  SECTION("no answer for twice the timeout") {
    s.pass(900ms - 1ns);
    REQUIRE(s.ended.empty());
    s.pass(1ns);
    REQUIRE(s.ended.size() == 2);
    REQUIRE(s.ended[0].status == Status::timed_out);
    REQUIRE(s.ack(0, Status::receiver_not_ready));
  }
}

TEST_CASE("message_sender__send_timeout_without_an_answer__once_and_a_late_ack_is_fine") {
  Sender s(2);
  s.push(0, 1s);
  s.push(1, 10s);
  s.push(2, 1s);  // beyond the window: never sent
  REQUIRE(s.go().size() == 2);
  REQUIRE(s.machine.deadline() == s.now + 1s);
  s.pass(1s);
  REQUIRE(s.ended.size() == 1);
  REQUIRE(s.ended[0].status == Status::timed_out);
  s.pass(9s);
  REQUIRE(s.ended.size() == 3);
  REQUIRE(s.ended[2].token == 2);
  REQUIRE(s.ack(2));
  REQUIRE(s.ended.size() == 3);
  REQUIRE(s.machine.empty());
}

TEST_CASE("message_sender__disconnected_answer__everything_fails_in_order") {
  Sender s(8);
  for (uint64_t i = 0; i < 4; ++i) s.push(i);
  REQUIRE(s.go().size() == 4);
  REQUIRE(s.ack(1, Status::disconnected));
  REQUIRE(s.ended.size() == 4);
  REQUIRE(s.ended[0].status == Status::success);
  REQUIRE(s.ended[1].status == Status::disconnected);
  REQUIRE(s.machine.peer_leaving());
}

TEST_CASE("message_receiver__old_in_order_future__only_what_the_window_and_the_order_allow") {
  MessageReceiver r;
  r.open(4, false);
  REQUIRE(r.arriving(1) == Verdict::violation);
  REQUIRE(r.arriving(0) == Verdict::deliver);
  r.delivered();
  REQUIRE(r.acknowledgement_due());
  REQUIRE(r.arriving(0) == Verdict::violation);
  for (uint64_t i = 1; i < 4; ++i) {
    REQUIRE(r.arriving(i) == Verdict::deliver);
    r.delivered();
  }
  REQUIRE(r.arriving(4) == Verdict::violation);  // beyond the window: none of the four was acknowledged yet
  const auto ack = r.acknowledgement();
  REQUIRE(ack.next == 4);
  REQUIRE(ack.status == Status::success);
  REQUIRE(r.arriving(4) == Verdict::deliver);
  r.refused();
  REQUIRE(r.arriving(5) == Verdict::drop);
  REQUIRE(r.arriving(8) == Verdict::violation);
  const auto nack = r.acknowledgement();
  REQUIRE(nack.next == 4);
  REQUIRE(nack.status == Status::receiver_not_ready);
  REQUIRE_FALSE(r.acknowledgement_due());
  REQUIRE(r.arriving(4) == Verdict::deliver);  // sent again
  r.delivered();
  REQUIRE(r.arriving(5) == Verdict::deliver);
}

TEST_CASE("message_receiver__leaving__one_refusal_however_many_come") {
  MessageReceiver r;
  r.open(4, false);
  r.delivered();
  r.leave();
  REQUIRE(r.acknowledgement().status == Status::success);  // what was delivered before counts
  REQUIRE(r.arriving(1) == Verdict::drop);
  r.dropped();
  REQUIRE(r.acknowledgement().status == Status::disconnected);
  REQUIRE(r.arriving(2) == Verdict::drop);
  r.dropped();
  REQUIRE_FALSE(r.acknowledgement_due());
}

TEST_CASE("message_receiver__a_message_carries_the_acknowledgement__a_refusal_stays_due") {
  MessageReceiver r;
  r.open(4, false);
  r.delivered();
  REQUIRE(r.acknowledgement_due());
  REQUIRE(r.carried_acknowledgement() == 1);
  REQUIRE_FALSE(r.acknowledgement_due());
  for (uint64_t n = 1; n < 5; ++n) {  // the peer was told, so its window slid
    REQUIRE(r.arriving(n) == Verdict::deliver);
    r.delivered();
  }
  REQUIRE(r.arriving(5) == Verdict::violation);
  r.refused();
  REQUIRE(r.carried_acknowledgement() == 5);
  REQUIRE(r.acknowledgement_due());
  REQUIRE(r.refusal_due());
  REQUIRE(r.acknowledgement().status == Status::receiver_not_ready);
  REQUIRE_FALSE(r.acknowledgement_due());

  MessageReceiver unreliable;
  unreliable.open(4, true);
  unreliable.delivered();
  REQUIRE(unreliable.carried_acknowledgement() == 0);
}

TEST_CASE("states__table__every_state_ends_and_frames_belong_somewhere") {
  using wire::Kind;
  for (uint8_t from = 0; from < connection::states_count; ++from) {
    const auto state = static_cast<State>(from);
    CAPTURE(to_string(state));
    REQUIRE(may_follow(state, State::gone) == (state != State::gone));
    REQUIRE_FALSE(may_follow(state, state));
    for (uint8_t to = 0; to < connection::states_count; ++to) {
      // Nobody comes back from the end, and only a dialler greets.
      const auto next = static_cast<State>(to);
      if (state == State::gone || (state == State::lingering && next != State::gone)) REQUIRE_FALSE(may_follow(state, next));
      if (next == State::hello_sent) REQUIRE(may_follow(state, next) == (state == State::dialling));
      if (next == State::requested) REQUIRE(may_follow(state, next) == (state == State::awaiting_hello));
      if (next == State::closing) REQUIRE(may_follow(state, next) == (state == State::open || state == State::accepting));
    }
    for (uint8_t k = wire::kind_first; k <= wire::kind_last; ++k) {
      const auto kind = static_cast<Kind>(k);
      CAPTURE(wire::to_string(kind));
      bool expected = false;
      switch (kind) {
        case Kind::hello:
          expected = state == State::awaiting_hello;
          break;
        case Kind::handshake:
          expected = state == State::awaiting_hello || state == State::hello_sent;
          break;
        case Kind::hello_reply:
          expected = state == State::hello_sent;
          break;
        case Kind::connect_accept:
        case Kind::connect_reject:
          expected = state == State::awaiting_accept;
          break;
        case Kind::connect_ack:
          expected = state == State::accepting || state == State::closing;
          break;
        case Kind::keepalive:
        case Kind::keepalive_ack:
        case Kind::bye:
          expected = state == State::awaiting_accept || state == State::requested || state == State::accepting ||
                     state == State::open || state == State::closing;
          break;
        default:
          expected = state == State::open || state == State::closing;
          break;
      }
      REQUIRE(connection::frame_allowed(state, kind) == expected);
    }
  }
}

}  // namespace
}  // namespace ccixfer::stream::testing
