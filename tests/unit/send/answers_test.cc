// What the destination says of entries, and what of it makes no sense.
#include "app/send/answers.h"

#include <catch2/catch.hpp>

#include "app/send/read_stage.h"
#include "app/session/limits.h"
#include "app/session/receiver_words.h"
#include "tests/unit/send/fake_receiver.h"
#include "tests/unit/send/stage_fakes.h"

namespace ccixfer::send_test {
namespace {

using send::Answers;
using send::Entry;
using send::EntryPhase;
using session::EntryType;

class HeardWants final : public send::FileWants {
 public:
  explicit HeardWants(send::EntryTable& entries) : entries_(entries) {}
  std::vector<std::string> said;
  bool fits = true;
  Result<void> want_whole(Entry& entry) override {
    say("whole", entry);
    entries_.move(entry, EntryPhase::queued);
    return {};
  }
  void want_pieces(Entry& entry) override {
    say("pieces", entry);
    entries_.move(entry, EntryPhase::queued);
  }
  void want_compared(Entry& entry, bool leads) override {
    say(leads ? "shared" : "compared", entry);
    static_cast<void>(send::large_file_of(entry));
    entries_.move(entry, EntryPhase::queued);
  }
  Result<void> compare(Entry& entry, const session::Compare& compare) override {
    say("compare " + std::to_string(compare.first), entry);
    if (!fits) return fail(ErrorKind::protocol, "pieces");
    return {};
  }
  bool is_elsewhere(Entry& entry, uint64_t first_piece, uint64_t count) override {
    say("elsewhere " + std::to_string(first_piece) + "+" + std::to_string(count), entry);
    return fits;
  }
  bool want_again(Entry& entry, uint64_t first_piece, uint64_t count) override {
    say("again " + std::to_string(first_piece) + "+" + std::to_string(count), entry);
    return fits;
  }
  void entry_ends(Entry& entry) override { say("ends", entry); }

 private:
  void say(const std::string& what, const Entry& entry) { said.push_back(what + " " + std::to_string(entry.index)); }
  send::EntryTable& entries_;
};

using Said = std::vector<std::string>;

struct AnswerBench {
  explicit AnswerBench(bool dry_run = false) : answers(entries, wants, reports, dry_run) {}
  Entry& add(EntryType type, uint64_t size_bytes = 0) {
    Entry& entry = entries.at(entries.add(sent++, 0));
    entry.type = type;
    entry.path = "e" + std::to_string(entry.index);
    entry.listed.size_bytes = entry.counted_bytes = size_bytes;
    reports.listed(size_bytes);
    return entry;
  }
  Result<void> answer(uint64_t first, std::vector<session::Answer::Run> runs) {
    return answers.on_answer({first, std::move(runs)}, sent);
  }

