// One transfer over as many sessions as it takes: what ends it, what is tried again, and when it is given up.
#include "app/main/dialled.h"

#include <catch2/catch.hpp>

#include "app/main/acceptor.h"
#include "app/main/flow_watch.h"
#include "tests/unit/main/dialled_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

namespace {

constexpr std::array passing{ErrorKind::network, ErrorKind::timeout, ErrorKind::no_answer, ErrorKind::no_route,
                             ErrorKind::interrupted};
bool passes(ErrorKind kind) { return std::find(passing.begin(), passing.end(), kind) != passing.end(); }

std::vector<ErrorKind> all_kinds() {
  std::vector<ErrorKind> kinds;
  for (size_t i = 1; i <= static_cast<size_t>(ErrorKind::bug); ++i) kinds.push_back(static_cast<ErrorKind>(i));
  return kinds;
}

void run_until_moving_over(DialledRig& rig, const char* transport) {
  ports::HopInfo hop;
  hop.transport = transport;
  rig.net.path = {hop};
  REQUIRE(rig.run_until_moving());
}

}  // namespace

TEST_CASE("dialled__a_role_that_comes_to_its_end__ends_the_transfer_with_its_counts") {
  DialledRig rig;
  CHECK_FALSE(rig.transfer->moving());
  CHECK(rig.transfer->next_deadline() == rig.began);
  REQUIRE(rig.run_until_moving());
  CHECK(rig.script.made == 1);
  CHECK(rig.script.started == 1);
  CHECK(rig.near_link->session() == DialledRig::session);
  CHECK(rig.script.lanes == Words{"up 0"});
  REQUIRE(std::holds_alternative<session::OpenPart>(rig.acceptor->user.others.front()));
  session::OpenJoiner joiner;
  const auto open = joiner.add(std::get<session::OpenPart>(rig.acceptor->user.others.front()));
  REQUIRE(open);
  CHECK(open->path == "some/path");
  CHECK(open->options == 5);
  CHECK(rig.desk.told("session", "peer") == Words{"fake://far"});
  CHECK(rig.desk.told("session", "transfer") == Words{"09000000000000000000000000000000"});
  rig.script.tally.files = 3;
  rig.script.tally.bytes = 30;
  CHECK(rig.transfer->tally().files == 3);
  CHECK_FALSE(rig.transfer->ended());
  rig.script.finished = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::ok);
  CHECK(rig.transfer->result().message.empty());
  CHECK(rig.transfer->tally().files == 3);
  CHECK(rig.transfer->tally().bytes == 30);
  CHECK(rig.script.living == 0);
  CHECK(rig.script.made == 1);
  CHECK(rig.retries().empty());
  CHECK_FALSE(rig.transfer->moving());
  CHECK_FALSE(rig.transfer->may_be_left());
  CHECK(rig.transfer->next_deadline() == never);
  CHECK(rig.passed() < 1s);
  // The peer's end is told of, and asked nothing more: it may go.
  const int turns = rig.script.turns;
  rig.transfer->turn(rig.now + 1h);
  CHECK(rig.script.turns == turns);
}

TEST_CASE("dialled__a_role_that_may_leave__ends_the_transfer_after_the_endpoints_next_turn") {
  DialledRig rig;
  run_until_moving_over(rig, "udp");
  rig.far_hangs = true;  // nothing is heard of the peer
  rig.script.may_leave = true;
  rig.turn();
  CHECK_FALSE(rig.transfer->ended());
  CHECK(rig.transfer->next_deadline() <= rig.now);
  SECTION("it may") {
    rig.turn();
    CHECK(rig.transfer->ended());
    CHECK(rig.transfer->result().kind == ErrorKind::ok);
  }
  SECTION("it has found more to say") {
    rig.script.may_leave = false;
    rig.turn();
    CHECK_FALSE(rig.transfer->ended());
    CHECK(rig.transfer->next_deadline() > rig.now);
    rig.script.may_leave = true;
    rig.turn();
    CHECK_FALSE(rig.transfer->ended());
    rig.turn();
    CHECK(rig.transfer->ended());
  }
}

// A closed socket may drop the last words, and the peer would wait.
TEST_CASE("dialled__a_role_that_may_leave_over_tcp__waits_until_the_peer_has_heard_it") {
  DialledRig rig;
  run_until_moving_over(rig, "tcp");
  rig.script.may_leave = true;
  for (int i = 0; i < 10; ++i) rig.turn();
  CHECK_FALSE(rig.transfer->ended());
  rig.script.finished = true;
  REQUIRE(rig.run_to_the_end());
}

