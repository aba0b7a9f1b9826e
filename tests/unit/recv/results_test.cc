// The counts of a session, and what the user is told of each file.
#include "app/recv/results.h"

#include <catch2/catch.hpp>

#include "app/session/receiver_words.h"
#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

using session::Verdict;
using test::task_of;

Decision decision_of(Verdict verdict, const std::string& path = "a", uint64_t size_bytes = 10) {
  Decision decision;
  decision.verdict = verdict;
  decision.path = path;
  decision.size_bytes = size_bytes;
  decision.version = 5;
  return decision;
}

struct Rig {
  test::Notes notes;
  std::shared_ptr<session::TransferRecord> record = std::make_shared<session::TransferRecord>();
  Results results{record, notes};
  [[nodiscard]] const session::Tally& tally() const { return results.tally(); }
};

TEST_CASE("results__file_that_arrives__counts_once_with_its_bytes_and_is_told") {
  Rig rig;
  const FileTaskRef task = task_of(1, 10);
  FileShare share = rig.results.wanted(*task, 0);
  CHECK(rig.tally().bytes_total == 10);
  rig.results.durable(share, 4);
  rig.results.durable(share, 6);
  CHECK(rig.results.durable_so_far().bytes == 10);
  CHECK(rig.results.durable_so_far().files == 0);
  rig.results.delivered(*task, 10);
  CHECK(rig.tally().files == 1);
  CHECK(rig.tally().bytes == 10);
  CHECK(rig.notes.told == std::vector<std::string>{"file1: ok, 10, "});
}

TEST_CASE("results__itemized__a_file_when_it_is_delivered_and_all_else_at_its_verdict") {
  Rig rig;
  Results results(rig.record, rig.notes, session::option_itemize | session::option_times);
  Decision made = decision_of(Verdict::done, "d");
  made.type = session::EntryType::directory;
  made.items = session::item_made | session::item_new;
  results.decided(made);
  auto task = std::make_shared<FileTask>(*task_of(1, 10));
  task->items = session::item_sent | session::item_time;
  static_cast<void>(results.wanted(*task, 0));
  CHECK(rig.notes.items == std::vector<std::string>{"cd+++++++++ d/"});
  results.delivered(*task, 10);
  CHECK(rig.notes.items.back() == ">f..t...... file1");
  Decision same = decision_of(Verdict::unchanged, "same");
  same.items = session::item_mode;
  results.decided(same);
  CHECK(rig.notes.items.back() == ".f...p..... same");
  Decision nothing = decision_of(Verdict::unchanged, "nothing");
  results.decided(nothing);
  CHECK(rig.notes.items.size() == 3);
  rig.results.decided(made);  // a push: the source tells
  CHECK(rig.notes.items.size() == 3);
}

TEST_CASE("results__file_that_fails__takes_its_bytes_out_of_every_count") {
  Rig rig;
  const FileTaskRef task = task_of(1, 10);
  FileShare share = rig.results.wanted(*task, 0);
  rig.results.durable(share, 4);
  const FileTaskRef other = task_of(2, 3);
  FileShare kept = rig.results.wanted(*other, 0);
  rig.results.durable(kept, 3);
  rig.results.failed(*task, share, {ErrorKind::vanished, 0, true, "it vanished"});
  CHECK(rig.tally().files_vanished == 1);
  CHECK(rig.tally().files_failed == 0);
  CHECK(rig.tally().bytes == 3);
  CHECK(rig.tally().bytes_total == 3);
  CHECK(rig.results.durable_so_far().bytes == 3);
  rig.results.failed(*other, kept, {ErrorKind::partial, 0, false, "unreadable"});
  CHECK(rig.tally().files_failed == 1);
  CHECK(rig.notes.told.at(0) == "file1: failed, 10, it vanished");
  CHECK(rig.notes.told.at(1) == "file2: failed, 3, unreadable");
}

TEST_CASE("results__what_the_source_cannot_list__is_told_once_in_a_transfer") {
  Rig rig;
  rig.results.unlisted("dir", "no permission");
  REQUIRE(rig.notes.told.size() == 1);
  Results later(rig.record, rig.notes);
  later.unlisted("dir", "no permission");
  later.unlisted("other", "no permission");
  CHECK(rig.notes.told.size() == 2);
  CHECK(rig.notes.failed_again == std::vector<std::string>{"dir"});
}

