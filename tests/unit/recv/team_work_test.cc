// Who of a team sends which file and which piece.
#include "app/recv/team_work.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace {
using namespace ccixfer;
using namespace ccixfer::recv;

const auto anybody = [](TeamMember) { return true; };
constexpr uint64_t mb = 1'000'000;

// Hands out until nothing is due, as the team does in a turn.
std::map<TeamMember, std::vector<uint64_t>> files_of(TeamWork& work, Instant now = {},
                                                     const std::function<bool(TeamMember)>& may_take = anybody) {
  std::map<TeamMember, std::vector<uint64_t>> all;
  for (auto portions = work.hand_out(now, may_take); !portions.empty(); portions = work.hand_out(now, may_take)) {
    for (const TeamWork::Portion& portion : portions) {
      all[portion.member].insert(all[portion.member].end(), portion.files.begin(), portion.files.end());
    }
  }
  return all;
}

std::map<TeamMember, std::vector<uint64_t>> pieces_of(TeamWork& work, uint64_t index) {
  std::map<TeamMember, std::vector<uint64_t>> all;
  for (auto portions = work.hand_out({}, anybody); !portions.empty(); portions = work.hand_out({}, anybody)) {
    for (const TeamWork::Portion& portion : portions) {
      for (const auto& pieces : portion.pieces) {
        CHECK(pieces.index == index);
        for (uint64_t i = 0; i < pieces.range.count; ++i) all[portion.member].push_back(pieces.range.first + i);
      }
    }
  }
  return all;
}

std::vector<TeamWork::Portion> portions_of(TeamWork& work, const std::function<bool(TeamMember)>& may_take) {
  std::vector<TeamWork::Portion> all;
  for (auto portions = work.hand_out({}, may_take); !portions.empty(); portions = work.hand_out({}, may_take)) {
    all.insert(all.end(), portions.begin(), portions.end());
  }
  return all;
}

size_t count(const std::map<TeamMember, std::vector<uint64_t>>& all) {
  return std::accumulate(all.begin(), all.end(), size_t{0}, [](size_t sum, const auto& one) { return sum + one.second.size(); });
}

TEST_CASE("each file is with one member, and all members get some") {
  TeamWork work;
  work.join(1);
  work.join(2);
  for (uint64_t i = 0; i < 3000; ++i) work.add(i, 1000, true);
  const auto all = files_of(work);
  REQUIRE(all.size() == 3);
  std::set<uint64_t> given;
  for (const auto& [member, files] : all) {
    CHECK(files.size() > 500);
    for (const uint64_t index : files) {
      CHECK(given.insert(index).second);
      CHECK(work.owner(index) == member);
    }
  }
  CHECK(given.size() == 3000);
}

TEST_CASE("no member holds more than its window, and what has ended makes room") {
  TeamWork work;
  for (uint64_t i = 0; i < 2 * team_window_files_min; ++i) work.add(i, 0, true);
  CHECK(count(files_of(work)) == team_window_files_min);
  CHECK(files_of(work).empty());
  for (uint64_t i = 0; i < 100; ++i) work.ended(i);
  CHECK(count(files_of(work)) == 100);

  TeamWork large;
  for (uint64_t i = 0; i < 100; ++i) large.add(i, 10 * mb, true);
  const size_t first = count(files_of(large));
  CHECK(first >= team_window_bytes_min / (10 * mb));
  CHECK(first <= team_window_bytes_min / (10 * mb) + 2);
}

TEST_CASE("a file that is longer than the window goes to one member all the same") {
  TeamWork work;
  work.add(7, 10 * team_window_bytes_min, true);
  CHECK(count(files_of(work)) == 1);
}

