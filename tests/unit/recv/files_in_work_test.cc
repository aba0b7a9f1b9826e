// The files of a session from verdict to result: pieces, failures, links and holes.
#include "app/recv/files_in_work.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

using test::hash_of;
using test::task_of;
using test::whole;

constexpr uint64_t piece = session::piece_bytes;

struct Rig final : FileSteps {
  test::FakeSession session;
  test::Notes notes;
  Results results{nullptr, notes};
  std::vector<CommitItem> commits;
  std::vector<std::pair<uint64_t, uint64_t>> syncs;  // file, bytes
  std::vector<uint64_t> discards;
  std::vector<std::string> removed;
  std::vector<session::FileResult> ends;
  test::FaultyFiles disk;
  OpenedRoot root{disk, -1, ""};  // nothing is opened below it
  LinkedNames linked;
  std::vector<session::Holes> holes;
  std::vector<uint64_t> wanted;  // although it was to become a further name
  FilesInWork files{session, *this, results, linked,
                    [this](const FileTask& task, bool resumed) { return std::make_shared<StagedFile>(root, task, resumed); }};

  void commit(CommitItem item) override { commits.push_back(std::move(item)); }
  void sync_soon(uint64_t index, uint64_t bytes) override { syncs.emplace_back(index, bytes); }
  void discard(const FileTaskRef& task, const std::shared_ptr<StagedFile>&) override { discards.push_back(task->index); }
  void wanted_after_all(const FileTask& task) override { wanted.push_back(task.index); }
  void make_holes(const FileTaskRef&, const std::shared_ptr<StagedFile>&, const session::Holes& told) override {
    holes.push_back(told);
  }
  void remove_staged(std::string name) override { removed.push_back(std::move(name)); }
  void ended(const FileTask& task, const session::FileResult& result) override {
    CHECK(task.index == result.index);
    CHECK(files.find(result.index) == nullptr);
    ends.push_back(result);
  }

  FileInWork& want(uint64_t index, uint64_t size_bytes) {
    Decision decision;
    decision.verdict = session::Verdict::send;
    decision.task = task_of(index, size_bytes);
    files.add(decision);
    return *files.find(index);
  }
  void write(FileInWork& file, uint64_t number) {
    FilePieces& pieces = files.pieces_of(file);
    REQUIRE(pieces.arrive(number, hash_of(number)) == FilePieces::Arrived::wanted);
    REQUIRE(pieces.written(number, pieces.losses()));
  }
  CommitItem take_commit(CommitOutcome outcome, int error_number) {
    REQUIRE(commits.size() == 1);
    CommitItem item = std::move(commits[0]);
    commits.clear();
    item.outcome = outcome;
    item.error_number = error_number;
    return item;
  }
  // A file of a pack on its way to its name.
  void stage(FileInWork& file) {
    REQUIRE(file.begin_pack());
    CommitItem item;
    item.task = file.task_ref();
    item.staged = "1.tmp";
    item.size_bytes = file.task().size_bytes;
    files.on_staged(file, std::move(item));
  }
};

TEST_CASE("files_in_work__file_in_pieces__is_committed_when_it_is_whole_and_ends_well") {
  Rig rig;
  FileInWork& file = rig.want(4, piece + 1);
  rig.write(file, 0);
  rig.files.on_written(file, piece);
  CHECK(rig.syncs == std::vector<std::pair<uint64_t, uint64_t>>{{4, piece}});
  file.pieces()->synced(file.pieces()->take_unsynced());
  rig.files.on_durable(file, piece);
  rig.write(file, 1);
  rig.files.on_job_ended(4);
  CHECK(rig.commits.empty());
  CHECK(rig.files.on_end(whole(4)));
  CommitItem item = rig.take_commit(CommitOutcome::ok, 0);
  CHECK(item.size_bytes == piece + 1);
  CHECK(item.staged == staged_name(file.task().key, 5));
  CHECK(rig.files.has_any(4, 5));
  rig.files.on_committed(item);
  REQUIRE(rig.ends.size() == 1);
  CHECK(rig.ends[0].kind == ErrorKind::ok);
  CHECK(rig.files.empty());
  CHECK(rig.results.tally().files == 1);
  CHECK(rig.results.tally().bytes == piece + 1);  // what was durable before the commit counts once
}

