// One transfer and its jobs, pauses and farewells: what a lost session leaves behind, and how long that is waited for.
#include <catch2/catch.hpp>
#include <set>

#include "app/main/acceptor.h"
#include "app/main/dialled.h"
#include "app/main/farewell.h"
#include "app/main/flow_watch.h"
#include "tests/unit/main/dialled_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

// Pauses grow from session to session, and begin anew once one got further.
TEST_CASE("dialled__sessions_that_get_no_further__pauses_grow_and_the_timeout_goes_on") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 30s; });
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  std::vector<Duration> pauses;
  while (!rig.transfer->ended()) {
    const int made = rig.script.made;
    REQUIRE(rig.run([&] { return rig.transfer->ended() || (rig.script.made > made && rig.script.living == 0); }));
    if (!rig.transfer->ended()) pauses.push_back(rig.transfer->next_deadline() - rig.now);
    REQUIRE(pauses.size() < 50);
  }
  REQUIRE(pauses.size() >= 9);
  Duration expected = 200ms;
  std::set<int64_t> parts;  // of a hundred
  for (const Duration pause : pauses) {
    CHECK(pause <= expected);
    CHECK(pause > expected / 2 - 1ms);
    parts.insert(pause * 100 / expected);
    expected = std::min<Duration>(expected * 2, 5s);
  }
  CHECK(parts.size() > 3);  // drawn: those that lost the same peer come back one after the other
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  CHECK(rig.transfer->result().message.rfind("no progress within the timeout", 0) == 0);
  CHECK(rig.passed() >= 30s);
  CHECK(rig.passed() < 36s);  // it is told when the next session ends
  CHECK(rig.retries() == Words(pauses.size(), "it broke"));
}

TEST_CASE("dialled__a_session_that_got_further__pauses_and_timeout_begin_anew") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 5s; });
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  for (uint64_t i = 1; i <= 10; ++i) {
    rig.script.tally.bytes = i;
    const int made = rig.script.made;
    REQUIRE(rig.run([&] { return rig.script.made > made && rig.script.living == 0; }));
    CHECK_FALSE(rig.transfer->ended());
    CHECK(rig.transfer->next_deadline() - rig.now <= 200ms);
    CHECK(rig.transfer->stalled(rig.now) < 1ms);
  }
}

// A peer that dies in each session, and in each has shown that it lives: that is no progress of the transfer.
TEST_CASE("dialled__signs_of_life_in_sessions_that_get_no_further__do_not_count_beyond_them") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 30s; });
  int broken = 0;
  while (!rig.transfer->ended() && broken < 50) {
    REQUIRE(rig.run([&] { return rig.transfer->ended() || rig.transfer->moving(); }));
    if (rig.transfer->ended()) break;
    rig.run_to(rig.now + 3s);
    rig.script.last_progress = rig.now;
    rig.turn();
    CHECK(rig.transfer->stalled(rig.now) < 1s);
    rig.script.error = Error{ErrorKind::network, "it broke"};
    rig.script.finished = true;
    REQUIRE(rig.run([&] { return rig.script.living == 0; }));
    rig.script.error.reset();
    rig.script.finished = false;
    ++broken;
  }
  CHECK(rig.transfer->ended());
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  // The signs of the first one count, as those before any failure.
  CHECK(rig.passed() >= 33s);
  CHECK(rig.passed() < 45s);
}

// Listing a large tree once more takes longer than the timeout, and gets no further than the first session did.
TEST_CASE("dialled__long_sessions_that_end_as_files_changed__came_to_their_end_and_are_not_late") {
  const auto direction = GENERATE(session::Direction::push, session::Direction::pull);
  DialledRig rig([&](DialPlan& plan) {
    plan.timeout = 30s;
    plan.hello.direction = direction;
  });
  rig.script.tally.files_unchanged = 5;
  for (int session = 1; session <= 3; ++session) {
    REQUIRE(rig.run([&] { return rig.transfer->ended() || (rig.script.made == session && rig.transfer->moving()); }));
    REQUIRE_FALSE(rig.transfer->ended());
    for (int i = 0; i < 4; ++i) {
      rig.run_to(rig.now + 10s);
      rig.script.last_progress = rig.now;
      rig.turn();
    }
    if (session < 3) rig.script.error = Error{ErrorKind::vanished, "a file changed"};
    if (session == 3) rig.script.tally.files_vanished = 1;
    rig.script.finished = true;
    REQUIRE(rig.run([&] { return rig.transfer->ended() || rig.script.living == 0; }));
    rig.script.finished = false;
    rig.script.error.reset();
  }
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::vanished);
  CHECK(rig.script.made == 3);
  CHECK(rig.retries() == Words{"a file changed", "a file changed"});
}