TEST_CASE("dialled__files_that_failed__are_the_result_and_no_reason_to_begin_anew") {
  for (const bool failed : {true, false}) {
    DialledRig rig;
    REQUIRE(rig.run_until_moving());
    (failed ? rig.script.tally.files_failed : rig.script.tally.files_vanished) = 2;
    rig.script.finished = true;
    REQUIRE(rig.run_to_the_end());
    CHECK(rig.transfer->result().kind == (failed ? ErrorKind::partial : ErrorKind::vanished));
    CHECK(rig.transfer->result().message.rfind("2 files ", 0) == 0);
    CHECK(rig.script.made == 1);
  }
}

TEST_CASE("dialled__a_role_that_fails__only_what_a_new_session_may_mend_gets_one") {
  for (const ErrorKind kind : all_kinds()) {
    INFO(error_row(kind).name);
    if (kind == ErrorKind::vanished) continue;  // of a role: files that changed, see below
    DialledRig rig;
    REQUIRE(rig.run_until_moving());
    rig.script.tally.bytes = 70;
    rig.script.tally.bytes_sent = 7;
    rig.script.error = Error{kind, "it broke"};
    rig.script.finished = true;
    REQUIRE(rig.run([&] { return rig.script.living == 0; }));
    rig.script.finished = false;
    rig.script.error.reset();
    rig.script.tally = {};
    if (!passes(kind)) {
      REQUIRE(rig.run_to_the_end());
      CHECK(rig.transfer->result().kind == kind);
      // A disk of this host is not at the peer's address.
      const bool is_local = kind == ErrorKind::file_io || kind == ErrorKind::no_space || kind == ErrorKind::source_selection;
      const std::string& message = rig.transfer->result().message;
      CHECK((message.rfind("it broke: fake://far: ", 0) == 0) != is_local);
      CHECK(rig.retries().empty());
      continue;
    }
    CHECK_FALSE(rig.transfer->ended());
    CHECK(rig.retries() == Words{"it broke"});
    CHECK(rig.transfer->tally().bytes == 70);
    REQUIRE(rig.run_until_moving());
    CHECK(rig.script.made == 2);
    CHECK(rig.near_link->session() == DialledRig::session + 1);
    CHECK(rig.transfer->tally().bytes == 70);  // it has not come as far yet
    rig.script.tally.bytes = 100;
    rig.script.tally.bytes_sent = 5;
    CHECK(rig.transfer->tally().bytes == 100);
    rig.script.finished = true;
    REQUIRE(rig.run_to_the_end());
    CHECK(rig.transfer->result().kind == ErrorKind::ok);
    CHECK(rig.transfer->tally().bytes == 100);
    CHECK(rig.transfer->tally().bytes_sent == 12);
  }
}

TEST_CASE("dialled__files_that_changed__get_two_more_sessions_and_the_last_one_has_to_tell_of_them") {
  DialledRig rig;
  for (int session = 1; session <= 2; ++session) {
    REQUIRE(rig.run([&] { return rig.script.made == session && rig.transfer->moving(); }));
    rig.script.error = Error{ErrorKind::vanished, "a file changed"};
    rig.script.finished = true;
    REQUIRE(rig.run([&] { return rig.retries().size() == static_cast<size_t>(session); }));
    CHECK(rig.retries().back() == "a file changed");
    rig.script.finished = false;
    rig.script.error.reset();
  }
  REQUIRE(rig.run([&] { return rig.script.made == 3 && rig.transfer->moving(); }));
  CHECK(rig.script.tries_changed_again == std::vector<bool>{true, true, false});
  CHECK(rig.script.aborted.empty());  // the peer keeps each session until the next one comes
  rig.script.tally.files_vanished = 1;
  rig.script.finished = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::vanished);
  CHECK(rig.script.made == 3);
}

TEST_CASE("dialled__no_more_sessions_are_allowed__no_role_leaves_changed_files_to_another_one") {
  DialledRig rig([](DialPlan& plan) { plan.retries = 0; });
  REQUIRE(rig.run_until_moving());
  CHECK(rig.script.tries_changed_again == std::vector<bool>{false});
}

