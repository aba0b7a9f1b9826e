// What a source counts and tells, over the sessions of one transfer.
#include "app/send/reports.h"

#include <catch2/catch.hpp>

#include "app/session/receiver_words.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using send::Entry;
using send::Reports;
using send::WalkRecord;

Entry entry_of(const std::string& path, uint64_t size_bytes) {
  Entry entry;
  entry.path = path;
  entry.listed.size_bytes = entry.counted_bytes = size_bytes;
  entry.listed.version = 7;
  return entry;
}

struct ReportBench {
  SeenByUser seen;
  std::shared_ptr<session::TransferRecord> record = std::make_shared<session::TransferRecord>();
  Reports reports{seen, record, {"first", "second"}};
};

TEST_CASE("reports__delivered_unchanged_and_failed__each_is_counted_and_told_once") {
  ReportBench bench;
  Entry whole = entry_of("whole", 10);
  const Entry same = entry_of("same", 20);
  Entry bad = entry_of("bad", 40);
  bench.reports.listed(70);
  bench.reports.wanted(whole);
  bench.reports.unchanged(same);
  bench.reports.wanted(bad);
  bench.reports.durable(10);
  bench.reports.delivered(whole);
  bench.reports.failed(bad, {2, ErrorKind::no_space, ENOSPC});
  const session::Tally& tally = bench.reports.tally();
  CHECK(tally.files == 1);
  CHECK(tally.files_unchanged == 1);
  CHECK(tally.files_failed == 1);
  CHECK(tally.bytes == 10);
  CHECK(tally.bytes_total == 10);
  CHECK(bench.seen.find("whole")->status == "ok");
  CHECK(bench.seen.find("same")->status == "unchanged");
  CHECK(bench.seen.find("bad")->status == "failed");
  CHECK(bench.seen.warnings.empty());  // a file that failed is told as a file, and once
}

TEST_CASE("reports__itemized_and_lost__the_later_session_tells_what_the_earlier_one_did") {
  ReportBench bench;
  Entry file = entry_of("f", 10);
  file.items = session::item_sent | session::item_new;
  bench.reports.listed(10);
  bench.reports.wanted(file);
  CHECK(bench.seen.items.empty());
  SeenByUser seen;
  Reports later(seen, bench.record, {"first"});
  later.listed(10);
  file.items = 0;  // it is there now
  later.unchanged(file);
  CHECK(seen.items == std::vector<std::string>{"<f+++++++++ f"});
  Entry directory = entry_of("", 0);
  directory.type = session::EntryType::directory;
  directory.items = session::item_time;
  later.done(directory);
  later.done(directory);  // a session that comes again finds it changed by its own files
  CHECK(seen.items.size() == 2);
  CHECK(seen.items[1] == ".d..T...... ./");
}

TEST_CASE("reports__later_session__what_an_earlier_one_brought_counts_and_is_not_told") {
  ReportBench bench;
  Entry file = entry_of("f", 10);
  bench.reports.listed(10);
  bench.reports.wanted(file);
  bench.reports.delivered(file);
  SeenByUser seen;
  Reports later(seen, bench.record, {"first"});
  later.listed(10);
  later.unchanged(file);
  CHECK(later.tally().files == 1);
  CHECK(later.tally().files_unchanged == 0);
  CHECK(later.tally().bytes == 10);
  CHECK(later.tally().bytes_total == 10);
  CHECK(seen.files.empty());
}

TEST_CASE("reports__another_process_brought_it__counts_as_delivered_by_the_transfer") {
  ReportBench bench;
  const Entry theirs = entry_of("theirs", 10);
  Entry ours = entry_of("ours", 20);
  bench.reports.listed(30);
  static_cast<void>(bench.record->want(bench.record->name("ours", 7), 20, 8));  // the rest was there before
  bench.reports.delivered_before(theirs);
  bench.reports.delivered_before(ours);
  const session::Tally& tally = bench.reports.tally();
  CHECK(tally.files == 2);
  CHECK(tally.files_unchanged == 0);
  CHECK(tally.bytes == 18);
  CHECK(tally.bytes_total == 18);
  CHECK(bench.seen.find("theirs")->status == "ok");
}

