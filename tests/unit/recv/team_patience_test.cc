// How long a team waits for a helper that has work: not while what it has sent is with the disk of this end.
#include <catch2/catch.hpp>
#include <memory>

#include "tests/unit/recv/team_parts.h"

namespace ccixfer::recv {

using namespace test;

namespace {

// A team whose leader and helper have one file each.
struct Rig : WithTeamParts {
  Rig() : Rig(TeamLimits{.portion_bytes = 1}) {
    for (const uint64_t index : {1u, 2u}) give(index);
    turn();
    REQUIRE_FALSE(is_let_go());
  }
  // They have nothing yet.
  explicit Rig(const TeamLimits& limits_) : limits(limits_) {
    REQUIRE(session_root.opened());
    turn();
  }
  ~Rig() {
    team.end({});
    team.release();
    team.let_go_those_gone();
  }
  void give(uint64_t index) {
    Decision decision;
    decision.task = known.add(index, 10).task_ref();
    decision.verdict = session::Verdict::send;
    team.choose(decision);
    REQUIRE(decision.verdict == session::Verdict::elsewhere);
  }
  void turn() {
    far.settle(20);
    wait({});
  }
  void wait(Duration time) {
    far.now += time;
    far.destination->turn(far.now);
    team.turn(far.now, 0);
  }
  // All that was with anybody is being committed.
  void commit_all() {
    for (auto& [index, file] : known.files) {
      REQUIRE(file.begin_pack());
      file.set_end(whole(index));
      file.begin_commit();
    }
  }
  void end_all() {
    for (const uint64_t index : {1u, 2u}) {
      team.ended({index, ErrorKind::ok, 0});
      known.files.erase(index);
    }
  }
  [[nodiscard]] bool is_let_go() const { return far.destination->error() != nullptr; }

  Outbox leader{[](const session::Message&) {}};
  const TeamLimits limits;
  Team team{limits, TeamParts{jobs.jobs, session_root, known, leader, session, handler, side.entropy}};
  SessionWith<Helper> far{jobs.pool,
                          [this](session::Link& link, session::fake::Side& end, memory::Pool& pool, Notes&) {
                            auto helper = std::make_unique<Helper>(HelperParts{
                                link, end.endpoint->mailboxes(), pool, end.entropy,
                                std::make_shared<session::PoolTurns>(pool.count(), true), std::make_shared<RateAllowance>(0)});
                            team.add({helper.get(), [](Helper*) {}});  // the session owns it
                            return helper;
                          },
                          1, 8};
};

}  // namespace

TEST_CASE("team__a_helper_that_sends_nothing_of_what_it_has__is_let_go_after_its_patience") {
  Rig rig;
  rig.wait(helper_patience - Duration(1'000'000));
  CHECK_FALSE(rig.is_let_go());
  rig.wait(Duration(1'000'000'000));
  CHECK(rig.is_let_go());
}

// The leader gets pieces of the first files only, so it waits for this helper although other files wait.
TEST_CASE("team__a_helper_that_hangs_has_pieces_of_all_files_that_the_leader_may_have__it_is_let_go") {
  constexpr uint64_t piece = session::piece_bytes;
  Rig rig(TeamLimits{.shared_file_bytes = piece});
  while (!rig.leader.is_full()) rig.leader.post(session::Alive{});  // it can be told nothing meanwhile
  for (uint64_t index = 1; index <= shared_files_max + 1; ++index) {
    Decision decision;
    decision.task = rig.known.add(index, piece).task_ref();
    decision.verdict = session::Verdict::send;
    rig.team.choose(decision);
    REQUIRE(decision.verdict == session::Verdict::shared);
    rig.far.source.verdicts[index] = decision.verdict;
  }
  rig.turn();
  SECTION("the leader has nothing to do") {
    rig.leader.delivered();
    rig.wait(helper_patience - Duration(1'000'000));
    CHECK_FALSE(rig.is_let_go());
    rig.wait(Duration(1'000'000'000));
    CHECK(rig.is_let_go());
  }
  SECTION("the leader has not got what it was told before") {
    rig.wait(2 * helper_patience);
    CHECK_FALSE(rig.is_let_go());
  }
}

TEST_CASE("team__all_that_a_helper_has_is_being_committed__it_stays_however_slow_the_disk_is") {
  Rig rig;
  rig.commit_all();
  rig.wait(helper_patience * 2);
  CHECK_FALSE(rig.is_let_go());
  SECTION("what it gets then has its own time") {
    rig.end_all();
    rig.give(3);
    rig.give(4);
    rig.wait(helper_patience - Duration(1'000'000));
    CHECK_FALSE(rig.is_let_go());
    rig.wait(helper_patience - Duration(1'000'000));
    CHECK_FALSE(rig.is_let_go());
    rig.wait(helper_patience);
    CHECK(rig.is_let_go());
  }
  SECTION("so has what it is asked for again") {
    rig.wait(helper_patience - Duration(1'000'000));
    for (auto& [index, file] : rig.known.files) file.end_commit();
    CHECK((rig.team.ask_again({1, session::Resend::whole}) || rig.team.ask_again({2, session::Resend::whole})));
    rig.wait(helper_patience - Duration(1'000'000));
    CHECK_FALSE(rig.is_let_go());
    rig.wait(helper_patience);
    CHECK(rig.is_let_go());
  }
}

}  // namespace ccixfer::recv