TEST_CASE("files_in_work__pieces_that_are_here__are_taken_over_and_only_the_rest_is_counted") {
  Rig rig;
  Decision decision;
  decision.verdict = session::Verdict::pieces;
  decision.task = task_of(4, 2 * piece);
  decision.present = {{1, hash_of(1)}};
  rig.files.add(decision);
  CHECK(rig.files.find(4)->pieces()->table().state(1) == PieceState::durable);
  CHECK(rig.results.tally().bytes_total == piece);
}

TEST_CASE("files_in_work__end_of_a_file__fails_it_as_the_source_says_unless_it_is_complete") {
  using session::SourceOutcome;
  const std::vector<std::pair<SourceOutcome, ErrorKind>> kinds{{SourceOutcome::changed, ErrorKind::vanished},
                                                               {SourceOutcome::vanished, ErrorKind::vanished},
                                                               {SourceOutcome::unreadable, ErrorKind::partial}};
  for (const auto& [outcome, kind] : kinds) {
    Rig rig;
    rig.want(4, 10);
    session::FileEnd end = whole(4);
    end.outcome = outcome;
    CHECK(rig.files.on_end(end));
    REQUIRE(rig.ends.size() == 1);
    CHECK(rig.ends[0].kind == kind);
    CHECK_FALSE(rig.files.on_end(end));  // it is not there any more
    rig.stage(rig.want(4, 10));
    CHECK(rig.files.on_end(end));
    CHECK(rig.ends.size() == 1);
  }
  Rig rig;
  rig.want(5, size_unknown);
  session::FileEnd endless = whole(5);
  endless.size_bytes = size_unknown;
  CHECK(rig.files.on_end(endless));
  REQUIRE(rig.session.errors.size() == 1);
  CHECK(rig.session.errors[0].kind == ErrorKind::protocol);
}

TEST_CASE("files_in_work__failure_with_pieces__what_is_staged_goes_or_becomes_durable_first") {
  Rig rig;
  FileInWork& changed = rig.want(1, 2 * piece);
  rig.write(changed, 0);
  rig.files.on_failed(changed, {ErrorKind::vanished, 0, true, "it changed"});
  CHECK(rig.discards == std::vector<uint64_t>{1});
  CHECK(rig.ends.empty());
  rig.files.discarded(1);
  REQUIRE(rig.ends.size() == 1);
  CHECK(rig.ends[0].kind == ErrorKind::vanished);
  FileInWork& unreadable = rig.want(2, 2 * piece);
  rig.write(unreadable, 0);
  rig.files.on_failed(unreadable, {ErrorKind::partial, 0, false, "unreadable"});
  CHECK(rig.syncs == std::vector<std::pair<uint64_t, uint64_t>>{{2, 0}});
  unreadable.pieces()->synced(unreadable.pieces()->take_unsynced());
  rig.files.on_job_ended(2);
  REQUIRE(rig.ends.size() == 2);
  CHECK(rig.ends[1].kind == ErrorKind::partial);
  rig.files.on_job_ended(2);  // it has ended before
  CHECK(rig.ends.size() == 2);
}

TEST_CASE("files_in_work__disk_fails__content_is_asked_for_once_more_and_then_it_ends") {
  Rig rig;
  FileInWork& packed = rig.want(1, 10);
  rig.files.on_io_failed(packed, ENXIO, {});
  CHECK(rig.session.pieces == std::vector<std::pair<uint64_t, uint64_t>>{{1, session::Resend::whole}});
  CHECK(rig.session.warnings.size() == 1);
  rig.files.on_io_failed(packed, ENXIO, {});
  REQUIRE(rig.ends.size() == 1);
  CHECK(rig.ends[0].error_number == ENXIO);
  CHECK(rig.session.errors.empty());
  FileInWork& large = rig.want(2, 2 * piece);
  rig.files.pieces_of(large);
  rig.session.pieces.clear();
  rig.files.on_io_failed(large, EIO, {1, 0});
  CHECK(rig.session.pieces == std::vector<std::pair<uint64_t, uint64_t>>{{2, 1}, {2, 0}});
  rig.files.on_io_failed(large, EIO, {1});
  REQUIRE(rig.session.errors.size() == 1);  // the next file would fare no better
  CHECK(rig.session.errors[0].kind == ErrorKind::file_io);
  CHECK(rig.ends.size() == 1);
}