TEST_CASE("dialled__a_failure_without_words__is_told_in_those_of_its_kind") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::network, ""};
  rig.script.finished = true;
  REQUIRE(rig.run([&] { return !rig.retries().empty(); }));
  CHECK(rig.retries() == Words{error_row(ErrorKind::network).words});
}

// What cannot be read twice is not begun anew: the file would be cut, or mixed.
TEST_CASE("dialled__standard_input_whose_session_is_lost__ends_and_says_why") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.script.repeatable = false;
  rig.script.error = Error{ErrorKind::timeout, "it broke"};
  rig.script.finished = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::network);
  CHECK(rig.transfer->result().message ==
        "the session is lost, and standard input cannot be read again: fake://far: run the command again with its input from the "
        "beginning");
  CHECK(rig.script.made == 1);
  // Of what a new session would not mend, nor of success, anything is said.
  for (const bool fails : {true, false}) {
    DialledRig other;
    REQUIRE(other.run_until_moving());
    other.script.repeatable = false;
    if (fails) other.script.error = Error{ErrorKind::no_space, "full"};
    other.script.finished = true;
    REQUIRE(other.run_to_the_end());
    CHECK(other.transfer->result().kind == (fails ? ErrorKind::no_space : ErrorKind::ok));
  }
}

TEST_CASE("dialled__the_peer_ends_the_session_before_it_begins__again_or_not_by_its_reason") {
  for (const ErrorKind kind : all_kinds()) {
    if (!session::ends_a_session(kind)) continue;
    INFO(error_row(kind).name);
    DialledRig rig;
    rig.opens = false;
    REQUIRE(rig.run([&] { return rig.peer_asked(); }));
    rig.post(session::Abort{kind, "not now"});
    if (passes(kind)) {
      REQUIRE(rig.run([&] { return !rig.retries().empty(); }));
      CHECK_FALSE(rig.transfer->ended());
      rig.opens = true;
      REQUIRE(rig.run_until_moving());
    } else {
      REQUIRE(rig.run_to_the_end());
      CHECK(rig.transfer->result().kind == kind);
      CHECK(rig.transfer->result().message.find("not now") != std::string::npos);
    }
    CHECK(rig.script.made == (passes(kind) ? 1 : 0));
  }
}

// An Opened and what makes it void may come in one turn.
TEST_CASE("dialled__opened_twice__no_role_is_made") {
  DialledRig rig;
  rig.opens = false;
  REQUIRE(rig.run([&] { return rig.peer_asked(); }));
  rig.open();
  rig.open();
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::protocol);
  CHECK(rig.script.made == 0);
  REQUIRE(rig.aborts().size() == 1);
  CHECK(rig.aborts()[0].message == "the peer opened the session twice, or without a number");
}

// With a role it is the role that says how the session ended, as it knows what came of it.
TEST_CASE("dialled__opened_again_while_a_session_runs__ends_as_its_role_says") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.open();
  REQUIRE(rig.run([&] { return !rig.script.lost.empty(); }));
  CHECK(rig.script.lost[0].kind == ErrorKind::protocol);
  CHECK(rig.script.lost[0].message == "the peer opened the session twice, or without a number");
  rig.run_to(rig.now + 5s);
  CHECK(rig.transfer->moving());
  CHECK(rig.script.living == 1);
  rig.script.error = Error{ErrorKind::protocol, "in the role's words"};
  rig.script.finished = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.script.lost.size() == 1);
  CHECK(rig.transfer->result().kind == ErrorKind::protocol);
  CHECK(rig.transfer->result().message.rfind("in the role's words: fake://far: ", 0) == 0);
}

TEST_CASE("dialled__nobody_answers__no_answer_after_the_timeout_and_the_reason_is_told_once") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  rig.net.dial_status = [](std::string_view) { return Status::unreachable; };
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::no_answer);
  CHECK(rig.transfer->result().message == "nobody answers: fake://far: check that the peer runs and can be reached");
  CHECK(rig.passed() >= 20s);
  CHECK(rig.passed() < 22s);  // the dialler speaks first
  CHECK(rig.retries() == Words{"fake://far: nobody answers"});
  CHECK(rig.script.made == 0);
}