// The source sends the end of a path that is too long for a message: it may be the name of another file.
TEST_CASE("results__what_the_source_cannot_list_has_a_long_path__is_a_warning_and_no_name") {
  Rig rig;
  const std::string cut(session::unlisted_path_bytes_max, 'x');
  rig.results.unlisted(cut, "no permission");
  rig.results.unlisted(cut.substr(1), "no permission");
  CHECK(rig.notes.told == std::vector<std::string>{cut.substr(1) + ": failed, 0, no permission"});
  CHECK(rig.notes.failures == std::vector<std::string>{"..." + cut + ": no permission"});
  CHECK(rig.notes.unnamed == 1);
  Results later(rig.record, rig.notes);
  later.unlisted(cut, "no permission");
  CHECK(rig.notes.failures.size() == 1);
  CHECK(rig.notes.unnamed == 2);
}

TEST_CASE("results__pieces_of_an_earlier_session__count_for_the_transfer_alone") {
  Rig rig;
  const FileTaskRef task = task_of(1, 10);
  Results earlier(rig.record, rig.notes);
  CHECK(earlier.wanted(*task, 0).counted_bytes == 10);
  FileShare share = rig.results.wanted(*task, 7);
  CHECK(share.counted_bytes == 10);
  CHECK(share.before_bytes == 7);
  CHECK(rig.tally().bytes == 7);
  CHECK(rig.results.durable_so_far().bytes == 0);
  rig.results.failed(*task, share, {ErrorKind::partial, 0, false, ""});
  CHECK(rig.tally().bytes == 0);
  CHECK(rig.tally().bytes_total == 0);
}

TEST_CASE("results__length_that_was_not_known__counts_when_it_is") {
  Rig rig;
  const FileTaskRef task = task_of(1, size_unknown);
  FileShare share = rig.results.wanted(*task, 0);
  CHECK(rig.tally().bytes_total == 0);
  rig.results.durable(share, 9);
  rig.results.grown(9);
  rig.results.delivered(*task, 9);
  CHECK(rig.tally().bytes == 9);
  CHECK(rig.tally().bytes_total == 9);
}

TEST_CASE("results__unchanged_file__is_delivered_if_an_earlier_session_wanted_it") {
  Rig rig;
  rig.results.decided(decision_of(Verdict::unchanged));
  CHECK(rig.tally().files_unchanged == 1);
  CHECK(rig.tally().bytes_total == 0);
  Decision mine = decision_of(Verdict::unchanged, "file1");
  mine.attributes_refused = true;
  CHECK(Results(rig.record, rig.notes).wanted(*task_of(1, 10), 0).counted_bytes == 10);
  rig.results.decided(mine);
  CHECK(rig.results.came_before(mine));
  CHECK_FALSE(rig.results.came_before(decision_of(Verdict::unchanged)));
  mine.verdict = Verdict::failed;
  CHECK_FALSE(rig.results.came_before(mine));
  CHECK(rig.tally().files == 1);
  CHECK(rig.tally().files_unchanged == 1);
  CHECK(rig.tally().bytes == 10);
  CHECK(rig.tally().bytes_total == 10);
  CHECK(rig.tally().attributes_refused == 1);
  CHECK(rig.notes.told == std::vector<std::string>{"a: unchanged, 10, ", "file1: ok, 10, "});
}

TEST_CASE("results__what_was_told_before__is_counted_and_not_told_again") {
  Rig rig;
  Decision failed = decision_of(Verdict::failed);
  failed.error_number = 13;
  rig.results.decided(failed);
  rig.results.decided(failed);
  CHECK(rig.tally().files_failed == 2);
  CHECK(rig.notes.told.size() == 1);
  CHECK(rig.notes.files["a"] == "failed");
}

TEST_CASE("results__dry_run__tells_what_would_happen_and_counts_what_would_be_moved") {
  Rig rig;
  Decision directory = decision_of(Verdict::make, "d", 0);
  directory.type = session::EntryType::directory;
  rig.results.decided(directory);
  CHECK(rig.tally().files_unchanged == 0);
  rig.results.decided(decision_of(Verdict::change, "c"));
  CHECK(rig.tally().files_unchanged == 1);
  rig.results.decided(decision_of(Verdict::send, "s", 30));
  CHECK(rig.tally().bytes_total == 30);
  CHECK(rig.tally().bytes == 0);
  CHECK(rig.notes.files["d"] == "would-make");
  CHECK(rig.notes.files["c"] == "would-change");
  CHECK(rig.notes.files["s"] == "would-send");
}