TEST_CASE("files_in_work__commit_that_fails__the_outcome_says_whether_the_content_is_lost") {
  Rig refused;
  refused.stage(refused.want(1, 10));
  refused.files.on_committed(refused.take_commit(CommitOutcome::failed, EPERM));
  REQUIRE(refused.ends.size() == 1);
  CHECK(refused.ends[0].error_number == EPERM);
  Rig lost;
  lost.stage(lost.want(1, 10));
  lost.files.on_committed(lost.take_commit(CommitOutcome::sync_failed, EIO));
  CHECK(lost.ends.empty());
  CHECK(lost.session.pieces.size() == 1);
  CHECK(lost.files.find(1)->takes_content());
  Rig broken;
  broken.stage(broken.want(1, 10));
  broken.files.on_committed(broken.take_commit(CommitOutcome::failed, EIO));
  CHECK(broken.session.errors.size() == 1);
  Rig full;
  FileInWork& file = full.want(1, piece);
  full.write(file, 0);
  CHECK(full.files.on_end(whole(1)));
  full.files.on_committed(full.take_commit(CommitOutcome::failed, ENOSPC));
  REQUIRE(full.session.errors.size() == 1);
  CHECK(full.session.errors[0].kind == ErrorKind::no_space);
  CHECK(full.syncs == std::vector<std::pair<uint64_t, uint64_t>>{{1, 0}});  // its pieces are kept for the next run
}

TEST_CASE("files_in_work__commit_whose_sync_failed_for_want_of_room__no_later_sync_makes_its_pieces_durable") {
  const int error = GENERATE(ENOSPC, EDQUOT, EIO);
  Rig rig;
  FileInWork& file = rig.want(1, piece);
  rig.write(file, 0);
  CHECK(rig.files.on_end(whole(1)));
  rig.files.on_committed(rig.take_commit(CommitOutcome::sync_failed, error));
  CHECK(rig.syncs.empty());
  CHECK_FALSE(file.pieces()->has_unsynced());
}

TEST_CASE("files_in_work__a_file_that_another_receiver_writes_to__fails_and_what_is_staged_stays") {
  Rig rig;
  FileInWork& file = rig.want(1, piece);
  rig.write(file, 0);
  CHECK(rig.files.on_end(whole(1)));
  rig.files.on_committed(rig.take_commit(CommitOutcome::held, EBUSY));
  CHECK(rig.session.errors.empty());
  CHECK(rig.syncs == std::vector<std::pair<uint64_t, uint64_t>>{{1, 0}});  // first its pieces become durable
  CHECK(rig.ends.empty());
}

TEST_CASE("files_in_work__commit_whose_sync_failed__lost_pieces_are_asked_for_again") {
  Rig rig;
  FileInWork& file = rig.want(1, 2 * piece);
  rig.write(file, 0);
  file.pieces()->synced(file.pieces()->take_unsynced());
  rig.write(file, 1);
  CHECK(rig.files.on_end(whole(1)));
  rig.files.on_committed(rig.take_commit(CommitOutcome::sync_failed, EIO));
  CHECK(rig.session.pieces == std::vector<std::pair<uint64_t, uint64_t>>{{1, 1}});
  FileInWork& durable = rig.want(2, piece);
  rig.write(durable, 0);
  durable.pieces()->synced(durable.pieces()->take_unsynced());
  CHECK(rig.files.on_end(whole(2)));
  rig.files.on_committed(rig.take_commit(CommitOutcome::sync_failed, EDOM));
  REQUIRE(rig.ends.size() == 1);  // nothing of it was lost, so that coming again is of no use
  CHECK(rig.ends[0].error_number == EDOM);
}

TEST_CASE("files_in_work__session_that_failed__staged_files_are_kept_or_removed") {
  Rig rig;
  FileInWork& large = rig.want(1, piece);
  rig.write(large, 0);
  CHECK(rig.files.on_end(whole(1)));
  const CommitItem in_pieces = rig.take_commit(CommitOutcome::ok, 0);
  rig.stage(rig.want(2, 10));
  const CommitItem packed = rig.take_commit(CommitOutcome::ok, 0);
  FileInWork& other = rig.want(3, 10);
  rig.session.fail({ErrorKind::network, ""});
  rig.files.on_commit_cancelled(in_pieces);
  rig.files.on_commit_cancelled(packed);
  CHECK(rig.syncs == std::vector<std::pair<uint64_t, uint64_t>>{{1, 0}});
  CHECK(rig.removed == std::vector<std::string>{"1.tmp"});
  rig.files.on_failed(other, {ErrorKind::vanished, 0, true, ""});
  rig.files.on_io_failed(other, EIO, {});
  CHECK(rig.ends.empty());
  CHECK(rig.session.warnings.empty());
  CHECK_FALSE(large.is_held());
}

