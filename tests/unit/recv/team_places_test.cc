// What a team takes of a helper that has a second receiver: the place of a file that all share, and pieces that are placed there.
#include <catch2/catch.hpp>
#include <memory>

#include "tests/unit/recv/team_parts.h"

namespace ccixfer::recv {

using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;

struct Rig : WithTeamParts {
  Rig() {
    REQUIRE(session_root.opened());
    Decision decision;
    decision.task = known.add(3, 2 * piece + 10).task_ref();
    decision.verdict = session::Verdict::send;
    known.find(3)->begin_pieces(session_root.make_staged(*decision.task, false));
    team.choose(decision);
    REQUIRE(decision.verdict == session::Verdict::shared);
    team.add(helper);
  }
  ~Rig() {
    team.end({});
    team.release();
  }
  void share() {
    team.on_ask_place(*helper, {3});
    jobs.pool.reap();
  }
  [[nodiscard]] PieceState state(uint64_t number) { return known.find(3)->pieces()->table().state(number); }

  Outbox leader{[](const session::Message&) {}};
  TeamLimits limits{.shared_file_bytes = piece};
  ScriptedSource nobody{side};
  session::Link link{*side.endpoint, {}, nobody};
  memory::Pool pool{session::segment_bytes_max, 4};
  std::shared_ptr<Helper> helper = std::make_shared<Helper>(HelperParts{link, side.endpoint->mailboxes(), pool, side.entropy,
                                                                        std::make_shared<session::PoolTurns>(pool.count(), true),
                                                                        std::make_shared<RateAllowance>(0)});
  Team team{limits, TeamParts{jobs.jobs, session_root, known, leader, session, handler, side.entropy}};
};

}  // namespace

TEST_CASE("team__a_helper_asks_for_a_place__the_staged_file_is_made_and_shared") {
  Rig rig;
  rig.share();
  const std::string staged = rig.known.find(3)->pieces()->staged()->name();
  CHECK(rig.temporary.has(".ccixfer/" + staged));
  CHECK(rig.temporary.has(".ccixfer/" + staged + ".share"));
  CHECK(rig.session.rejections.empty());
}

TEST_CASE("team__a_place_for_a_file_that_is_not_shared__is_not_made") {
  Rig rig;
  rig.known.add(4, 2 * piece);
  rig.team.on_ask_place(*rig.helper, {4});
  rig.team.on_ask_place(*rig.helper, {5});
  CHECK(rig.jobs.pool.in_flight() == 0);
}

TEST_CASE("team__pieces_that_are_placed__count_as_written_with_their_hashes") {
  Rig rig;
  rig.share();
  rig.known.notes.clear();
  rig.team.on_placed(*rig.helper, {3, 1, {{1, 2}, {3, 4}}});
  CHECK(rig.known.notes ==
        std::vector<std::string>{"written 3: " + std::to_string(piece), "job ended 3", "written 3: 10", "job ended 3"});
  CHECK(rig.state(0) == PieceState::absent);
  CHECK(rig.state(1) == PieceState::written);
  CHECK(rig.known.find(3)->pieces()->table().hash(2) == Hash128{3, 4});
  // They are here: to hear of them once more is nothing.
  rig.known.notes.clear();
  rig.team.on_placed(*rig.helper, {3, 1, {{1, 2}}});
  CHECK(rig.known.notes.empty());
  CHECK(rig.session.rejections.empty());
}

TEST_CASE("team__a_piece_that_is_placed_with_another_hash__says_that_the_source_has_changed") {
  Rig rig;
  rig.share();
  rig.team.on_placed(*rig.helper, {3, 1, {{1, 2}}});
  static_cast<void>(rig.known.find(3)->pieces()->lose_unsynced());
  rig.team.on_placed(*rig.helper, {3, 1, {{9, 9}}});
  CHECK(rig.known.find(3)->failure().has_value());
}

TEST_CASE("team__pieces_that_are_placed_where_there_is_no_place__are_rejected") {
  Rig rig;
  SECTION("nobody asked for one") { rig.team.on_placed(*rig.helper, {3, 1, {{1, 2}}}); }
  SECTION("behind the end of the file") {
    rig.share();
    rig.team.on_placed(*rig.helper, {3, 3, {{1, 2}}});
  }
  CHECK(rig.session.rejections.size() == 1);
  CHECK(rig.state(1) == PieceState::absent);
}

TEST_CASE("team__pieces_of_a_file_that_has_ended__are_passed_over") {
  Rig rig;
  rig.share();
  rig.team.ended({3, ErrorKind::ok, 0});
  rig.known.files.erase(3);
  rig.team.on_placed(*rig.helper, {3, 1, {{1, 2}}});
  CHECK(rig.session.rejections.empty());
}

}  // namespace ccixfer::recv