TEST_CASE("a member that gets much done gets a larger window") {
  TeamWork work;
  work.join(1);
  Instant now{};
  uint64_t next = 0;
  const auto fill = [&] {
    while (next < 100'000) work.add(next++, 1000, true);
  };
  fill();
  std::map<TeamMember, std::vector<uint64_t>> with = files_of(work, now);
  // Member 1 gets all done at once, eight times a second; the leader gets nothing done.
  for (int i = 0; i < 9; ++i) {
    for (const uint64_t index : with[1]) work.ended(index);
    now += std::chrono::milliseconds(125);
    with = files_of(work, now);
  }
  CHECK(with[1].size() > 2 * team_window_files_min);
  CHECK(with[1].size() <= team_window_files_max + portion_files_max);
  CHECK(with[team_leader].empty());
}

TEST_CASE("what was with a member that is lost goes to others, oldest first") {
  TeamWork work;
  work.join(1);
  for (uint64_t i = 0; i < 10; ++i) work.add(i, 1000, true);
  const auto all = files_of(work);
  REQUIRE(all.contains(1));
  work.leave(1);
  work.add(10, 1000, true);
  const auto again = files_of(work);
  std::vector<uint64_t> expected = all.at(1);
  expected.push_back(10);
  CHECK(again.at(team_leader) == expected);
  CHECK(!again.contains(1));
}

TEST_CASE("what has ended with a member that is lost is nobody's any more") {
  TeamWork work;
  work.join(1);
  work.add(0, 1000, true);
  const auto leader_is_busy = [](TeamMember member) { return member != team_leader; };
  REQUIRE(files_of(work, {}, leader_is_busy).at(1) == std::vector<uint64_t>{0});
  work.ended(0);
  work.leave(1);
  CHECK(files_of(work).empty());
  CHECK(work.empty());
}

TEST_CASE("a file that only the leader may send waits for it") {
  TeamWork work;
  work.join(1);
  work.add(0, 1000, false);
  const auto leader_is_busy = [](TeamMember member) { return member != team_leader; };
  CHECK(files_of(work, {}, leader_is_busy).empty());
  CHECK(files_of(work).at(team_leader) == std::vector<uint64_t>{0});
}

TEST_CASE("what a helper cannot send is the leader's, and only once") {
  TeamWork work;
  work.join(1);
  work.add(0, 1000, true);
  const auto leader_is_busy = [](TeamMember member) { return member != team_leader; };
  REQUIRE(files_of(work, {}, leader_is_busy).at(1) == std::vector<uint64_t>{0});
  CHECK(work.give_back(0));
  CHECK(!work.give_back(0));
  CHECK(files_of(work, {}, leader_is_busy).empty());
  CHECK(files_of(work).at(team_leader) == std::vector<uint64_t>{0});
  CHECK(!work.give_back(0));
}

TEST_CASE("a large file is shared in pieces, each with one member") {
  TeamWork work;
  work.join(1);
  const uint64_t size = 40 * session::piece_bytes - 1;
  work.add_shared(3, size, {{0, 40}});
  const auto first = pieces_of(work, 3);
  CHECK(first.size() == 2);
  CHECK(count(first) == 2 * team_window_bytes_min / session::piece_bytes);
  std::set<uint64_t> given;
  for (const auto& [member, pieces] : first) {
    for (const uint64_t piece : pieces) {
      CHECK(given.insert(piece).second);
      CHECK(work.owner(3, piece) == member);
    }
  }
  for (const uint64_t piece : given) work.piece_came(3, piece);
  const auto rest = pieces_of(work, 3);
  CHECK(count(rest) == 40 - given.size());
  for (const auto& [member, pieces] : rest) {
    for (const uint64_t piece : pieces) CHECK(!given.contains(piece));
  }
}

TEST_CASE("only the pieces that lack are shared out") {
  TeamWork work;
  work.add_shared(3, 100 * session::piece_bytes, {{2, 1}, {50, 2}});
  const auto all = pieces_of(work, 3);
  CHECK(all.at(team_leader) == std::vector<uint64_t>{2, 50, 51});
}

TEST_CASE("pieces of a lost member go to others; those that came do not") {
  TeamWork work;
  work.join(1);
  work.add_shared(3, 16 * session::piece_bytes, {{0, 16}});
  const auto all = pieces_of(work, 3);
  const std::vector<uint64_t> lost = all.at(1);
  REQUIRE(lost.size() >= 2);
  work.piece_came(3, lost.front());
  for (const uint64_t piece : all.at(team_leader)) work.piece_came(3, piece);
  work.leave(1);
  auto again = pieces_of(work, 3)[team_leader];
  std::sort(again.begin(), again.end());
  CHECK(again == std::vector<uint64_t>(lost.begin() + 1, lost.end()));
}

TEST_CASE("what was on its way from a lost member and comes all the same is given to nobody") {
  TeamWork work;
  work.join(1);
  work.add_shared(3, 16 * session::piece_bytes, {{0, 16}});
  const std::vector<uint64_t> lost = pieces_of(work, 3).at(1);
  REQUIRE(lost.size() >= 2);
  work.leave(1);
  CHECK(work.pieces_returned(3) == lost);
  CHECK(work.waits(3, lost.front()));
  CHECK(work.drop(3, lost.front(), 1).size() == 1);
  CHECK(work.drop(3, lost.front(), 1).empty());
  CHECK_FALSE(work.waits(3, lost.front()));
  for (uint64_t piece = 0; piece < 16; ++piece) work.piece_came(3, piece);
  auto again = pieces_of(work, 3)[team_leader];
  std::sort(again.begin(), again.end());
  CHECK(again == std::vector<uint64_t>(lost.begin() + 1, lost.end()));
  CHECK(work.pieces_returned(3).empty());
}

TEST_CASE("holes of a shared file are given to nobody") {
  TeamWork work;
  work.add_shared(3, 16 * session::piece_bytes, {{0, 4}, {6, 10}});
  const auto dropped = work.drop(3, 2, 9);  // 2 to 10; 4 and 5 are here already
  REQUIRE(dropped.size() == 2);
  CHECK((dropped[0].first == 2 && dropped[0].count == 2));
  CHECK((dropped[1].first == 6 && dropped[1].count == 5));
  CHECK(pieces_of(work, 3).at(team_leader) == std::vector<uint64_t>{0, 1, 11, 12, 13, 14, 15});
}

TEST_CASE("a slow member has little at once, and a file that waits is known to") {
  TeamWork work;
  for (uint64_t i = 0; i < 100; ++i) work.add(i, 2 * mb, true);
  CHECK(work.has_waiting());
  CHECK(count(files_of(work)) > 20);
  CHECK(work.has_any(team_leader, [](uint64_t index) { return index == 0; }));
  CHECK_FALSE(work.has_any(team_leader, [](uint64_t index) { return index == 99; }));  // it waits
  CHECK_FALSE(work.has_any(team_leader + 1, [](uint64_t) { return true; }));
  CHECK(work.waits(99));
  CHECK_FALSE(work.waits(0));
  TeamWork slow;
  for (uint64_t i = 0; i < 100; ++i) slow.add(i, 2 * mb, true);
  const size_t at_first = count(files_of(slow));
  for (unsigned second = 1; second < 10; ++second) static_cast<void>(files_of(slow, Instant{} + second * team_rate_interval));
  for (uint64_t i = 0; i < at_first; ++i) slow.ended(i);
  CHECK(count(files_of(slow, Instant{} + 9 * team_rate_interval)) * 2 * mb <= team_window_bytes_min / 4);
}

TEST_CASE("a member that cannot read a shared file gets no more of it") {
  TeamWork work;
  work.join(1);
  work.add_shared(3, 16 * session::piece_bytes, {{0, 16}});
  const auto all = pieces_of(work, 3);
  work.exclude(3, 1);
  for (const uint64_t piece : all.at(team_leader)) work.piece_came(3, piece);
  const auto again = pieces_of(work, 3);
  CHECK(!again.contains(1));
  CHECK(again.at(team_leader).size() == all.at(1).size());
}

// Each of the files has one piece, and with a member of its own.
constexpr uint64_t many_files = 40;

TEST_CASE("a helper has pieces of few files at once, and the leader of the first ones that are not finished") {
  TeamWork work;
  work.join(1);
  const auto leader_is_busy = [](TeamMember member) { return member != team_leader; };
  for (uint64_t i = 0; i < many_files; ++i) work.add_shared(i, session::piece_bytes + 1, {{0, 1}});
  std::set<uint64_t> with_helper, with_leader;
  for (const auto& portion : portions_of(work, leader_is_busy)) {
    for (const auto& pieces : portion.pieces) with_helper.insert(pieces.index);
  }
  CHECK(with_helper == std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(with_helper.size() == shared_files_max);
  CHECK(portions_of(work, anybody).empty());  // the first files are unfinished, and nothing of them is left
  work.piece_came(2, 0);
  work.piece_came(3, 0);
  CHECK(work.take_released(2) == std::vector<TeamMember>{1});
  CHECK(work.take_released(2).empty());
  CHECK(work.take_released(4).empty());
  // The helper has one file less, and the first eight that are not finished end with the tenth.
  std::map<TeamMember, size_t> more;
  std::set<uint64_t> which;
  for (const auto& portion : portions_of(work, anybody)) {
    for (const auto& pieces : portion.pieces) {
      ++more[portion.member];
      which.insert(pieces.index);
    }
  }
  CHECK(which == std::set<uint64_t>{8, 9});
  CHECK((more[team_leader] == 1 && more[1] == 1));
}

TEST_CASE("who is released from a shared file gets more of it when another member is lost") {
  TeamWork work;
  work.join(1);
  work.join(2);
  const auto leader_is_busy = [](TeamMember member) { return member != team_leader; };
  work.add_shared(3, 2 * session::piece_bytes, {{0, 2}});
  static_cast<void>(work.hand_out({}, leader_is_busy));
  static_cast<void>(work.hand_out({}, leader_is_busy));
  const TeamMember first = *work.owner(3, 0), second = *work.owner(3, 1);
  if (first == second) return;  // both in one portion
  CHECK(work.take_released(3).empty());
  work.piece_came(3, 0);
  CHECK(work.take_released(3) == std::vector<TeamMember>{first});
  work.leave(second);
  CHECK(work.take_released(3).empty());
  static_cast<void>(work.hand_out({}, leader_is_busy));
  CHECK(work.owner(3, 1) == first);
  work.piece_came(3, 1);
  CHECK(work.take_released(3) == std::vector<TeamMember>{first});
  work.ended(3);
}

}  // namespace
