// Pieces are written by jobs; pieces nobody wants, damage and failures.
#include "app/recv/piece_writer.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/recv/parts.h"
#include "tests/unit/session/whole_segment.h"

namespace ccixfer::recv {
namespace {

constexpr uint64_t piece = session::piece_bytes;

struct Rig {
  test::JobRig rig;
  test::FakeSession session;
  test::FakeFiles files;
  memory::Pool pool{session::segment_bytes_max, 2};
  Inbox inbox;
  Counters counters;
  PieceWritten outcome;
  std::vector<uint64_t> written;
  PieceWriter writer{rig.jobs,
                     [this](const std::shared_ptr<StagedFile>&, MutableBytes segment, const session::SegmentHeader& header) {
                       CHECK(session_test::peek(segment));
                       written.push_back(header.sequence);
                       return outcome;
                     },
                     inbox,
                     files,
                     session,
                     counters};
  void receive(uint64_t index, uint64_t number, uint64_t bytes, uint64_t version = 5) {
    session::SegmentHeader header;
    header.kind = session::SegmentKind::piece;
    header.index = index;
    header.sequence = number;
    header.file_version = version;
    test::Segment segment = test::segment_of(pool, header, std::vector<std::byte>(bytes));
    inbox.add(std::move(segment.arrival));
    writer.receive(inbox.take(), segment.header, 10);
  }
};

TEST_CASE("piece_writer__wanted_piece__is_written_by_a_job_that_holds_buffer_and_file") {
  Rig rig;
  FileInWork& file = rig.files.add(1, piece + 3);
  rig.receive(1, 1, 3);
  CHECK(rig.inbox.held() == 1);
  CHECK(file.is_held());
  rig.receive(1, 1, 3);  // again, while it is being written
  CHECK(rig.inbox.held() == 1);
  rig.rig.pool.reap();
  CHECK(rig.written == std::vector<uint64_t>{1});
  CHECK(rig.inbox.held() == 0);
  CHECK(rig.pool.free_count() == 2);
  CHECK_FALSE(file.is_held());
  CHECK(file.pieces()->table().state(1) == PieceState::written);
  CHECK(rig.files.notes == std::vector<std::string>{"written 1: 3", "job ended 1"});
}

TEST_CASE("piece_writer__piece_that_nobody_wants__the_buffer_returns_nonsense_is_rejected") {
  Rig rig;
  rig.files.add(1, piece + 3);
  rig.files.add(2, size_unknown);
  rig.receive(9, 0, 3);     // of a file that has ended
  rig.receive(1, 1, 3, 6);  // of another version
  CHECK(rig.session.rejections.empty());
  rig.receive(10, 0, 3);
  rig.receive(1, 2, 3);
  rig.receive(1, 1, 2);
  rig.receive(1, 0, 3);
  rig.receive(1, 0, 0);
  rig.receive(2, piece_count(file_bytes_max), 3);
  CHECK(rig.session.rejections.size() == 6);
  rig.files.pieces_of(*rig.files.find(2));
  rig.receive(2, pieces_ahead_max + 1, 3);
  CHECK(rig.session.rejections.size() == 7);
  rig.rig.pool.reap();
  CHECK(rig.written.empty());
  rig.receive(2, pieces_ahead_max, 3);
  CHECK(rig.session.rejections.size() == 7);
  rig.files.find(1)->fail({});
  rig.receive(1, 1, 3);
  CHECK(rig.inbox.held() == 1);
  rig.rig.pool.reap();
  CHECK(rig.written == std::vector<uint64_t>{pieces_ahead_max});
  CHECK(rig.inbox.held() == 0);
}

TEST_CASE("piece_writer__piece_with_another_hash_than_before__fails_its_file") {
  Rig rig;
  FileInWork& file = rig.files.add(1, 3);
  REQUIRE(rig.files.pieces_of(file).arrive(0, test::hash_of(1)) == FilePieces::Arrived::wanted);
  file.pieces()->not_written(0);
  rig.receive(1, 0, 3);
  CHECK(rig.files.notes == std::vector<std::string>{"failed: it changed while it was read 1: 0"});
  CHECK(rig.inbox.held() == 0);
}

TEST_CASE("piece_writer__damaged_or_failed_writing__the_piece_is_absent_and_it_is_told") {
  struct Case {
    PieceWritten outcome;
    uint64_t bad;
    size_t asked, errors, notes;
  };
  for (const Case& one : {Case{{true, 0}, 1, 1, 0, 1}, Case{{false, ENOSPC}, 0, 0, 1, 1}, Case{{false, EIO}, 0, 0, 0, 2}}) {
    Rig rig;
    FileInWork& file = rig.files.add(1, 3);
    rig.outcome = one.outcome;
    rig.receive(1, 0, 3);
    rig.rig.pool.reap();
    INFO(one.outcome.error_number);
    CHECK(file.pieces()->table().state(0) == PieceState::absent);
    CHECK(rig.counters.get(Counter::segments_bad) == one.bad);
    CHECK(rig.session.pieces.size() == one.asked);
    CHECK(rig.session.errors.size() == one.errors);
    CHECK(rig.files.notes.size() == one.notes);
    CHECK(rig.files.notes.back() == "job ended 1");
  }
}

TEST_CASE("piece_writer__sync_fails_while_a_piece_is_written__it_is_asked_for_again") {
  for (const bool has_failed : {false, true}) {
    Rig rig;
    FileInWork& file = rig.files.add(1, 3);
    rig.receive(1, 0, 3);
    CHECK(file.pieces()->lose_unsynced().empty());
    if (has_failed) file.fail({});
    rig.rig.pool.reap();
    CHECK(rig.session.pieces.size() == (has_failed ? 0 : 1));
    CHECK(rig.files.notes == std::vector<std::string>{"job ended 1"});
  }
}

TEST_CASE("piece_writer__session_that_failed_meanwhile__asks_for_nothing") {
  Rig rig;
  FileInWork& file = rig.files.add(1, 3);
  rig.outcome.is_damaged = true;
  rig.receive(1, 0, 3);
  rig.session.fail({ErrorKind::network, ""});
  rig.rig.pool.reap();
  CHECK(rig.session.pieces.empty());
  CHECK(rig.counters.get(Counter::segments_bad) == 0);
  CHECK(file.pieces()->table().state(0) == PieceState::absent);
}

}  // namespace
}  // namespace ccixfer::recv