// Somebody on the way who cuts each connection after a while: what has moved until then is no progress.
TEST_CASE("dialled__lanes_that_die_again_and_again__signs_of_life_do_not_count_from_the_tenth_on") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 30s; });
  const bool gets_on = GENERATE(false, true);
  uint32_t cut = 0;
  REQUIRE(rig.run_until_moving());
  while (!rig.transfer->ended() && cut < 60) {
    rig.run_to(rig.now + 3s);
    rig.script.last_progress = rig.now;
    if (gets_on) ++rig.script.tally.bytes;
    rig.turn();
    if (rig.transfer->ended()) break;
    rig.near.transport->cut_all();
    ++cut;
    REQUIRE(rig.run([&] { return rig.transfer->ended() || rig.script.lanes.size() >= 2 * cut + 1; }));
  }
  CHECK(rig.transfer->ended() == !gets_on);
  if (gets_on) return;
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  CHECK(cut >= losses_in_vain_max);
  CHECK(cut < losses_in_vain_max + 15);
}

TEST_CASE("dialled__jobs_of_a_session_that_failed__are_waited_for_before_the_next_one") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 60s; });
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  rig.script.idle = false;
  rig.run_to(rig.began + 50s);
  CHECK(rig.script.made == 1);
  CHECK(rig.script.living == 1);
  CHECK_FALSE(rig.transfer->may_be_left());
  rig.script.idle = true;
  rig.script.finished = false;
  rig.turn();
  REQUIRE(rig.run([&] { return rig.script.made == 2; }));
  CHECK(rig.retries() == Words{"it broke"});
}

TEST_CASE("dialled__jobs_of_a_failed_session_that_never_end__left_behind_after_the_timeout") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  rig.script.idle = false;
  REQUIRE(rig.run([&] { return rig.transfer->may_be_left(); }));
  CHECK(rig.passed() >= 20s);
  CHECK(rig.passed() < 22s);
  CHECK(rig.transfer->result().kind == ErrorKind::network);
  CHECK_FALSE(rig.transfer->ended());
  CHECK_FALSE(rig.transfer->is_in_use());
  rig.script.in_use = true;
  CHECK(rig.transfer->is_in_use());
  rig.script.idle = true;
}

TEST_CASE("dialled__a_result_that_stands__may_be_left_after_the_farewell") {
  for (const bool stopped : {false, true}) {
    DialledRig rig;
    REQUIRE(rig.run_until_moving());
    const Instant at = rig.now;
    rig.script.idle = false;
    rig.script.in_use = true;
    if (stopped) {
      rig.transfer->stop({ErrorKind::interrupted, "enough"});
    } else {
      rig.script.error = Error{ErrorKind::no_space, "full"};
      rig.script.finished = true;
    }
    rig.run_to(at + farewell_timeout - 100ms);
    CHECK_FALSE(rig.transfer->may_be_left());
    CHECK_FALSE(rig.transfer->is_in_use());
    CHECK(rig.script.lost.empty());
    rig.run_to(at + farewell_timeout + 100ms);
    CHECK(rig.script.lost.size() == 1);  // it hung up: a put that had begun to come gives its buffer back
    CHECK_FALSE(rig.transfer->may_be_left());
    rig.run_to(at + farewell_timeout + 700ms);
    CHECK(rig.transfer->may_be_left());
    CHECK(rig.transfer->is_in_use());
    CHECK(rig.transfer->result().kind == (stopped ? ErrorKind::interrupted : ErrorKind::no_space));
    CHECK(rig.transfer->result().message.rfind(stopped ? "enough" : "full: free some space", 0) == 0);
    CHECK_FALSE(rig.transfer->ended());
    rig.script.idle = true;
    REQUIRE(rig.run_to_the_end());
    CHECK_FALSE(rig.transfer->may_be_left());
  }
}

TEST_CASE("dialled__stopped_while_jobs_of_a_lost_session_run__may_be_left") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 600s; });
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  rig.script.idle = false;
  rig.run_to(rig.began + 1s);
  rig.transfer->stop({ErrorKind::interrupted, "enough"});
  rig.run_to(rig.began + 10s);
  CHECK(rig.transfer->may_be_left());
  CHECK(rig.transfer->result().message == "enough");
  rig.script.idle = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().message == "enough");
}

TEST_CASE("dialled__stopped_long_after_a_session_was_lost_whose_jobs_run__may_be_left_soon") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 600s; });
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  rig.script.idle = false;
  rig.run_to(rig.began + 60s);
  CHECK_FALSE(rig.transfer->may_be_left());
  rig.transfer->stop({ErrorKind::interrupted, "enough"});
  rig.turn();
  rig.run_to(rig.began + 62s);
  CHECK(rig.transfer->may_be_left());
  CHECK(rig.transfer->result().message == "enough");
  rig.script.idle = true;
  REQUIRE(rig.run_to_the_end());
}

// What we say goes out before we go; to a peer that takes nothing, not for ever.
TEST_CASE("dialled__a_peer_that_takes_nothing__the_farewell_ends") {
  DialledRig rig;
  rig.opens = false;
  REQUIRE(rig.run([&] { return rig.peer_asked(); }));
  rig.far->transport->hold_oldest(true);
  const Instant at = rig.now;
  rig.transfer->stop({ErrorKind::interrupted, "enough"});
  rig.run_to(at + farewell_timeout - 100ms);
  CHECK_FALSE(rig.transfer->ended());
  CHECK(rig.transfer->next_deadline() <= at + farewell_timeout + 1ms);
  rig.run_to(at + farewell_timeout + 100ms);
  CHECK(rig.transfer->ended());
  CHECK(rig.aborts().empty());
}