TEST_CASE("files_in_work__room_and_ranges__are_by_count_and_by_number") {
  Rig rig;
  rig.want(5, 1);
  CHECK_FALSE(rig.files.has_any(0, 5));
  CHECK(rig.files.has_any(5, 6));
  CHECK(rig.files.has_any(0, 100));
  CHECK_FALSE(rig.files.has_any(6, 100));
  CHECK(rig.files.has_room(2 * session::entries_outstanding_max - 1));
  CHECK_FALSE(rig.files.has_room(2 * session::entries_outstanding_max));
}

FileTaskRef name_of(uint64_t index, uint64_t size_bytes) {
  FileTask task = *task_of(index, size_bytes);
  task.first_name = "file1";
  task.path_of_first = "file1";
  return std::make_shared<const FileTask>(task);
}

void add(Rig& rig, uint64_t index, session::Verdict verdict) {
  Decision decision;
  decision.verdict = verdict;
  decision.task = name_of(index, 3);
  rig.files.add(decision);
}

TEST_CASE("files_in_work__further_names__are_linked_when_the_first_one_is_placed") {
  Rig rig;
  add(rig, 1, session::Verdict::send);
  rig.linked.begin("file1", "file1");
  add(rig, 2, session::Verdict::link);
  CHECK(rig.commits.empty());
  CHECK_FALSE(rig.files.find(2)->takes_content());
  rig.stage(*rig.files.find(1));
  rig.files.on_committed(rig.take_commit(CommitOutcome::ok, 0));
  const CommitItem link = rig.take_commit(CommitOutcome::ok, 0);
  CHECK((link.task->index == 2 && link.link_to == "file1" && link.staged.empty()));
  rig.files.on_committed(link);
  CHECK(rig.ends.size() == 2);
  CHECK(rig.results.tally().files == 2);
  CHECK(rig.results.tally().bytes == 3);  // of the first name alone
  add(rig, 3, session::Verdict::link);    // it came after that
  CHECK(rig.take_commit(CommitOutcome::ok, 0).link_to == "file1");
}

TEST_CASE("files_in_work__the_first_name_fails__the_next_one_gets_the_content") {
  Rig rig;
  add(rig, 1, session::Verdict::send);
  rig.linked.begin("file1", "file1");
  add(rig, 2, session::Verdict::link);
  add(rig, 3, session::Verdict::link);
  rig.files.on_failed(*rig.files.find(1), {ErrorKind::file_io, EACCES, true, "no"});
  CHECK(rig.session.pieces == std::vector<std::pair<uint64_t, uint64_t>>{{2, session::Resend::whole}});
  CHECK(rig.files.find(2)->takes_content());
  CHECK(rig.linked.find("file1").path == "file2");
  rig.stage(*rig.files.find(2));
  rig.files.on_committed(rig.take_commit(CommitOutcome::ok, 0));
  CHECK(rig.take_commit(CommitOutcome::ok, 0).link_to == "file2");
}

TEST_CASE("files_in_work__a_link_is_refused__the_name_gets_content_of_its_own_and_it_is_told") {
  Rig rig;
  add(rig, 2, session::Verdict::link);
  rig.files.on_committed(rig.take_commit(CommitOutcome::failed, EPERM));
  CHECK(rig.results.tally().attributes_refused == 1);
  CHECK(rig.session.pieces == std::vector<std::pair<uint64_t, uint64_t>>{{2, session::Resend::whole}});
  CHECK_FALSE(rig.files.find(2)->leads());
  CHECK(rig.wanted == std::vector<uint64_t>{2});  // and is counted as such
}

TEST_CASE("files_in_work__holes__count_as_durable_pieces_and_must_be_of_the_file") {
  Rig rig;
  FileInWork& file = rig.want(4, 3 * piece);
  CHECK_FALSE(rig.files.on_holes({4, {{1, 3}}}));
  CHECK_FALSE(rig.files.on_holes({4, {{3, 1}}}));
  CHECK(rig.files.on_holes({9, {{0, 1}}}));  // ended
  REQUIRE(rig.files.on_holes({4, {{0, 2}}}));
  REQUIRE(rig.holes.size() == 1);
  rig.files.holes_made(rig.holes[0], 0);
  CHECK(rig.results.tally().bytes == 2 * piece);
  rig.write(file, 2);
  CHECK(rig.files.on_end(whole(4)));
  CHECK(rig.take_commit(CommitOutcome::ok, 0).size_bytes == 3 * piece);
}

}  // namespace
}  // namespace ccixfer::recv
