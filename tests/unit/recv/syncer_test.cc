// When written pieces are synced and recorded, and what a failed sync loses.
#include "app/recv/syncer.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t piece = session::piece_bytes;
constexpr Instant began{1h};

struct Rig {
  test::JobRig rig;
  test::FakeSession session;
  test::FakeFiles files;
  std::vector<std::vector<uint64_t>> batches;  // the files in each
  std::vector<bool> closes;                    // whether the last batch may close each file
  std::optional<Error> failure;
  std::map<uint64_t, int> errors;  // by file
  Syncer syncer{rig.jobs,
                [this](std::vector<SyncFile>& batch) {
                  batches.emplace_back();
                  closes.clear();
                  for (SyncFile& file : batch) {
                    batches.back().push_back(file.task->index);
                    closes.push_back(file.let_go);
                    if (errors.contains(file.task->index)) file.error_number = errors[file.task->index];
                  }
                  return failure;
                },
                files, session};
  FileInWork& write(uint64_t index, uint64_t number) {
    FileInWork* file = files.find(index);
    if (file == nullptr) file = &files.add(index, 10 * piece);
    FilePieces& pieces = files.pieces_of(*file);
    REQUIRE(pieces.arrive(number, test::hash_of(number)) == FilePieces::Arrived::wanted);
    REQUIRE(pieces.written(number, pieces.losses()));
    syncer.add(index, piece);
    return *file;
  }
};

TEST_CASE("syncer__written_pieces__are_synced_an_interval_after_the_turn_that_saw_the_first") {
  Rig rig;
  rig.syncer.turn(began, false);
  CHECK(rig.syncer.next_deadline() == never);
  FileInWork& file = rig.write(1, 0);
  rig.syncer.turn(began, false);
  CHECK(rig.syncer.next_deadline() == began + sync_interval);
  rig.write(1, 1);
  rig.write(2, 0).hold();  // a job writes to it
  rig.write(1, 2);
  rig.syncer.turn(began + sync_interval - 1ns, false);
  CHECK(rig.rig.jobs.running() == 0);
  rig.syncer.turn(began + sync_interval, false);
  CHECK(rig.rig.jobs.running() == 1);
  CHECK(rig.syncer.empty());
  CHECK(file.is_held());
  rig.rig.pool.reap();
  CHECK(rig.batches == std::vector<std::vector<uint64_t>>{{1, 2}});
  CHECK(rig.closes == std::vector<bool>{true, false});
  CHECK(rig.files.notes == std::vector<std::string>{"durable 1: " + std::to_string(3 * piece), "job ended 1",
                                                    "durable 2: " + std::to_string(piece), "job ended 2"});
  CHECK(file.pieces()->table().state(2) == PieceState::durable);
  CHECK_FALSE(file.is_held());
  CHECK(rig.session.progress == 1);
}

TEST_CASE("syncer__many_bytes_or_the_end__are_synced_at_once_but_one_batch_at_a_time") {
  Rig rig;
  rig.write(1, 0);
  rig.syncer.add(1, sync_bytes_max - piece - 1);
  rig.syncer.turn(began, false);
  CHECK(rig.rig.jobs.running() == 0);
  rig.syncer.add(1, 1);
  rig.syncer.turn(began, false);
  CHECK(rig.rig.jobs.running() == 1);
  rig.write(1, 1);
  rig.syncer.turn(began, true);
  CHECK(rig.rig.jobs.running() == 1);
  CHECK(rig.syncer.next_deadline() == never);
  rig.rig.pool.reap();
  CHECK(rig.syncer.next_deadline() == began + sync_interval);
  rig.syncer.turn(began, true);
  rig.rig.pool.reap();
  CHECK(rig.batches.size() == 2);
}

TEST_CASE("syncer__files_that_want_none__are_left_out") {
  Rig rig;
  rig.write(1, 0).begin_commit();
  rig.write(2, 0).fail({ErrorKind::vanished, 0, true, ""});
  rig.syncer.add(3, 0);  // it has ended
  rig.files.add(4, 10);
  rig.syncer.add(4, 0);
  rig.syncer.turn(began, true);
  CHECK(rig.rig.jobs.running() == 0);
  CHECK(rig.syncer.empty());
  CHECK(rig.syncer.next_deadline() == never);
  rig.write(5, 0).fail({ErrorKind::partial, 0, false, ""});  // kept for the next run
  rig.syncer.turn(began, true);
  rig.rig.pool.reap();
  CHECK(rig.batches == std::vector<std::vector<uint64_t>>{{5}});
}

TEST_CASE("syncer__file_whose_sync_fails__loses_its_pieces_alone") {
  Rig rig;
  FileInWork& bad = rig.write(1, 0);
  FileInWork& good = rig.write(2, 0);
  rig.errors[1] = EIO;
  rig.syncer.turn(began, true);
  rig.write(1, 1);  // while the sync runs
  rig.rig.pool.reap();
  CHECK(bad.pieces()->table().written() == 0);
  CHECK(good.pieces()->table().state(0) == PieceState::durable);
  CHECK(rig.files.notes.at(0) == "io failed 5 1: 2");
  CHECK(rig.session.errors.empty());
  Rig full;
  full.write(1, 0);
  full.errors[1] = ENOSPC;
  full.syncer.turn(began, true);
  full.rig.pool.reap();
  CHECK(full.session.errors.size() == 1);
  CHECK(full.files.notes == std::vector<std::string>{"job ended 1"});
}

TEST_CASE("syncer__ledger_that_fails__ends_the_session_and_nothing_counts_as_durable") {
  Rig rig;
  FileInWork& file = rig.write(1, 0);
  rig.failure = Error{ErrorKind::no_space, "full"};
  rig.syncer.turn(began, true);
  rig.rig.pool.reap();
  CHECK(rig.session.errors.size() == 1);
  CHECK(rig.session.progress == 0);
  CHECK(file.pieces()->table().state(0) == PieceState::written);
  CHECK(rig.files.notes == std::vector<std::string>{"job ended 1"});
}

TEST_CASE("syncer__file_of_unknown_length__is_durable_but_not_counted_yet") {
  Rig rig;
  rig.files.add(1, size_unknown);
  FileInWork& file = rig.write(1, 0);
  rig.syncer.turn(began, true);
  rig.rig.pool.reap();
  CHECK(file.pieces()->table().state(0) == PieceState::durable);
  CHECK(rig.files.notes == std::vector<std::string>{"job ended 1"});
}

}  // namespace
}  // namespace ccixfer::recv