TEST_CASE("reports__some_of_a_file_is_there__only_what_the_transfer_moves_is_counted") {
  ReportBench bench;
  Entry file = entry_of("f", 100);
  bench.reports.listed(100);
  bench.reports.wanted_in_part(file, 60);
  CHECK(bench.reports.tally().bytes_total == 60);
  CHECK(bench.reports.tally().bytes == 0);
  SeenByUser seen;
  Reports later(seen, bench.record, {"first"});
  Entry again = entry_of("f", 100);
  later.listed(100);
  later.wanted_in_part(again, 20);
  CHECK(later.tally().bytes_total == 60);
  CHECK(later.tally().bytes == 40);  // the session before brought them
  later.failed(again, {0, ErrorKind::partial, 0});
  CHECK(later.tally().bytes_total == 0);
  CHECK(later.tally().bytes == 0);
}

TEST_CASE("reports__our_end_could_not_send__vanished_or_failed_by_our_reason") {
  ReportBench bench;
  for (const auto& [outcome, vanished] :
       {std::pair{session::SourceOutcome::changed, true}, std::pair{session::SourceOutcome::vanished, true},
        std::pair{session::SourceOutcome::unreadable, false}}) {
    ReportBench each;
    Entry file = entry_of("", 5);
    file.source = 1;
    file.phase = send::EntryPhase::refused;
    file.outcome = {outcome, EACCES};
    each.reports.failed(file, {0, ErrorKind::partial, 0});
    CHECK(each.reports.tally().files_vanished == (vanished ? 1 : 0));
    CHECK(each.reports.tally().files_failed == (vanished ? 0 : 1));
    CHECK(each.seen.warnings.empty());
    REQUIRE(each.seen.find("second") != nullptr);
  }
  Entry sent = entry_of("f", 5);
  bench.reports.failed(sent, {0, ErrorKind::vanished, 0});  // the destination saw that it changed
  CHECK(bench.reports.tally().files_vanished == 1);
}

TEST_CASE("reports__not_listed__all_but_warnings_count_and_the_first_are_named") {
  ReportBench bench;
  CHECK_FALSE(bench.reports.not_listed(WalkRecord::Kind::warning, "fifo", "left out"));
  CHECK(bench.seen.find("fifo")->status == "skipped");
  CHECK(bench.reports.not_listed(WalkRecord::Kind::vanished, "gone", "no such file"));
  CHECK(bench.seen.find("gone")->reason == "vanished");
  for (uint32_t i = 1; i < session::unlisted_named_max; ++i)
    CHECK(bench.reports.not_listed(WalkRecord::Kind::failed, "f" + std::to_string(i), "no permission"));
  CHECK_FALSE(bench.reports.not_listed(WalkRecord::Kind::failed, "more", "no permission"));
  CHECK(bench.reports.unlisted_vanished() == 1);
  CHECK(bench.reports.unlisted_failed() == session::unlisted_named_max);
  CHECK(bench.reports.tally().files_failed == session::unlisted_named_max);
}

TEST_CASE("reports__not_listed_by_a_later_session_either__is_counted_again_and_told_once") {
  ReportBench bench;
  CHECK_FALSE(bench.reports.not_listed(WalkRecord::Kind::warning, "fifo", "left out"));
  CHECK(bench.reports.not_listed(WalkRecord::Kind::failed, "dir", "no permission"));
  SeenByUser later;
  Reports reports{later, bench.record, {"first"}};
  CHECK_FALSE(reports.not_listed(WalkRecord::Kind::warning, "fifo", "left out"));
  CHECK(reports.not_listed(WalkRecord::Kind::failed, "dir", "no permission"));
  CHECK(reports.unlisted_failed() == 1);
  CHECK(reports.tally().files_failed == 1);
  CHECK(later.warnings.empty());
  CHECK(later.find("fifo") == nullptr);
  CHECK(later.find("dir") == nullptr);
  CHECK(later.failed_again == std::vector<std::string>{"dir"});
  CHECK(bench.seen.failed_again.empty());
  // What is left out of one source may be a file of another one.
  reports.delivered(entry_of("fifo", 5));
  CHECK(later.find("fifo")->status == "ok");
}

