// How far ahead pieces are told, and which of them are copied at once.
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>

#include "app/recv/opened_root.h"
#include "app/recv/piece_comparer.h"
#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {

using namespace test;

namespace {

// The comparer alone, with an older file that has what the test says.
struct Alone {
  JobRig rig;
  FakeSession session;
  FakeFiles files;
  OpenedRoot root{rig.files, -1, "/root"};
  KnownDirectories directories{rig.files, -1, {}, root.held_directories};
  std::vector<session::Compare> told;
  Outbox outbox{[this](const session::Message& message) { told.push_back(std::get<session::Compare>(message)); }};
  std::vector<uint64_t> copied;
  std::function<OlderFile::Taken(uint64_t piece)> has = [](uint64_t number) { return OlderFile::Taken{hash_of(number), 0}; };
  PieceComparer comparer{rig.jobs,
                         [this](OlderFile&, const std::shared_ptr<StagedFile>&, bool copies, const FileTask&, uint64_t number) {
                           if (copies) copied.push_back(number);
                           return has(number);
                         },
                         files, outbox, session};

  void add(uint64_t index, uint64_t pieces) {
    Decision decision;
    decision.task = files.add(index, pieces * session::piece_bytes).task_ref();
    decision.older = std::make_shared<OlderFile>(root, directories, "f", pieces * session::piece_bytes);
    decision.wants = {{0, pieces}};
    comparer.add(decision);
  }
  void turn() {
    for (size_t told_before = ~size_t{0}; told_before != told.size();) {
      told_before = told.size();
      comparer.turn();
      rig.pool.reap();
    }
  }
  void differs(uint64_t index, uint64_t number) {
    REQUIRE(files.find(index)->pieces()->arrive(number, {9, number}) == FilePieces::Arrived::wanted);
  }
};

}  // namespace

TEST_CASE("piece_comparer__the_source_does_not_answer__no_more_than_so_many_are_told") {
  Alone alone;
  alone.add(0, compared_ahead_max + 10);
  alone.add(1, 5);
  alone.turn();
  CHECK(alone.told.size() == compared_ahead_max);
  alone.comparer.on_same({0, {{0, 3}}}, 2);
  alone.turn();
  CHECK(alone.told.size() == compared_ahead_max + 3);
  alone.comparer.on_same({0, {{3, compared_ahead_max}}}, 2);
  alone.turn();
  CHECK(alone.told.size() == compared_ahead_max + 15);
  CHECK(alone.told.back().index == 1);
  CHECK(alone.session.rejections.empty());
}

TEST_CASE("piece_comparer__many_differ_in_a_row__the_next_are_copied_only_when_they_are_the_same") {
  Alone alone;
  alone.add(0, compared_ahead_max + 2);
  alone.turn();
  CHECK(alone.copied.size() == compared_ahead_max);
  for (uint64_t number = 0; number < differing_in_a_row_max; ++number) alone.differs(0, number);
  alone.turn();
  CHECK(alone.told.size() == compared_ahead_max + 2);
  CHECK(alone.copied.size() == compared_ahead_max);  // these two were only hashed
  const FilePieces& pieces = *alone.files.find(0)->pieces();
  const uint64_t changed = compared_ahead_max + 1;
  alone.comparer.on_same({0, {{compared_ahead_max, 2}}}, 1);
  CHECK(pieces.table().state(changed) == PieceState::writing);
  alone.has = [&](uint64_t number) { return OlderFile::Taken{number == changed ? Hash128{1, 1} : hash_of(number), 0}; };
  alone.rig.pool.reap();
  CHECK(alone.copied.size() == compared_ahead_max + 2);
  CHECK(pieces.table().state(compared_ahead_max) == PieceState::written);
  CHECK(pieces.table().state(changed) == PieceState::absent);  // the older file has changed meanwhile
  CHECK(alone.session.pieces == std::vector<std::pair<uint64_t, uint64_t>>{{0, changed}});
}

TEST_CASE("piece_comparer__the_disk_is_full__the_session_ends") {
  Alone alone;
  alone.add(0, 2);
  alone.has = [](uint64_t) { return OlderFile::Taken{std::nullopt, ENOSPC}; };
  alone.turn();
  REQUIRE_FALSE(alone.session.errors.empty());
  CHECK(alone.session.errors[0].kind == ErrorKind::no_space);
  CHECK(alone.told.empty());
}

TEST_CASE("piece_comparer__a_file_ends_while_it_is_looked_at__nothing_more_is_told_of_it") {
  Alone alone;
  alone.add(0, 2);
  alone.comparer.turn();
  alone.files.find(0)->fail({ErrorKind::vanished, 0, true, "changed"});
  alone.turn();
  CHECK(alone.told.empty());
  alone.files.files.erase(0);
  alone.turn();
}

}  // namespace ccixfer::recv
