// What one file needs next, by what has come of it and what failed.
#include "app/recv/file_in_work.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

using test::hash_of;
using test::task_of;
using test::whole;

constexpr uint64_t piece = session::piece_bytes;

void write(FileInWork& file, uint64_t number) {
  FilePieces& pieces = file.pieces() != nullptr ? *file.pieces() : file.begin_pieces(nullptr);
  REQUIRE(pieces.arrive(number, hash_of(number)) == FilePieces::Arrived::wanted);
  REQUIRE(pieces.written(number, pieces.losses()));
}

TEST_CASE("file_in_work__all_pieces_and_the_end__is_committed_when_no_job_holds_it") {
  FileInWork file(task_of(1, 2 * piece));
  write(file, 0);
  file.set_end(whole(1));
  CHECK(file.next() == NextStep::none);
  write(file, 1);
  file.hold();
  CHECK(file.next() == NextStep::none);
  file.let_go();
  CHECK(file.next() == NextStep::commit);
  file.begin_commit();
  CHECK(file.is_held());
  CHECK_FALSE(file.takes_content());
  CHECK_FALSE(file.wants_sync());
  file.end_commit();
  CHECK(file.takes_content());
  CHECK(file.wants_sync());
  FileInWork endless(task_of(2, piece));
  write(endless, 0);
  CHECK(endless.next() == NextStep::none);  // the source has not said yet that it is all right
}

TEST_CASE("file_in_work__empty_file__needs_nothing_but_its_end") {
  FileInWork file(task_of(1, 0));
  CHECK(file.next() == NextStep::none);
  file.set_end(whole(1));
  CHECK(file.next() == NextStep::commit);
}

TEST_CASE("file_in_work__length_that_comes_with_the_end__is_at_least_what_was_sent") {
  FileInWork file(task_of(1, size_unknown));
  CHECK(file.size_bytes() == size_unknown);
  write(file, 0);
  write(file, 1);
  session::FileEnd end = whole(1);
  end.size_bytes = piece;
  file.set_end(end);
  CHECK(file.size_bytes() == piece);
  CHECK(file.next() == NextStep::discard);
  REQUIRE(file.failure());
  CHECK(file.failure()->kind == ErrorKind::vanished);
  end.size_bytes = piece + 1;
  FileInWork longer(task_of(1, size_unknown));
  write(longer, 0);
  write(longer, 1);
  longer.set_end(end);
  CHECK(longer.next() == NextStep::commit);
}

TEST_CASE("file_in_work__digest_of_the_end_or_of_the_entry__must_be_that_of_the_pieces") {
  const Hash128 right = session::file_digest({hash_of(0)});
  for (const bool of_end : {true, false}) {
    for (const bool is_right : {true, false}) {
      FileTask task = *task_of(1, 5);
      session::FileEnd end = whole(1);
      (of_end ? end.has_digest : task.has_digest) = true;
      (of_end ? end.digest : task.digest) = is_right ? right : hash_of(3);
      FileInWork file(std::make_shared<const FileTask>(task));
      write(file, 0);
      file.set_end(end);
      INFO(of_end << is_right);
      CHECK(file.next() == (is_right ? NextStep::commit : NextStep::discard));
      CHECK(file.failure().has_value() != is_right);
      if (!is_right) CHECK(file.failure()->kind == ErrorKind::integrity);
    }
  }
}

TEST_CASE("file_in_work__failure__what_is_staged_is_discarded_kept_or_not_there") {
  FileInWork empty(task_of(1, piece));
  CHECK(empty.fail({ErrorKind::vanished, 0, true, "first"}));
  CHECK_FALSE(empty.fail({ErrorKind::file_io, 0, true, "second"}));
  CHECK(empty.failure()->reason == "first");
  CHECK(empty.next() == NextStep::end);
  CHECK_FALSE(empty.takes_content());
  FileInWork worthless(task_of(1, 2 * piece));
  write(worthless, 0);
  worthless.hold();
  CHECK(worthless.fail({ErrorKind::vanished, 0, true, ""}));
  CHECK(worthless.next() == NextStep::none);
  worthless.let_go();
  CHECK(worthless.next() == NextStep::discard);
  CHECK_FALSE(worthless.wants_sync());
  FileInWork kept(task_of(1, 2 * piece));
  write(kept, 0);
  CHECK(kept.fail({ErrorKind::partial, 0, false, ""}));
  CHECK(kept.next() == NextStep::sync);
  CHECK(kept.wants_sync());
  kept.pieces()->synced(kept.pieces()->take_unsynced());
  CHECK(kept.next() == NextStep::end);
}

TEST_CASE("file_in_work__pack__gives_the_content_once_and_again_when_it_was_dropped") {
  FileInWork file(task_of(1, 5));
  CHECK(file.begin_pack());
  CHECK_FALSE(file.begin_pack());
  CHECK_FALSE(file.takes_content());
  file.set_end(whole(1));
  CHECK(file.next() == NextStep::none);
  file.drop_pack();
  CHECK(file.takes_content());
  CHECK(file.begin_pack());
  file.begin_commit();
  file.end_commit();
  CHECK(file.takes_content());
  FileInWork in_pieces(task_of(2, 5));
  write(in_pieces, 0);
  CHECK_FALSE(in_pieces.begin_pack());
  FileInWork failed(task_of(3, 5));
  CHECK(failed.fail({}));
  CHECK_FALSE(failed.begin_pack());
}

TEST_CASE("file_in_work__failures_of_the_disk__one_is_made_good_by_asking_again") {
  FileInWork file(task_of(1, 5));
  CHECK(file.may_come_again());
  CHECK_FALSE(file.may_come_again());
}

}  // namespace
}  // namespace ccixfer::recv