// The dialler's attempt may hang for longer than there is time: then this end says so by itself, a little later.
TEST_CASE("dialled__an_attempt_that_hangs__no_answer_after_the_slack") {
  DialledRig rig([](DialPlan& plan) {
    plan.timeout = 3s;
    plan.retries = 0;
  });
  rig.far_hangs = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::no_answer);
  CHECK(rig.transfer->result().message == "no answer: fake://far: check that the peer runs and can be reached");
  CHECK(rig.passed() >= 5s);
  CHECK(rig.passed() < 5s + 10ms);
}

TEST_CASE("dialled__another_reason__is_told_and_the_same_one_again_after_the_peer_was_there") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = forever; });
  rig.opens = false;
  Status status = Status::unreachable;
  rig.net.dial_status = [&](std::string_view) { return status; };
  rig.run_to(rig.began + 5s);
  CHECK(rig.retries() == Words{"fake://far: nobody answers"});
  status = Status::no_route;
  rig.run_to(rig.began + 20s);
  CHECK(rig.retries() == Words{"fake://far: nobody answers", "fake://far: no route"});
  status = Status::success;
  REQUIRE(rig.run([&] { return rig.peer_asked(); }));
  status = Status::no_route;
  rig.near.transport->cut_all();
  REQUIRE(rig.run([&] { return rig.retries().size() >= 4; }));
  CHECK(rig.retries()[3] == "fake://far: no route");
}

TEST_CASE("dialled__retries__are_as_many_new_sessions_and_each_end_is_told") {
  for (const uint32_t retries : {0u, 1u, 3u}) {
    DialledRig rig([&](DialPlan& plan) { plan.retries = retries; });
    rig.net.dial_status = [](std::string_view) { return Status::unreachable; };
    REQUIRE(rig.run_to_the_end());
    CHECK(rig.transfer->result().kind == ErrorKind::no_answer);
    CHECK(rig.net.dials == retries + 1);
    CHECK(rig.retries() == Words(retries, "fake://far: nobody answers"));
    CHECK(rig.passed() < 10s);  // no timeout stands behind it
  }
  // Sessions that were lost count alike.
  DialledRig rig([](DialPlan& plan) { plan.retries = 2; });
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.script.made == 3);
  CHECK(rig.transfer->result().kind == ErrorKind::network);
  CHECK(rig.retries() == Words{"it broke", "it broke"});
}

TEST_CASE("dialled__retries_and_what_no_retry_mends__ends_at_once") {
  DialledRig usage([](DialPlan& plan) { plan.retries = 5; });
  usage.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::usage, "send to it"});
  REQUIRE(usage.run_to_the_end());
  CHECK(usage.transfer->result().kind == ErrorKind::usage);
  CHECK(usage.net.dials == 1);
  // A name that no host has is passing by its kind, and hopeless.
  DialledRig unknown([](DialPlan& plan) { plan.retries = 5; });
  unknown.net.dial_status = [](std::string_view) { return Status::not_found; };
  REQUIRE(unknown.run_to_the_end());
  CHECK(unknown.transfer->result().kind == ErrorKind::no_answer);
  CHECK(unknown.net.dials == 1);
  CHECK(unknown.passed() < 1s);
}

TEST_CASE("dialled__a_refusal__is_final_or_waited_for_by_its_kind") {
  DialledRig usage;
  usage.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::usage, "send to it"});
  REQUIRE(usage.run_to_the_end());
  CHECK(usage.transfer->result().kind == ErrorKind::usage);
  CHECK(usage.transfer->result().message.find("refused: send to it") != std::string::npos);
  CHECK(usage.passed() < 1s);
  // One that is busy was reached: that it did not get less busy is a timeout, in its words.
  DialledRig busy([](DialPlan& plan) { plan.timeout = 10s; });
  busy.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::network, "the peer is busy"});
  REQUIRE(busy.run_to_the_end());
  CHECK(busy.transfer->result().kind == ErrorKind::timeout);
  CHECK(busy.transfer->result().message.find("refused: the peer is busy") != std::string::npos);
  CHECK(busy.passed() >= 10s);
  CHECK(busy.passed() < 13s);
  CHECK(busy.retries() == Words{"fake://far: refused: the peer is busy"});
  CHECK(busy.net.dials > 3);
}

