// What a team does with a file that changed and that the next session of the transfer brings.
#include <catch2/catch.hpp>
#include <memory>

#include "tests/unit/recv/team_parts.h"

namespace ccixfer::recv {

using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;

// A leader that may have one file, or one piece, at a time.
struct TeamRig : WithTeamParts {
  TeamRig() { REQUIRE(session_root.opened()); }
  ~TeamRig() {
    team.end({});
    team.release();
    team.let_go_those_gone();
  }
  void want(uint64_t index, uint64_t size_bytes) {
    Decision decision;
    decision.task = known.add(index, size_bytes).task_ref();
    decision.verdict = session::Verdict::send;
    team.choose(decision);
  }
  void turn() {
    said.clear();
    team.turn(now, 0);
  }
  template <typename Message>
  [[nodiscard]] std::vector<Message> heard() const {
    std::vector<Message> found;
    for (const session::Message& message : said) {
      if (const auto* one = std::get_if<Message>(&message)) found.push_back(*one);
    }
    return found;
  }

  Instant now{};
  std::vector<session::Message> said;  // to the leader, in this turn
  Outbox leader{[this](const session::Message& message) { said.push_back(message); }};
  Team team{TeamLimits{.window_bytes_min = 10, .shared_file_bytes = piece, .shared_pieces = 1},
            TeamParts{jobs.jobs, session_root, known, leader, session, handler, side.entropy}};
};

}  // namespace

TEST_CASE("team__a_file_of_the_leader_that_is_for_later__makes_room_for_the_next_one") {
  TeamRig rig;
  rig.want(1, 10);
  rig.want(2, 10);
  rig.turn();
  REQUIRE(rig.heard<session::Give>().size() == 1);
  REQUIRE(rig.heard<session::Give>().front().runs.front().first == 1);
  rig.turn();
  REQUIRE(rig.said.empty());
  rig.team.set_aside(1);
  rig.turn();
  REQUIRE(rig.heard<session::Give>().size() == 1);
  CHECK(rig.heard<session::Give>().front().runs.front().first == 2);
}

TEST_CASE("team__a_shared_file_that_is_for_later__is_given_to_nobody_and_the_next_one_is") {
  TeamRig rig;
  rig.want(1, 4 * piece);
  rig.want(2, 4 * piece);
  rig.turn();
  REQUIRE(rig.heard<session::Compare>().size() == 1);
  REQUIRE(rig.heard<session::Compare>().front().index == 1);
  rig.team.set_aside(1);
  rig.turn();
  REQUIRE(rig.heard<session::Compare>().size() == 1);
  CHECK(rig.heard<session::Compare>().front().index == 2);
  CHECK(rig.known.find(1) != nullptr);
  CHECK_FALSE(rig.team.ask_again({1, 3}));
}

TEST_CASE("team__a_shared_file_that_is_for_later__has_ended_for_a_helper_that_has_pieces_of_it") {
  TeamRig rig;
  SessionWith<Helper> far{rig.jobs.pool,
                          [&rig](session::Link& link, session::fake::Side& end, memory::Pool& pool, Notes&) {
                            auto helper = std::make_unique<Helper>(HelperParts{
                                link, end.endpoint->mailboxes(), pool, end.entropy,
                                std::make_shared<session::PoolTurns>(pool.count(), true), std::make_shared<RateAllowance>(0)});
                            rig.team.add({helper.get(), [](Helper*) {}});  // the session owns it
                            return helper;
                          },
                          1, 8};
  far.source.verdicts[1] = session::Verdict::shared;
  rig.want(1, 4 * piece);
  rig.turn();
  REQUIRE(far.run([&] { return !far.source.compares.empty(); }));
  rig.team.set_aside(1);
  CHECK(far.run([&] { return far.source.results.contains(1); }));
  rig.team.end({});
  rig.team.release();
}

}  // namespace ccixfer::recv
