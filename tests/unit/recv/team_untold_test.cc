// What a team tells its members of pieces that come from others: nothing while much is under way to a member, and then all of it.
#include <catch2/catch.hpp>
#include <memory>

#include "app/recv/untold.h"
#include "app/session/message_wire.h"
#include "tests/unit/recv/team_parts.h"

namespace ccixfer::recv {

using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;
constexpr uint64_t pieces = 8;

// A helper that gets pieces of one shared file, and a leader to whom much is under way.
struct Rig : WithTeamParts {
  Rig() {
    REQUIRE(session_root.opened());
    while (!leader.is_full()) leader.post(session::Alive{});
    turn();
    said.clear();
    Decision decision;
    decision.task = known.add(3, pieces * piece).task_ref();
    decision.verdict = session::Verdict::send;
    known.find(3)->begin_pieces(session_root.make_staged(*decision.task, false));
    team.choose(decision);
    REQUIRE(decision.verdict == session::Verdict::shared);
    far.source.verdicts[3] = decision.verdict;
    turn();
  }
  ~Rig() {
    team.end({});
    team.release();
    team.let_go_those_gone();
  }
  void turn() {
    far.settle(20);
    far.destination->turn(far.now);
    team.turn(far.now, 0);
  }
  void come(uint64_t first, uint64_t count) {
    for (uint64_t number = first; number < first + count; ++number) {
      FilePieces& of = *known.find(3)->pieces();
      REQUIRE(of.arrive(number, {1, 2}) == FilePieces::Arrived::wanted);
      REQUIRE(of.written(number, of.losses()));
      team.written(3);
      turn();
    }
  }
  // What the leader was told of, in the order in which it was.
  [[nodiscard]] std::vector<std::pair<uint64_t, uint64_t>> told() const {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const session::Message& message : said) {
      const auto* elsewhere = std::get_if<session::Elsewhere>(&message);
      if (elsewhere == nullptr) continue;
      for (const session::Want::Range& range : elsewhere->ranges) ranges.emplace_back(range.first, range.count);
    }
    return ranges;
  }

  std::vector<session::Message> said;  // to the leader
  Outbox leader{[this](const session::Message& message) { said.push_back(message); }};
  Team team{TeamLimits{.shared_file_bytes = piece},
            TeamParts{jobs.jobs, session_root, known, leader, session, handler, side.entropy}};
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

using Told = std::vector<std::pair<uint64_t, uint64_t>>;

}  // namespace

TEST_CASE("team__pieces_come_while_much_is_under_way_to_a_member__it_hears_of_them_in_one_range_later") {
  Rig rig;
  rig.come(0, 4);
  CHECK(rig.said.empty());
  rig.leader.delivered();
  rig.turn();
  CHECK(rig.told() == Told{{0, 4}});
  rig.come(4, 1);
  CHECK(rig.told() == Told{{0, 4}, {4, 1}});
}

// Else it would take the piece that it is asked for as one that has come.
TEST_CASE("team__a_piece_that_a_member_was_not_told_of_is_wanted_again__it_hears_of_it_before") {
  Rig rig;
  rig.come(0, 2);
  CHECK_FALSE(rig.team.ask_again({3, 1}));
  CHECK(rig.told() == Told{{0, 2}});
}

TEST_CASE("team__a_file_ends_before_a_member_was_told_of_its_pieces__it_hears_of_none") {
  Rig rig;
  rig.come(0, 4);
  rig.team.ended({3, ErrorKind::file_io, 5});
  rig.known.files.erase(3);
  rig.leader.delivered();
  rig.turn();
  CHECK(rig.told().empty());
}

TEST_CASE("untold__ranges_that_touch__are_told_as_one") {
  Untold untold;
  for (const auto& [first, count] : Told{{4, 2}, {8, 1}, {0, 2}, {6, 2}, {1, 1}, {3, 1}}) untold.add(1, 7, {first, count});
  const auto told = untold.take(1);
  REQUIRE(told);
  CHECK(told->index == 7);
  REQUIRE(told->ranges.size() == 2);
  CHECK(told->ranges[0].first == 0);
  CHECK(told->ranges[0].count == 2);
  CHECK(told->ranges[1].first == 3);
  CHECK(told->ranges[1].count == 6);
  CHECK_FALSE(untold.take(1));
  CHECK(untold.members().empty());
}

TEST_CASE("untold__more_ranges_than_a_message_holds__are_told_in_several") {
  Untold untold;
  for (uint64_t i = 0; i <= session::want_ranges_max; ++i) untold.add(1, 7, {2 * i, 1});
  CHECK(untold.take(1)->ranges.size() == session::want_ranges_max);
  CHECK(untold.take(1)->ranges.size() == 1);
  CHECK_FALSE(untold.take(1));
}

TEST_CASE("untold__a_member_leaves_or_a_file_ends__nothing_is_left_of_them") {
  Untold untold;
  untold.add(1, 7, {0, 1});
  untold.add(2, 7, {0, 1});
  untold.add(2, 8, {3, 1});
  untold.leave(1);
  CHECK_FALSE(untold.take(1));
  untold.ended(7);
  CHECK(untold.take_all(2, 7).ranges.empty());
  CHECK(untold.take_all(2, 8).ranges.size() == 1);
  CHECK(untold.members().empty());
}

}  // namespace ccixfer::recv