TEST_CASE("dialled__the_peer_was_reached_and_is_gone__timeout_and_not_no_answer") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 10s; });
  REQUIRE(rig.run_until_moving());
  rig.net.dial_status = [](std::string_view) { return Status::unreachable; };
  rig.near.transport->cut_all();
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  CHECK(rig.transfer->result().message == "no progress within the timeout: fake://far: run the same command again to resume");
  CHECK(rig.passed() >= 10s);
  CHECK(rig.passed() < 11s);
  REQUIRE(rig.retries().size() == 2);
  CHECK(rig.retries()[0] == "the connection is lost: fake://far: dialling again");
  CHECK(rig.retries()[1] == "fake://far: nobody answers");
  CHECK(rig.script.aborted.size() == 1);
}

TEST_CASE("dialled__a_lane_comes_back__the_session_goes_on") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.near.transport->cut_all();
  REQUIRE(rig.run([&] { return rig.script.lanes.size() == 3; }));
  CHECK(rig.script.lanes == Words{"up 0", "down 0", "up 0"});
  CHECK(rig.script.made == 1);
  CHECK(rig.retries() == Words{"the connection is lost: fake://far: dialling again"});
}

TEST_CASE("dialled__the_peer_forgot_the_session__another_one_is_begun") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.acceptor->link.reset();  // as after a crash
  rig.far->transport->cut_all();
  REQUIRE(rig.run([&] { return rig.script.made == 2 && rig.transfer->moving(); }));
  const Words retries = rig.retries();
  CHECK(retries.back() == "the peer no longer knows the session: fake://far");
  CHECK(rig.near_link->session() == DialledRig::session + 1);
}

TEST_CASE("dialled__the_peer_hangs_up_at_the_end__is_no_lost_connection") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::no_space, "full"};
  rig.script.finished = true;
  rig.near.transport->cut_all();
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.retries().empty());
}

TEST_CASE("dialled__no_progress__the_timeout_ends_it_at_both_ends") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  REQUIRE(rig.run_until_moving());
  rig.script.last_progress = rig.began + 5s;  // later than now: counts as now, and no longer
  rig.run_to(rig.began + 8s);
  CHECK(rig.transfer->stalled(rig.now) == 3s);
  CHECK(rig.transfer->timeout() == 20s);
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.passed() >= 25s);
  CHECK(rig.passed() < 26s);
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  CHECK(rig.transfer->result().message == "no progress within the timeout: fake://far: run the same command again to resume");
  REQUIRE(rig.script.aborted.size() == 1);
  CHECK(rig.script.aborted[0].kind == ErrorKind::timeout);
  CHECK(rig.script.made == 1);
}

TEST_CASE("dialled__a_disk_that_does_not_answer__is_what_the_timeout_names") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.script.stuck_disk = "the disk does not answer";
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  CHECK(rig.transfer->result().message == "the disk does not answer: fake://far: run the same command again to resume");
}

TEST_CASE("dialled__each_kind_of_progress__puts_the_timeout_off") {
  using Count = uint64_t Tally::*;
  const std::vector<Count> counts = {
      &Tally::entries_answered,   &Tally::files,           &Tally::files_unchanged,   &Tally::files_failed, &Tally::files_vanished,
      &Tally::attributes_refused, &Tally::unlisted_failed, &Tally::unlisted_vanished, &Tally::bytes};
  for (size_t what = 0; what <= counts.size(); ++what) {
    INFO(what);
    DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
    REQUIRE(rig.run_until_moving());
    rig.run_to(rig.began + 15s);
    if (what < counts.size()) {
      rig.script.tally.*counts[what] = 1;
    } else {
      rig.script.last_progress = rig.now;
    }
    rig.run_to(rig.began + 34s);
    CHECK(rig.script.aborted.empty());
    rig.run_to(rig.began + 36s);
    CHECK(rig.script.aborted.size() == 1);
  }
}

TEST_CASE("dialled__bytes_that_move_within_a_segment__put_the_timeout_off") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  rig.net.received_bytes = 0;
  REQUIRE(rig.run_until_moving());
  for (int second = 1; second <= 60; ++second) {
    *rig.net.received_bytes += 2 * flow_bytes_per_s_min;
    rig.run_to(rig.began + std::chrono::seconds(second));
  }
  CHECK(rig.script.aborted.empty());
  CHECK(rig.transfer->stalled(rig.now) <= 1s);
  rig.run_to(rig.began + 78s);
  CHECK(rig.script.aborted.empty());
  rig.run_to(rig.began + 82s);
  CHECK(rig.script.aborted.size() == 1);
}

