// What the transport promises about work and time.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

TEST_CASE("engine__ten_thousand_idle_connections__a_turn_touches_none_of_them") {
  ports::TransportOptions options;
  options.keepalive = Duration{0};
  options.sends_in_flight_max = 16;
  Rig rig(options);
  constexpr size_t count = 10'000;
  for (size_t i = 0; i < count; ++i) {
    ports::DialRequest dial;
    dial.uri = "mem://b";
    REQUIRE(rig.a.transport->dial(dial));
    if (i % 500 == 499 || i + 1 == count) {
      rig.settle();
      for (const ConnectionId id : std::exchange(rig.b.sink.requests, {})) REQUIRE(rig.b.transport->accept(id) == Status::success);
      rig.settle();
    }
  }
  REQUIRE(rig.a.sink.connected.size() == count);
  REQUIRE(rig.b.sink.accepted.size() == count);
  const uint64_t before = rig.a.net->calls + rig.b.net->calls;
  for (int i = 0; i < 100; ++i) {
    rig.now += 1s;
    rig.a.transport->turn(rig.now);
    rig.b.transport->turn(rig.now);
  }
  REQUIRE(rig.a.net->calls + rig.b.net->calls == before);
  REQUIRE(rig.a.transport->next_deadline() == never);
}

TEST_CASE("engine__peers__are_elsewhere_only_if_their_machines_surely_differ") {
  struct Case {
    wire::HostIdentity a, b;
    bool elsewhere;
  };
  constexpr uint64_t boot = 1'700'000'000'000, hour = 3'600'000;
  const auto [a, b, elsewhere] =
      GENERATE(values<Case>({{{1, boot}, {2, boot + hour}, true},
                             {{1, boot + hour}, {2, boot}, true},
                             {{1, boot}, {2, boot + 9'000}, false},  // containers with numbers of their own
                             {{1, boot + 9'000}, {2, boot}, false},
                             {{1, boot}, {1, boot + hour}, false},  // the clock was set
                             {{0, boot}, {2, boot + hour}, false},
                             {{1, boot}, {0, boot + hour}, false}}));
  Rig rig;
  rig.a.net->on = a;
  rig.b.net->on = b;
  rig.connect();
  CHECK(rig.a.net->peers_elsewhere == (elsewhere ? 1 : 0));
  CHECK(rig.b.net->peers_elsewhere == (elsewhere ? 1 : 0));
}

TEST_CASE("engine__a_busy_connection__leaves_room_for_others_in_every_turn") {
  Rig rig;
  rig.connect();
  const ConnectionId busy = rig.at_a;
  rig.connect();
  const ConnectionId other = rig.at_a;
  Buffer source(64u << 20);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.b.memory.register_region(target, 2);
  write.source = source;
  REQUIRE(rig.a.transport->rma(busy, write, 1) == Status::success);
  REQUIRE(rig.send(rig.a, other, filled(10, 1), 2) == Status::success);
  REQUIRE(rig.send(rig.a, busy, filled(10, 1), 3) == Status::success);  // of the same connection: one chunk to wait for
  const uint64_t before = rig.a.counters.get(Counter::bytes_out);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 2; }));
  REQUIRE(rig.a.counters.get(Counter::bytes_out) - before <= 2 * send_budget_bytes);
  REQUIRE_FALSE(rig.a.status_of(1));
}

TEST_CASE("engine__several_operations__end_one_after_the_other") {
  Rig rig;
  rig.connect();
  Buffer big(32u << 20);
  Buffer first_target(big.size());
  Buffer second_target(big.size());
  ports::RmaRequest write;
  write.source = big;
  write.remote.handle = rig.b.memory.register_region(first_target, 2);
  REQUIRE(rig.a.transport->rma(rig.at_a, write, 1) == Status::success);
  write.remote.handle = rig.b.memory.register_region(second_target, 2);
  REQUIRE(rig.a.transport->rma(rig.at_a, write, 2) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  REQUIRE_FALSE(rig.a.status_of(2));
}

// What is lent may be read until the peer has it, so of a write that wants its memory back nothing is.
TEST_CASE("engine__local_completion__told_when_the_network_has_all_and_nothing_is_lent") {
  Rig rig;
  rig.connect();
  Buffer source(3u << 20);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.source = source;
  write.remote.handle = rig.b.memory.register_region(target, 2);
  REQUIRE(rig.a.transport->rma(rig.at_a, write, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  REQUIRE(rig.a.sink.locals.empty());
  REQUIRE(rig.a.net->lent_bytes > 0);
  rig.a.net->lent_bytes = 0;
  write.local_completion = true;
  REQUIRE(rig.a.transport->rma(rig.at_a, write, 2) == Status::success);
  REQUIRE(rig.a.sink.locals.empty());
  for (int turns = 0; turns < 100 && rig.a.sink.locals.empty(); ++turns) rig.a.transport->turn(rig.now);  // b does not turn
  REQUIRE(rig.a.sink.locals == std::vector<uint64_t>{2});
  REQUIRE(rig.a.net->lent_bytes == 0);
  REQUIRE_FALSE(rig.a.status_of(2));
  REQUIRE(rig.run([&] { return rig.a.status_of(2).has_value(); }));
  REQUIRE(rig.a.sink.locals.size() == 1);
}

TEST_CASE("engine__keepalive__probes_only_in_silence_and_three_unanswered_end_it") {
  ports::TransportOptions options;
  options.keepalive = 5s;
  Rig rig(options);
  rig.connect();
  rig.pass(100s);
  REQUIRE(rig.a.sink.disconnected.empty());
  // From now on nothing that b says arrives.
  rig.hub.fault = Fault::none;
  const Instant silence = rig.now;
  for (int i = 0; i < 100 && rig.a.sink.disconnected.empty(); ++i) {
    rig.now += 1s;
    rig.a.transport->turn(rig.now);
  }
  REQUIRE(rig.a.sink.disconnected.size() == 1);
  REQUIRE(rig.a.sink.disconnected[0].status == Status::timed_out);
  REQUIRE(rig.now - silence <= 4 * 5s + 1s);
  REQUIRE(rig.now - silence >= 15s);
}

TEST_CASE("engine__stopped_process_that_wakes_late__reads_before_it_judges") {
  ports::TransportOptions options;
  options.keepalive = 1s;
  Rig rig(options);
  rig.connect();
  rig.b.transport->turn(rig.now + 1s);  // b probes, and a is stopped
  rig.now += 100s;
  rig.settle();
  rig.pass(10s);
  REQUIRE(rig.a.sink.disconnected.empty());
}

TEST_CASE("engine__dial_withdrawn__nothing_is_left_of_it") {
  Rig rig;
  ports::DialRequest dial;
  dial.uri = "mem://b";
  const auto id = rig.a.transport->dial(dial);
  REQUIRE(id);
  rig.settle();
  REQUIRE(rig.b.sink.requests.size() == 1);
  rig.a.transport->disconnect(*id);
  rig.settle();
  REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::not_found);
  REQUIRE(rig.hub.links[0].ends[0] == nullptr);
  REQUIRE(rig.hub.links[0].ends[1] == nullptr);
}

TEST_CASE("engine__disconnect_before_the_peer_acknowledged__ends_on_both_sides") {
  Rig rig;
  ports::DialRequest dial;
  dial.uri = "mem://b";
  REQUIRE(rig.a.transport->dial(dial));
  rig.settle();
  const ConnectionId id = rig.b.sink.requests.at(0);
  REQUIRE(rig.b.transport->accept(id) == Status::success);
  REQUIRE(rig.send(rig.b, id, filled(5, 1), 9) == Status::success);  // before the dialler said a word
  rig.b.transport->disconnect(id);
  rig.settle();
  REQUIRE(rig.b.sink.accepted.size() == 1);
  REQUIRE(rig.b.sink.accepted[0].status == Status::cancelled);
  REQUIRE(rig.a.sink.messages.size() == 1);
  REQUIRE(rig.b.status_of(9) == Status::success);
  REQUIRE(rig.a.sink.disconnected.size() == 1);
  REQUIRE(rig.hub.links[0].ends[0] == nullptr);
  REQUIRE(rig.hub.links[0].ends[1] == nullptr);
}

TEST_CASE("engine__disconnect_while_the_peer_never_takes_the_message__bounded_in_time") {
  Rig rig;
  rig.connect();
  rig.b.sink.buffers = 0;
  REQUIRE(rig.send(rig.a, rig.at_a, filled(5, 1), 9) == Status::success);
  rig.a.transport->disconnect(rig.at_a);
  rig.pass(connection::disconnect_flush_max + 1s);
  REQUIRE(rig.a.status_of(9) == Status::disconnected);
  REQUIRE(rig.b.sink.disconnected.size() == 1);
  rig.b.transport->disconnect(rig.at_b);
  rig.settle();
  REQUIRE(rig.a.sink.accepted.empty());  // an open connection has been accepted long ago
  REQUIRE(rig.b.sink.accepted.size() == 1);
}

// A connection that was open: whoever leaves it hears no more of its acceptance.
TEST_CASE("engine__both_leave_an_open_connection__nobody_is_told_of_an_acceptance") {
  Rig rig;
  rig.connect();
  REQUIRE(rig.b.sink.accepted.size() == 1);
  rig.b.transport->disconnect(rig.at_b);
  rig.a.transport->disconnect(rig.at_a);
  rig.settle();
  REQUIRE(rig.b.sink.accepted.size() == 1);
  REQUIRE(rig.a.sink.accepted.empty());
  REQUIRE(rig.hub.links[0].ends[0] == nullptr);
  REQUIRE(rig.hub.links[0].ends[1] == nullptr);
}

TEST_CASE("engine__send_timeout__runs_from_the_send_not_from_the_last_turn") {
  Rig rig;
  rig.connect();
  rig.a.transport->set_send_timeout(rig.at_a, 1s);
  rig.a.transport->set_keepalive(rig.at_a, Duration{0});
  rig.b.transport->set_keepalive(rig.at_b, Duration{0});
  rig.settle();
  // The process slept for an hour, and sends before its next turn.
  REQUIRE(rig.send(rig.a, rig.at_a, filled(5, 1), 9) == Status::success);
  rig.now += std::chrono::hours(1);
  REQUIRE(rig.run([&] { return rig.a.status_of(9).has_value(); }));
  REQUIRE(rig.a.status_of(9) == Status::success);
}

TEST_CASE("engine__the_device_fails__told_once_and_connections_end_by_themselves") {
  Rig rig;
  rig.connect();
  rig.b.net->fail_device("no interface has this address");
  rig.settle();
  REQUIRE(rig.b.sink.device_failed == std::vector<std::string>{"no interface has this address"});
  REQUIRE(rig.b.sink.disconnected.empty());
  REQUIRE(rig.send(rig.a, rig.at_a, filled(64, 1), 1) == Status::success);
  rig.settle();
  REQUIRE(rig.b.sink.messages.size() == 1);
}

// Of a ping-pong each way is one call: the answer goes out from send(), and the acknowledgement of what it answers with it.
TEST_CASE("engine__an_answer__leaves_at_once_and_takes_the_acknowledgement_along") {
  Rig rig;
  rig.connect();
  rig.settle();
  const auto sent_by = [&](End& end) { return end.counters.get(Counter::bytes_out); };
  uint64_t before = sent_by(rig.a);
  REQUIRE(rig.send(rig.a, rig.at_a, filled(64, 1), 1) == Status::success);
  const uint64_t message_bytes = sent_by(rig.a) - before;  // no turn between
  CHECK(message_bytes > 64);
  before = sent_by(rig.b);
  rig.b.transport->turn(rig.now);
  REQUIRE(rig.b.sink.messages.size() == 1);
  CHECK(sent_by(rig.b) == before);
  CHECK(rig.b.transport->next_deadline() <= rig.now);
  REQUIRE(rig.send(rig.b, rig.at_b, filled(64, 2), 2) == Status::success);
  CHECK(sent_by(rig.b) == before + message_bytes);    // in the answer, not beside it
  CHECK(rig.b.transport->next_deadline() > rig.now);  // no turn is left to do
  rig.a.transport->turn(rig.now);
  REQUIRE(rig.a.sink.messages.size() == 1);
  REQUIRE(rig.a.status_of(1) == Status::success);
  // Nothing is owed twice.
  before = sent_by(rig.b);
  rig.b.transport->turn(rig.now);
  CHECK(sent_by(rig.b) == before);
}

TEST_CASE("engine__a_message_without_an_answer__is_acknowledged_in_the_next_turn_or_soon") {
  Rig rig;
  rig.connect();
  rig.settle();
  REQUIRE(rig.send(rig.a, rig.at_a, filled(64, 1), 1) == Status::success);
  rig.b.transport->turn(rig.now);
  // Who waits for the handle alone is woken for it, if not at once.
  CHECK(rig.b.net->deadline > rig.now);
  CHECK(rig.b.net->deadline <= rig.now + connection::patience_max);
  CHECK(rig.b.transport->next_deadline() <= rig.now);
  rig.b.transport->turn(rig.now);
  rig.a.transport->turn(rig.now);
  CHECK(rig.a.status_of(1) == Status::success);
  CHECK(rig.b.transport->next_deadline() > rig.now);
}

// Two at least make a stream, whose window must not wait; and the first of a burst does not go out alone a second time.
TEST_CASE("engine__a_burst__goes_out_together_and_is_acknowledged_at_once") {
  Rig rig;
  rig.connect();
  rig.settle();
  const auto burst = [&](uint64_t token) {
    const uint64_t calls = rig.a.net->calls;
    for (uint64_t i = 0; i < 8; ++i) REQUIRE(rig.send(rig.a, rig.at_a, filled(64, 1), token + i) == Status::success);
    return rig.a.net->calls - calls;
  };
  CHECK(burst(10) == 1);
  rig.a.transport->turn(rig.now);
  rig.b.transport->turn(rig.now);
  rig.a.transport->turn(rig.now);
  CHECK(rig.a.status_of(17) == Status::success);
  CHECK(burst(20) == 0);
  rig.settle();
  CHECK(rig.a.status_of(27) == Status::success);
  CHECK(rig.b.sink.messages.size() == 16);
}

TEST_CASE("engine__random_traffic_with_losses_of_buffers__all_in_order") {
  Rig rig;
  rig.hub.recv_max = 700;
  rig.hub.capacity = 3000;
  rig.connect();
  rig.b.sink.buffers = 1;
  uint64_t sent = 0;
  uint64_t state = 12345;
  REQUIRE(rig.run([&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    while (sent < 500 && rig.send(rig.a, rig.at_a, filled(sent % 900, static_cast<uint8_t>(sent)), sent) == Status::success) ++sent;
    if ((state >> 60) < 6) rig.b.sink.buffers += (state >> 40) % 7;
    return rig.a.sink.completions.size() == 500;
  }));
  REQUIRE(rig.b.sink.messages.size() == 500);
  for (uint64_t i = 0; i < 500; ++i) {
    REQUIRE(rig.b.sink.messages[i] == filled(i % 900, static_cast<uint8_t>(i)));
    REQUIRE(rig.a.sink.completions[i].token == i);
  }
}

}  // namespace
}  // namespace ccixfer::stream::testing