TEST_CASE("reports__summary_counts_more_failures__they_are_attributes_if_they_can_be") {
  ReportBench bench;
  CHECK(bench.reports.not_listed(WalkRecord::Kind::failed, "unlisted", "no permission"));  // not of the summary's
  CHECK_FALSE(bench.reports.summed_up({0, 0, 4, 0}, 3));
  CHECK_FALSE(bench.reports.tally().over);
  CHECK(bench.reports.summed_up({0, 0, 3, 0}, 3));
  CHECK(bench.reports.tally().over);
  CHECK(bench.reports.tally().files_failed == 4);
  CHECK(bench.seen.failures.size() == 1);
}

TEST_CASE("reports__summary_counts_lost_set_id_bits__they_have_words_of_their_own") {
  ReportBench bench;
  CHECK_FALSE(bench.reports.summed_up({0, 0, 5, 0, 4}, 3));
  CHECK(bench.reports.summed_up({0, 0, 3, 0, 2}, 3));
  CHECK(bench.reports.tally().files_failed == 3);
  REQUIRE(bench.seen.failures.size() == 2);
  CHECK(bench.seen.failures[0] == session::words_of_no_setid(2));
  CHECK(bench.seen.failures[0].find("`setid = true`") != std::string::npos);
  CHECK(bench.seen.failures[1].find("modes or times to 1 files") != std::string::npos);
  ReportBench alone;
  CHECK(alone.reports.summed_up({0, 0, 2, 0, 2}, 3));
  CHECK(alone.seen.failures == std::vector<std::string>{session::words_of_no_setid(2)});
}

TEST_CASE("reports__dry_run__told_what_would_be_done") {
  ReportBench bench;
  const Entry file = entry_of("f", 5);
  Entry directory = entry_of("d", 0);
  directory.type = session::EntryType::directory;
  bench.reports.listed(10);
  bench.reports.would_send(file);
  bench.reports.would_make(directory);
  bench.reports.would_change(entry_of("other", 5));
  CHECK(bench.seen.find("f")->status == "would-send");
  CHECK(bench.seen.find("d")->status == "would-make");
  CHECK(bench.seen.find("other")->status == "would-change");
  CHECK(bench.reports.tally().files_unchanged == 1);
  CHECK(bench.reports.tally().bytes_total == 5);
}

TEST_CASE("reports__dry_run_of_a_later_session__what_it_would_delete_is_told_once") {
  ReportBench bench;
  const uint32_t options = session::option_dry_run | session::option_itemize;
  const session::Deletions found{2, 0, 0, {{false, false, "old"}, {true, false, "gone"}}};
  Reports first(bench.seen, bench.record, {"first"}, options);
  first.deleted(found);
  Reports second(bench.seen, bench.record, {"first"}, options);
  second.deleted(found);
  CHECK(second.tally().deleted == 2);
  CHECK(bench.seen.files.size() == 2);
  CHECK(bench.seen.find("gone/")->status == "would-delete");
  CHECK(bench.seen.items == std::vector<std::string>{"*deleting   old", "*deleting   gone/"});
}

TEST_CASE("reports__what_was_deleted__is_told_by_name") {
  ReportBench bench;
  bench.reports.deleted({2, 0, 0, {{false, true, "o"}, {false, false, "ld"}, {true, false, "gone"}}});
  CHECK(bench.reports.tally().deleted == 2);
  CHECK(bench.seen.files.size() == 2);
  CHECK(bench.seen.find("old")->status == "deleted");
  CHECK(bench.seen.find("gone/")->status == "deleted");
  CHECK(bench.seen.items.empty());
}

}  // namespace
}  // namespace ccixfer::send_test