TEST_CASE("dialled__a_peer_that_was_silent_for_the_timeout__gets_a_short_farewell") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  rig.opens = false;
  REQUIRE(rig.run([&] { return rig.peer_asked(); }));
  rig.far->transport->hold_oldest(true);
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  CHECK(rig.passed() >= 20s + 400ms);
  CHECK(rig.passed() < 20s + 700ms);
}

TEST_CASE("dialled__lanes__as_asked_for_but_no_more_than_the_peer_takes") {
  struct Row {
    uint16_t asked;
    uint32_t allowed;
    size_t hops;
    Duration round_trip;
    size_t routers;
    size_t lanes;
  };
  for (const Row& row : {Row{3, 8, 0, 0ms, 1, 3}, Row{3, 2, 0, 0ms, 1, 2}, Row{3, 0, 0, 0ms, 1, 1}, Row{0, 8, 0, 0ms, 4, 1},
                         Row{0, 8, 1, 10ms, 1, 6}, Row{0, 8, 1, 0ms, 4, 1}, Row{0, 8, 2, 0ms, 4, 4}, Row{0, 3, 2, 0ms, 4, 3},
                         Row{0, 8, 2, 10ms, 4, 6}, Row{0, 100, 2, 0ms, 40, 16}, Row{1, 8, 2, 10ms, 4, 1}}) {
    INFO(row.asked << " asked, " << row.allowed << " allowed, " << row.hops << " hops, " << row.routers << " routers");
    DialledRig rig([&](DialPlan& plan) {
      plan.lanes = row.asked;
      plan.routers = row.routers;
    });
    rig.opens = false;
    ports::HopInfo hop;
    hop.transport = "fake";
    hop.node = "fake://hop";
    hop.round_trip = row.round_trip;
    rig.net.path.assign(row.hops, hop);
    REQUIRE(rig.run([&] { return rig.peer_asked(); }));
    rig.open(row.allowed);
    REQUIRE(rig.run_until_moving());
    rig.run_to(rig.now + 1s);
    CHECK(rig.near_link->live_lanes().size() == row.lanes);
  }
}

TEST_CASE("dialled__a_long_path__gets_more_lanes_where_they_are_of_use") {
  for (const bool has_queue : {false, true}) {
    DialledRig rig([](DialPlan& plan) { plan.lanes = 0; });
    rig.net.received_bytes = 0;
    rig.net.path_figures = ports::PathFigures{1000, 0, has_queue ? 150ms : 100ms, 100ms};
    ports::HopInfo hop;
    hop.transport = "fake";
    hop.round_trip = 100ms;
    rig.net.path.assign(1, hop);
    REQUIRE(rig.run_until_moving());
    rig.run_to(rig.now + 50ms);
    REQUIRE(rig.near_link->live_lanes().size() == 6);
    for (int step = 0; step < 100; ++step) {
      // However many there are, the path carries so much: what each lane says is its part of that.
      *rig.net.received_bytes += 25'000'000 / rig.near_link->live_lanes().size();
      rig.net.path_figures->resent_packets += 100;
      rig.run_to(rig.now + 100ms);
    }
    CHECK(rig.near_link->live_lanes().size() == (has_queue ? 6 : 8));  // the peer takes no more than eight
  }
}

TEST_CASE("dialled__a_long_path_and_the_peer_is_gone_at_the_end__waits_and_does_not_spin") {
  DialledRig rig([](DialPlan& plan) { plan.lanes = 0; });
  ports::HopInfo hop;
  hop.transport = "fake";
  hop.round_trip = 100ms;
  rig.net.path.assign(1, hop);
  REQUIRE(rig.run_until_moving());
  rig.run_to(rig.now + 1s);
  rig.script.error = Error{ErrorKind::no_space, "full"};
  rig.script.finished = true;
  rig.script.idle = false;
  rig.far_hangs = true;
  const Instant ended = rig.now;
  size_t turns = 0;
  for (; rig.now < ended + 200ms && !rig.transfer->ended() && turns < 1000; ++turns) rig.turn(true);
  CHECK(turns < 100);
}

TEST_CASE("dialled__deadlines__of_the_role_the_dialler_and_its_own") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  REQUIRE(rig.run_until_moving());
  rig.run_to(rig.began + 2s);
  CHECK(rig.transfer->next_deadline() > rig.began + 19s);
  CHECK(rig.transfer->next_deadline() <= rig.began + 21s);
  rig.script.next_deadline = rig.now + 1s;
  CHECK(rig.transfer->next_deadline() == rig.now + 1s);
}

TEST_CASE("dialled__completions__are_the_roles_while_there_is_one") {
  DialledRig rig;
  rig.script.takes_completions = true;
  const rvma::Completion completion{};
  CHECK_FALSE(rig.transfer->take_completion(completion));
  REQUIRE(rig.run_until_moving());
  CHECK(rig.transfer->take_completion(completion));
  rig.script.takes_completions = false;
  CHECK_FALSE(rig.transfer->take_completion(completion));
}
