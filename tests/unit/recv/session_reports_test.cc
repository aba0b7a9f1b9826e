// What failures, faults of the peer and damage lead to.
#include "app/recv/session_reports.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

struct Rig {
  std::vector<session::Message> posted;
  SessionEnd end;
  Outbox outbox{[this](const session::Message& message) { posted.push_back(message); }};
  test::Notes notes;
  Results results{nullptr, notes};
  session::Liveness liveness{forever};
  session::Wake wake;
  Counters counters;
  SessionReports reports{end, outbox, results, liveness, wake, notes, counters, [] { return uint64_t{77}; }};
};

TEST_CASE("session_reports__failure__is_told_to_the_source_once") {
  Rig rig;
  CHECK_FALSE(rig.reports.has_failed());
  rig.reports.fail({ErrorKind::no_space, std::string(600, 'x')});
  rig.reports.fail({ErrorKind::bug, "second"});
  CHECK(rig.reports.has_failed());
  CHECK(rig.wake.is_set());
  REQUIRE(rig.posted.size() == 1);
  const auto& abort = std::get<session::Abort>(rig.posted[0]);
  CHECK(abort.kind == ErrorKind::no_space);
  CHECK(abort.message.size() == 600);
  CHECK(rig.end.error()->message.size() == 600);
  CHECK(rig.counters.get(Counter::session_rejected) == 0);
}

TEST_CASE("session_reports__end_that_the_peer_knows_of__is_not_told_to_it") {
  Rig rig;
  rig.reports.end_with({ErrorKind::network, "gone"}, false);
  CHECK(rig.reports.has_failed());
  CHECK(rig.posted.empty());
}

TEST_CASE("session_reports__fault_of_the_peer__is_counted_also_if_the_session_goes_on") {
  Rig rig;
  rig.reports.reject("nonsense");
  CHECK(rig.counters.get(Counter::session_rejected) == 1);
  CHECK_FALSE(rig.reports.has_failed());
  rig.reports.refuse({ErrorKind::protocol, "worse"});
  CHECK(rig.counters.get(Counter::session_rejected) == 2);
  CHECK(rig.reports.has_failed());
}

// Each is a line of the log.
TEST_CASE("session_reports__faults_of_the_peer_without_end__end_the_session") {
  Rig rig;
  for (uint32_t i = 0; i < rejected_max; ++i) rig.reports.reject("nonsense");
  CHECK_FALSE(rig.reports.has_failed());
  rig.reports.reject("nonsense");
  REQUIRE(rig.reports.has_failed());
  CHECK(rig.end.error()->kind == ErrorKind::protocol);
  CHECK(rig.counters.get(Counter::session_rejected) == rejected_max + 1);
}

TEST_CASE("session_reports__damage__is_asked_for_again_and_counted") {
  Rig rig;
  rig.reports.ask_for_put(3, 4);
  CHECK(rig.counters.get(Counter::segments_bad) == 1);
  rig.reports.ask_for_piece(1, 2);
  CHECK(rig.counters.get(Counter::segments_bad) == 1);
  CHECK(rig.results.tally().segments_resent == 2);
  rig.outbox.flush_requests();
  CHECK(rig.posted.size() == 2);
}

TEST_CASE("session_reports__damage_without_end__a_hundred_in_a_row_and_no_fewer_end_the_session") {
  Rig rig;
  for (uint32_t i = 1; i < damaged_in_a_row_max; ++i) rig.reports.ask_for_put(3, i);
  rig.reports.opened(true);
  for (uint32_t i = 1; i < damaged_in_a_row_max; ++i) rig.reports.opened(false);
  CHECK_FALSE(rig.reports.has_failed());
  rig.reports.ask_for_put(3, 4);
  REQUIRE(rig.reports.has_failed());
  CHECK(rig.end.error()->kind == ErrorKind::integrity);
  CHECK(std::get<session::Abort>(rig.posted.back()).kind == ErrorKind::integrity);
  rig.reports.ask_for_put(3, 5);
  CHECK(rig.results.tally().segments_resent == damaged_in_a_row_max - 1);  // then nobody is there to be asked
}

}  // namespace
}  // namespace ccixfer::recv