TEST_CASE("dialled__no_timeout__waits_for_ever") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = forever; });
  REQUIRE(rig.run_until_moving());
  rig.run_to(rig.began + 1000h);
  CHECK(rig.script.aborted.empty());
  CHECK(rig.transfer->moving());
  CHECK(rig.transfer->next_deadline() == never);
  // And a lost session is begun anew, however long the last progress is past.
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  REQUIRE(rig.run([&] { return rig.script.living == 0; }));
  CHECK_FALSE(rig.transfer->ended());
  rig.script.finished = false;
  rig.net.dial_status = [](std::string_view) { return Status::unreachable; };
  rig.run_to(rig.began + 2000h);
  CHECK_FALSE(rig.transfer->ended());
}

TEST_CASE("dialled__the_peer_never_opens_the_session__told_and_ended_by_the_timeout") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  rig.opens = false;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::timeout);
  CHECK(rig.script.made == 0);
  REQUIRE(rig.aborts().size() == 1);
  CHECK(rig.aborts()[0].kind == ErrorKind::timeout);
  CHECK(rig.aborts()[0].message == "no progress within the timeout: fake://far: run the same command again to resume");
  CHECK(rig.passed() >= 20s);
  CHECK(rig.passed() < 21s);
}

TEST_CASE("dialled__waits_for_its_turn__each_word_of_it_puts_the_timeout_off") {
  DialledRig rig([](DialPlan& plan) { plan.timeout = 20s; });
  rig.opens = false;
  REQUIRE(rig.run([&] { return rig.peer_asked(); }));
  CHECK_FALSE(rig.transfer->place());
  rig.post(session::Queued{3});
  rig.run_to(rig.began + 15s);
  CHECK(rig.transfer->place() == 3u);
  rig.post(session::Queued{3});
  rig.run_to(rig.began + 30s);
  rig.post(session::Queued{0});
  rig.run_to(rig.began + 45s);
  CHECK(rig.transfer->place() == 0u);
  CHECK(rig.aborts().empty());
  CHECK(rig.transfer->stalled(rig.now) > 14s);
  CHECK(rig.transfer->stalled(rig.now) <= 15s);
  CHECK(rig.desk.told("waiting", "before") == Words{"3", "0"});
  CHECK(rig.desk.told("waiting", "transfer")[0] == "09000000000000000000000000000000");
  rig.open();
  REQUIRE(rig.run_until_moving());
  CHECK_FALSE(rig.transfer->place());
}

TEST_CASE("dialled__stopped_with_a_session__the_role_is_told_and_the_reason_is_the_result") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.transfer->stop({ErrorKind::interrupted, "enough"});
  rig.transfer->stop({ErrorKind::bug, "a second word"});
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::interrupted);
  CHECK(rig.transfer->result().message == "enough");
  REQUIRE(rig.script.aborted.size() == 1);
  CHECK(rig.script.aborted[0].message == "enough");
  CHECK(rig.script.made == 1);
  CHECK(rig.passed() < 1s);
}

TEST_CASE("dialled__stopped_before_there_is_a_session__the_peer_is_told") {
  DialledRig rig;
  rig.opens = false;
  REQUIRE(rig.run([&] { return rig.peer_asked(); }));
  rig.transfer->stop({ErrorKind::interrupted, "enough"});
  REQUIRE(rig.run_to_the_end());
  REQUIRE(rig.aborts().size() == 1);
  CHECK(rig.aborts()[0].kind == ErrorKind::interrupted);
  CHECK(rig.aborts()[0].message == "enough");
  CHECK(rig.transfer->result().message == "enough");
}

TEST_CASE("dialled__stopped_between_two_sessions__ends_at_once") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  REQUIRE(rig.run([&] { return rig.script.living == 0; }));
  rig.transfer->stop({ErrorKind::interrupted, "enough"});
  rig.transfer->turn(rig.now);
  CHECK(rig.transfer->ended());
  CHECK(rig.transfer->result().kind == ErrorKind::interrupted);
  CHECK(rig.script.made == 1);
}

TEST_CASE("dialled__stopped_while_it_would_begin_anew__does_not") {
  DialledRig rig;
  REQUIRE(rig.run_until_moving());
  rig.script.error = Error{ErrorKind::network, "it broke"};
  rig.script.finished = true;
  rig.script.idle = false;
  rig.run_to(rig.now + 1s);
  rig.transfer->stop({ErrorKind::interrupted, "enough"});
  rig.script.idle = true;
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().message == "enough");
  CHECK(rig.script.made == 1);
}