TEST_CASE("results__deletions_of_later_sessions__count_with_the_earlier_ones") {
  Rig rig;
  DeleteStep step;
  step.deleted = {{"old", false}, {"gone", true}};
  rig.results.deleted(step);
  CHECK(rig.tally().deleted == 2);
  for (const Deleted& one : step.deleted) CHECK(rig.notes.files[one.is_directory ? one.path + "/" : one.path] == "deleted");
  Results later(rig.record, rig.notes);
  CHECK(later.deleted_before() == 2);
  later.deleted({});
  CHECK(later.tally().deleted == 2);
  step.deleted = {{"another", false}};
  later.deleted(step, "x/y");  // named as the files that are delivered are
  CHECK(rig.notes.files["x/y/another"] == "deleted");
  CHECK(later.tally().deleted == 3);
}

TEST_CASE("results__dry_run_that_would_delete__each_session_counts_it_and_it_is_told_once") {
  Rig rig;
  const uint32_t options = session::option_dry_run | session::option_itemize;
  DeleteStep step;
  step.deleted = {{"old", false}, {"gone", true}};
  Results first(rig.record, rig.notes, options);
  first.deleted(step);
  Results second(rig.record, rig.notes, options);
  CHECK(second.deleted_before() == 0);  // nothing has gone: --max-delete begins anew
  step.deleted.push_back({"found now", false});
  second.deleted(step);
  CHECK(first.tally().deleted == 2);
  CHECK(second.tally().deleted == 3);
  CHECK(rig.notes.files["old"] == "would-delete");
  CHECK(rig.notes.files["gone/"] == "would-delete");
  CHECK(rig.notes.told.size() == 3);
  CHECK(rig.notes.items == std::vector<std::string>{"*deleting   old", "*deleting   gone/", "*deleting   found now"});
}

TEST_CASE("results__a_device_that_is_left_out__is_told_once_and_no_failure") {
  Rig rig;
  Decision device = decision_of(Verdict::left_out, "d/dev", 0);
  device.type = session::EntryType::device;
  rig.results.decided(device);
  rig.results.decided(device);
  CHECK(rig.tally().failed() == 0);
  const std::string words(session::words_of_left_out_device);
  CHECK(rig.notes.warnings == std::vector<std::string>{"d/dev: " + words});
  CHECK(rig.notes.told == std::vector<std::string>{"d/dev: skipped, 0, " + words});
}

TEST_CASE("results__attributes_that_were_refused__count_of_what_is_there_and_of_what_is_placed_at_once") {
  Rig rig;
  for (const Verdict verdict : {Verdict::unchanged, Verdict::done}) {
    Decision decision = decision_of(verdict, verdict == Verdict::done ? "pipe" : "file");
    rig.results.decided(decision);
    decision.attributes_refused = true;
    rig.results.decided(decision);
  }
  CHECK(rig.tally().attributes_refused == 2);
  CHECK(rig.results.summary().files_failed == 2);
}

TEST_CASE("results__lost_set_id_bits__count_as_not_as_asked_and_are_said_once") {
  Rig rig;
  CHECK(rig.results.failures("/root").empty());
  std::vector<Decision> decisions(3);
  decisions[0].setid_refused = decisions[2].setid_refused = true;
  rig.results.answered(7, decisions);
  CHECK(rig.tally().entries_answered == 10);
  CHECK(rig.tally().failed() == 2);
  CHECK(rig.results.summary().files_failed == 2);
  CHECK(rig.results.summary().setid_refused == 2);
  CHECK(rig.results.failures("/root") == std::vector<std::string>{session::words_of_no_setid(2)});
}

TEST_CASE("results__summary__counts_what_is_not_as_asked_but_not_what_only_the_source_knows") {
  Rig rig;
  rig.results.not_listed(100, 200);
  rig.results.attributes_refused();
  rig.results.attributes_failed();
  rig.results.failed(*task_of(1, 0), {}, {ErrorKind::vanished, 0, true, ""});
  rig.results.delivered(*task_of(2, 0), 0);
  rig.results.decided(decision_of(Verdict::unchanged));
  FileShare share;
  rig.results.durable(share, 8);
  const session::Summary summary = rig.results.summary();
  CHECK(summary.files_ok == 1);
  CHECK(summary.files_unchanged == 1);
  CHECK(summary.files_failed == 3);
  CHECK(summary.bytes == 8);
  CHECK(rig.tally().failed() == 102);
  CHECK(rig.tally().vanished() == 201);
  CHECK_FALSE(rig.tally().over);
  rig.results.over();
  CHECK(rig.tally().over);
}

}  // namespace
}  // namespace ccixfer::recv