  uint64_t sent = 0;
  SeenByUser seen;
  send::EntryTable entries;
  HeardWants wants{entries};
  send::Reports reports{seen, nullptr, {"source"}};
  Answers answers;
};

TEST_CASE("answers__verdicts__wanted_files_are_asked_for_and_the_others_end") {
  AnswerBench bench;
  bench.add(EntryType::directory);
  bench.add(EntryType::file, 5);
  bench.add(EntryType::file, 7);
  bench.add(EntryType::file, 9);
  Entry& part = bench.add(EntryType::file, 9u << 20u);
  REQUIRE(bench.answer(0, {{1, Verdict::done}, {1, Verdict::unchanged}, {1, Verdict::send}, {1, Verdict::failed}}));
  CHECK(bench.answers.answered() == 4);
  REQUIRE(bench.answers.on_want({4, {{1, 2}}}, bench.sent));
  REQUIRE(bench.answer(4, {{1, Verdict::pieces}}));
  CHECK(bench.wants.said == Said{"ends 0", "ends 1", "whole 2", "ends 3", "pieces 4"});
  CHECK(bench.entries.used() == 2);
  CHECK(bench.reports.tally().files_unchanged == 1);
  CHECK(bench.reports.tally().files_failed == 1);
  CHECK(part.counted_bytes == 5u << 20u);  // a whole piece and the short last one
  CHECK(bench.reports.tally().entries_answered == 5);
}

TEST_CASE("answers__elsewhere__its_result_comes_without_anything_sent_from_here") {
  AnswerBench bench;
  bench.answers.set_leads();
  bench.add(EntryType::file, 5);
  bench.add(EntryType::file, 7);
  REQUIRE(bench.answer(0, {{2, Verdict::elsewhere}}));
  CHECK(bench.wants.said.empty());
  REQUIRE(bench.answers.on_durable(12, bench.answers.bytes_shared()));
  CHECK_FALSE(bench.answers.on_durable(13, bench.answers.bytes_shared()));
  REQUIRE(bench.answers.on_give({{{1, 1}}}, bench.sent));
  CHECK(bench.wants.said == Said{"whole 1"});
  REQUIRE(bench.answers.on_results({{{0, ErrorKind::ok, 0}}}, bench.sent));
  CHECK(bench.reports.tally().files == 1);
  REQUIRE(bench.answers.on_results({{{1, ErrorKind::ok, 0}}}, bench.sent));  // who had it before and was lost had sent all of it
  CHECK(bench.reports.tally().files == 2);
}

TEST_CASE("answers__give__what_makes_no_sense_ends_the_session") {
  AnswerBench bench;
  bench.answers.set_leads();
  bench.add(EntryType::file, 5);
  bench.add(EntryType::file, 5);
  REQUIRE(bench.answer(0, {{1, Verdict::elsewhere}, {1, Verdict::send}}));
  CHECK_FALSE(bench.answers.on_give({{{1, 1}}}, bench.sent));  // it was ours from the beginning
  CHECK_FALSE(bench.answers.on_give({{{1, 2}}}, bench.sent));  // only two were sent
  CHECK_FALSE(bench.answers.on_resend({0, 0, 0, 0}, bench.sent));
  REQUIRE(bench.answers.on_give({{{0, 1}}}, bench.sent));
  CHECK_FALSE(bench.answers.on_give({{{0, 1}}}, bench.sent));
}

TEST_CASE("answers__elsewhere__only_to_who_leads_a_team_and_only_of_files") {
  AnswerBench alone;
  alone.add(EntryType::file, 5);
  CHECK_FALSE(alone.answer(0, {{1, Verdict::elsewhere}}));
  AnswerBench leads;
  leads.answers.set_leads();
  leads.add(EntryType::directory);
  CHECK_FALSE(leads.answer(0, {{1, Verdict::elsewhere}}));
}

TEST_CASE("answers__of_a_helper__results_end_entries_and_failures_are_not_its_own_to_tell") {
  AnswerBench bench;
  bench.answers.set_helps();
  bench.add(EntryType::file, 5).was_sent = true;
  bench.add(EntryType::file, 7);
  bench.add(EntryType::file, 9);
  REQUIRE(bench.answers.on_results({{{0, ErrorKind::ok, 0}, {1, ErrorKind::file_io, 0}, {2, ErrorKind::ok, 0}}}, bench.sent));
  CHECK(bench.entries.used() == 0);
  CHECK(bench.reports.tally().files == 1);
  CHECK(bench.reports.tally().files_failed == 0);
  CHECK(bench.reports.tally().bytes_total == 5);
}

TEST_CASE("answers__an_answer_comes_twice__the_second_says_nothing") {
  AnswerBench bench;
  bench.add(EntryType::file, 5);
  REQUIRE(bench.answer(0, {{1, Verdict::send}}));
  REQUIRE(bench.answer(0, {{1, Verdict::unchanged}}));
  CHECK(bench.wants.said == Said{"whole 0"});
}

TEST_CASE("answers__dry_run__nothing_is_wanted") {
  AnswerBench bench(true);
  bench.add(EntryType::file, 5);
  bench.add(EntryType::directory);
  bench.add(EntryType::file, 5);
  REQUIRE(bench.answer(0, {{1, Verdict::send}, {1, Verdict::make}, {1, Verdict::change}}));
  CHECK(bench.wants.said == Said{"ends 0", "ends 1", "ends 2"});
  CHECK(bench.seen.files.size() == 3);
  bench.add(EntryType::file, 5);
  CHECK_FALSE(bench.answer(3, {{1, Verdict::make}}));
}

TEST_CASE("answers__itemized__each_is_told_when_it_is_done") {
  AnswerBench bench;
  bench.add(EntryType::directory);
  bench.add(EntryType::file, 5);
  bench.add(EntryType::symlink).target = "there";
  bench.add(EntryType::file, 5);
  const uint16_t made = session::item_made | session::item_new;
  REQUIRE(bench.answers.on_itemized({0, {{1, made}, {1, session::item_sent | session::item_size}, {1, made}}}, bench.sent));
  REQUIRE(bench.answer(0, {{1, Verdict::done}, {1, Verdict::send}, {1, Verdict::done}, {1, Verdict::unchanged}}));
  CHECK(bench.seen.items == Said{"cd+++++++++ e0/", "cL+++++++++ e2there"});
  bench.entries.find(1)->was_sent = true;
  REQUIRE(bench.answers.on_results({{{1, ErrorKind::ok, 0}}}, bench.sent));
  CHECK(bench.seen.items.back() == "<f.s....... e1");
  CHECK_FALSE(bench.answers.on_itemized({3, {{2, made}}}, bench.sent));  // only 4 entries were sent
  CHECK_FALSE(bench.answers.on_itemized({~uint64_t{0}, {{1, made}}}, bench.sent));
  REQUIRE(bench.answers.on_itemized({1, {{1, made}}}, bench.sent));  // it has ended
}

TEST_CASE("answers__nonsense__each_is_a_protocol_error") {
  const auto refused = [](const Result<void>& judged) {
    return !judged && judged.error().kind == ErrorKind::protocol && judged.error().message.starts_with("the receiver sent ");
  };
  AnswerBench bench;
  bench.add(EntryType::file, 5);
  bench.add(EntryType::directory);
  Answers& answers = bench.answers;
  CHECK(refused(bench.answer(1, {{1, Verdict::done}})));
  CHECK(refused(bench.answer(0, {{3, Verdict::done}})));
  CHECK(refused(bench.answer(0, {{1, Verdict::make}})));
  CHECK(refused(bench.answer(1, {{1, Verdict::send}})));
  CHECK(refused(answers.on_want({2, {}}, bench.sent)));
  CHECK(refused(answers.on_want({1, {}}, bench.sent)));
  CHECK(refused(answers.on_want({0, {{0, 2}}}, bench.sent)));
  CHECK(refused(answers.on_resend({2}, bench.sent)));
  CHECK(refused(answers.on_resend({1}, bench.sent)));
  CHECK(refused(answers.on_resend({0, 1}, bench.sent)));
  CHECK(refused(answers.on_results({{{2, ErrorKind::ok, 0}}}, bench.sent)));
  CHECK(refused(answers.on_results({{{0, ErrorKind::ok, 0}}}, bench.sent)));  // it was never sent
  CHECK(refused(answers.on_durable(6, 5)));
  CHECK(refused(answers.on_summary({}, bench.sent, 5)));
  bench.entries.move(*bench.entries.find(0), EntryPhase::queued);
  bench.wants.fits = false;
  CHECK(refused(answers.on_want({0, {{0, 1}}}, bench.sent)));
}

TEST_CASE("answers__damaged__pieces_and_files_are_wanted_again_unless_they_ended") {
  AnswerBench bench;
  bench.add(EntryType::file, 9u << 20u);
  REQUIRE(bench.answer(0, {{1, Verdict::send}}));
  REQUIRE(bench.answers.on_resend({0, 2}, bench.sent));
  REQUIRE(bench.answers.on_resend({0}, bench.sent));
  REQUIRE(bench.answers.want_again(0, 1, 1));
  REQUIRE(bench.answers.on_want({0, {{0, 2}}}, bench.sent));
  REQUIRE(bench.answers.on_results({{{0, ErrorKind::no_space, 0}}}, bench.sent));
  REQUIRE(bench.answers.on_resend({0, 2}, bench.sent));
  REQUIRE(bench.answers.want_whole_again(0));
  CHECK(bench.wants.said == Said{"whole 0", "again 2+1 0", "again 0+3 0", "again 1+1 0", "again 0+2 0", "ends 0"});
}

TEST_CASE("answers__results__delivered_files_and_failures_end_once") {
  AnswerBench bench;
  Entry& file = bench.add(EntryType::file, 5);
  REQUIRE(bench.answer(0, {{1, Verdict::send}}));
  bench.entries.move(file, EntryPhase::reading);
  bench.entries.move(file, EntryPhase::sent);
  REQUIRE(bench.answers.on_durable(5, 5));
  REQUIRE(bench.answers.on_results({{{0, ErrorKind::ok, 0}, {0, ErrorKind::ok, 0}}}, bench.sent));
  CHECK(bench.reports.tally().files == 1);
  CHECK(bench.reports.tally().bytes == 5);
  CHECK(bench.entries.used() == 0);
}

TEST_CASE("answers__what_the_receiver_keeps__ends_as_unchanged_and_says_nothing_of_its_content") {
  AnswerBench bench;
  bench.add(EntryType::file, 5);
  bench.add(EntryType::symlink);
  bench.add(EntryType::directory);
  REQUIRE(bench.answer(0, {{3, Verdict::kept}}));
  CHECK(bench.reports.tally().files_unchanged == 1);
  CHECK(bench.reports.tally().failed() == 0);
  CHECK(bench.entries.used() == 0);
}

TEST_CASE("answers__a_device_that_the_receiver_cannot_make__is_told_and_no_failure") {
  AnswerBench bench;
  bench.add(EntryType::device);
  bench.add(EntryType::special);
  REQUIRE(bench.answer(0, {{1, Verdict::left_out}}));
  const std::string words(session::words_of_left_out_device);
  CHECK(bench.seen.warnings == std::vector<std::string>{"e0: " + words});
  REQUIRE(bench.seen.find("e0") != nullptr);
  CHECK(bench.seen.find("e0")->status == "skipped");
  CHECK(bench.reports.tally().failed() == 0);
  CHECK(bench.entries.used() == 1);
  CHECK_FALSE(bench.answer(1, {{1, Verdict::left_out}}));  // whoever receives makes a pipe
}

TEST_CASE("answers__summary__ends_refused_files_and_what_has_no_data") {
  AnswerBench bench;
  Entry& file = bench.add(EntryType::file, 5);
  REQUIRE(bench.answer(0, {{1, Verdict::send}}));
  bench.entries.move(file, EntryPhase::reading);
  file.outcome = {session::SourceOutcome::unreadable, EACCES};
  bench.entries.move(file, EntryPhase::refused);
  session::Summary summary;
  summary.files_failed = 1;
  REQUIRE(bench.answers.on_summary(summary, bench.sent, 0));
  CHECK(bench.reports.tally().files_failed == 1);
  CHECK(bench.reports.tally().over);
  CHECK(bench.entries.used() == 0);
  summary.files_failed = 3;
  CHECK_FALSE(bench.answers.on_summary(summary, bench.sent, 0));
}

TEST_CASE("answers__a_file_to_compare__its_pieces_are_named_later") {
  AnswerBench bench;
  bench.add(EntryType::file, 9u << 20u);
  bench.add(EntryType::file, 9u << 20u);
  CHECK_FALSE(bench.answers.on_compare({0, 0, 1, {}}, bench.sent));  // no verdict yet
  REQUIRE(bench.answer(0, {{1, Verdict::compare}}));
  REQUIRE(bench.answers.on_compare({0, 1, 1, {{1, 2}}}, bench.sent));
  CHECK(bench.wants.said == Said{"compared 0", "compare 1 0"});
  bench.wants.fits = false;
  CHECK_FALSE(bench.answers.on_compare({0, 1, 1, {{1, 2}}}, bench.sent));
  CHECK_FALSE(bench.answers.on_compare({2, 1, 1, {}}, bench.sent));
  CHECK(bench.reports.tally().bytes_total == 2 * (9u << 20u));
  // What an earlier run left is not moved again.
  REQUIRE(bench.answers.on_want({1, {{1, 2}}}, bench.sent));
  REQUIRE(bench.answer(1, {{1, Verdict::compare}}));
  CHECK(bench.reports.tally().bytes_total == (9u << 20u) + (5u << 20u));
}

TEST_CASE("answers__pieces_wanted_of_a_file_that_is_not_sent_from_here__are_nonsense") {
  AnswerBench bench;
  bench.answers.set_leads();
  bench.add(EntryType::file, 9u << 20u);
  bench.add(EntryType::file, 9u << 20u).is_further_name = true;
  REQUIRE(bench.answer(0, {{1, Verdict::elsewhere}, {1, Verdict::link}}));
  for (const uint64_t index : {0u, 1u}) {
    const Result<void> judged = bench.answers.on_want({index, {{0, 1}}}, bench.sent);
    REQUIRE_FALSE(judged);
    CHECK(judged.error().kind == ErrorKind::protocol);
  }
  CHECK(bench.wants.said.empty());
  REQUIRE(bench.answers.on_resend({1}, bench.sent));  // its first name failed
  REQUIRE(bench.answers.on_want({1, {{0, 1}}}, bench.sent));
  CHECK(bench.wants.said == Said{"whole 1", "again 0+1 1"});
}

// Nobody counts them one by one.
TEST_CASE("answers__pieces_behind_the_end_of_a_shared_file__are_refused_at_once") {
  AnswerBench bench;
  bench.answers.set_leads();
  bench.add(EntryType::file, 9u << 20u);
  REQUIRE(bench.answer(0, {{1, Verdict::shared}}));
  for (const auto& [first, count] : {std::pair<uint64_t, uint64_t>{0, uint64_t{1} << 41u}, {1, 3}, {4, 1}, {~uint64_t{0}, 2}}) {
    const Result<void> compared = bench.answers.on_compare({0, first, count, {}}, bench.sent);
    const Result<void> elsewhere = bench.answers.on_elsewhere({0, {{first, count}}}, bench.sent);
    for (const Result<void>& judged : {compared, elsewhere}) {
      REQUIRE_FALSE(judged);
      CHECK(judged.error().kind == ErrorKind::protocol);
    }
  }
  CHECK(bench.wants.said == Said{"shared 0"});
  CHECK(bench.answers.on_compare({0, 1, 2, {}}, bench.sent));
  CHECK(bench.answers.on_elsewhere({0, {{0, 1}}}, bench.sent));
}

TEST_CASE("answers__a_file_to_compare_that_has_no_pieces__is_nonsense") {
  AnswerBench bench;
  bench.add(EntryType::file, 1000);
  CHECK_FALSE(bench.answer(0, {{1, Verdict::compare}}));
}

class HeardReceipt final : public receipt::Sink {
 public:
  Said paths;
  void on_entry(const receipt::Entry& entry) override { paths.push_back(entry.path); }
  void on_unlisted() override {}
};

// The stages that answers reach, with files on a disk.
struct DiskBench {
  explicit DiskBench(size_t bytes) {
    stage.dir.file("file", std::string(bytes, 'x'));
    entry = &stage.announced("file", 0);
    reports.listed(bytes);
  }
  // All of it is in segments, and has gone.
  void send() {
    REQUIRE(answers.on_answer({0, {{1, Verdict::send}}}, 1));
    while (entry->phase != EntryPhase::sent) {
      reads.start_reads(pace, stage.share);
      stage.reap();
      stage.sink.segments.clear();
    }
  }
  static constexpr send::ReadPace pace = {.segments_ahead = 8, .lane_is_idle = true, .all_is_wanted = true};
  StageBench stage;
  std::atomic<bool> input_was_read{false};
  send::ReadStage reads{stage.jobs, stage.walk, stage.entries, stage.sink, stage.heard, input_was_read};
  SeenByUser seen;
  send::Reports reports{seen, nullptr, {"source"}};
  HeardReceipt receipt;
  send::ReceiptDigests digests{stage.jobs, stage.walk, stage.entries, &receipt};
  Answers answers{stage.entries, reads, reports, false, &digests};
  Entry* entry = nullptr;
};

TEST_CASE("answers__with_a_receipt__a_file_that_is_asked_for_again_and_there_all_the_same_ends") {
  DiskBench bench(GENERATE(size_t{5}, size_t{session::piece_bytes} + 1));
  bench.send();
  REQUIRE(bench.answers.on_resend({0}, 1));
  REQUIRE(bench.entry->phase == EntryPhase::queued);
  REQUIRE(bench.answers.on_results({{{0, ErrorKind::ok, 0}}}, 1));
  bench.digests.start();
  bench.reads.start_reads(DiskBench::pace, bench.stage.share);
  bench.stage.reap();
  CHECK(bench.receipt.paths == Said{"file"});
  CHECK(bench.stage.sink.segments.empty());
  CHECK(bench.stage.entries.used() == 0);
}

}  // namespace
}  // namespace ccixfer::send_test
