// The side that listens, and the processes of a team (--stripe, --part) that come to it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/main/acceptor_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

session::Open open_of_part(uint64_t member, uint16_t part, uint16_t parts) {
  session::Open open{session::option_recursive, ""};
  open.team.emplace();
  open.team->name.fill(3);
  open.team->member = member;
  open.team->part = part;
  open.team->parts = parts;
  open.team->version = "1";
  return open;
}

std::string reason_of(AcceptorRig& rig, const Guest& guest) {
  REQUIRE(rig.run([&] { return guest.got<session::Abort>(); }));
  return guest.all<session::Abort>().front().message;
}

}  // namespace

// A receiver that has a team takes others' hellos, as they may be of the team.
TEST_CASE("acceptor__once_with_a_team__whoever_is_sent_away_as_busy_ends_nothing") {
  AcceptorRig rig([](AcceptorOptions& options) { options.once = true; });
  Guest& leader = rig.arrive_and_run(1, open_of_part(1, 1, 1));
  Guest& stranger = rig.arrive(2);
  REQUIRE(rig.run([&] { return stranger.got<session::Abort>(); }));
  rig.leave(stranger);
  REQUIRE(rig.run([&] { return rig.acceptor->sessions() == 1; }));
  CHECK_FALSE(rig.acceptor->first_end());
  rig.finish(leader);
  REQUIRE(rig.run([&] { return rig.acceptor->first_end().has_value(); }));
  CHECK(rig.acceptor->first_end()->kind == ErrorKind::ok);
}

TEST_CASE("acceptor__two_processes_with_one_part__the_second_is_refused_if_the_first_is_there") {
  AcceptorRig rig;
  const auto open_of = [](uint64_t member, uint16_t part) { return open_of_part(member, part, 2); };
  Guest& leader = rig.arrive_and_run(1, open_of(1, 1));
  Guest& helper = rig.arrive_and_run(2, open_of(2, 2));
  Guest& twin = rig.arrive(3, open_of(3, 2));
  CHECK(reason_of(rig, twin).find("part 2/2 is here already") != std::string::npos);
  CHECK(leader.link->live_lanes().size() == 1);

  // Its node loses its power, and what it had sent is on the way for longer than it takes to start it again.
  rig.net.frames_per_turn = 1;
  for (int i = 0; i < 64; ++i) helper.link->post(session::Alive{});
  rig.turn();
  helper.is_gone = true;
  Guest& again = rig.arrive(4, open_of(4, 2));
  for (int i = 0; i < 200; ++i) rig.turn();
  CHECK_FALSE(again.got<session::Abort>());
  CHECK(rig.run([&] { return again.got<session::Opened>(); }));
  CHECK_FALSE(again.got<session::Abort>());
}

TEST_CASE("acceptor__on_the_status_page__a_process_that_helps_is_told_from_the_one_that_leads") {
  AcceptorRig rig;
  rig.arrive_and_run(1, open_of_part(1, 1, 2));
  rig.arrive_and_run(2, open_of_part(2, 2, 2));
  size_t more = 0;
  const auto shown = rig.acceptor->show(rig.now, 10, more);
  REQUIRE(shown.size() == 2);
  CHECK_FALSE(shown[0].counts.helped);
  CHECK(shown[1].counts.helped);
}

// Its place is the only one, and nobody else knows that it is gone.
TEST_CASE("acceptor__the_leader_is_lost_while_another_process_waits_for_a_place__that_one_leads") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
  Guest& leader = rig.arrive_and_run(1, open_of_part(1, 1, 2));
  Guest& other = rig.arrive(2, open_of_part(2, 2, 2));
  REQUIRE(rig.run([&] { return other.got<session::Queued>(); }));
  leader.is_gone = true;
  leader.side.transport->cut_all();
  const Instant lost = rig.now;
  REQUIRE(rig.run([&] { return other.got<session::Opened>(); }));
  CHECK(rig.now < after(lost, 2 * lost_patience));
  CHECK_FALSE(other.all<session::TeamSeat>().front().is_helper);
}

// It is the run that it was: both of its parts have come, and nobody is waited for.
TEST_CASE("acceptor__a_leader_killed_after_long_and_started_again__goes_on_with_the_run") {
  const bool has_ended = GENERATE(true, false);  // the session of the process that was killed
  std::vector<std::string> transfers;            // those that ended
  AcceptorRig rig([&](AcceptorOptions& options) {
    options.once = true;
    options.completed = [&](const std::string& result) { transfers.push_back(result); };
  });
  Guest& leader = rig.arrive_and_run(1, open_of_part(1, 1, 2));
  Guest& helper = rig.arrive_and_run(2, open_of_part(2, 2, 2));
  rig.run_for(2 * late_max);
  REQUIRE(rig.acceptor->sessions() == 2);
  if (has_ended) {
    rig.leave(leader);
    REQUIRE(rig.run([&] { return rig.acceptor->sessions() == 0; }));
    rig.leave(helper);
  } else {
    leader.is_gone = helper.is_gone = true;  // without a word
  }
  Guest& again = rig.arrive_and_run(3, open_of_part(3, 1, 2));
  rig.finish(again);
  for (int i = 0; i < 3; ++i) rig.turn();
  CHECK(rig.acceptor->first_end().has_value());
  // Each of them is one of the history, as of a process that is alone.
  REQUIRE(rig.run([&] { return transfers.size() == 2; }));
  const auto with = [&](const char* status) {
    return std::count_if(transfers.begin(), transfers.end(), [status](const std::string& one) {
      return one.find("\"status\":\"" + std::string(status) + "\"") != std::string::npos;
    });
  };
  CHECK(with("ok") == 1);
}
