// What a source tells: of what it cannot list, to whom and how often; and what it answers to a receiver that makes no sense.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>

#include "app/session/pool_turns.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t mib = 1u << 20;

template <typename Kind>
std::vector<Kind> posted(const Bench& bench) {
  std::vector<Kind> all;
  for (const session::Message& message : bench.receiver.posted) {
    if (const auto* one = std::get_if<Kind>(&message)) all.push_back(*one);
  }
  return all;
}

std::string seen(const Bench& bench, const std::string& path) {
  const FileSeen* file = bench.seen.find(path);
  return file == nullptr ? "nothing" : file->status + ": " + file->reason;
}

TEST_CASE("source__what_cannot_be_listed__is_told_here_and_to_the_receiver_by_name") {
  const TempDir dir;
  for (const char* name : {"a", "gone", "locked/x", "z"}) dir.file(std::string("t/") + name, "x");
  REQUIRE(::mkfifo(dir.path("t/pipe").c_str(), 0600) == 0);
  Bench bench(options_of({dir.path("t")}, archive));
  bench.files.hook = [](std::string_view call, std::string_view name) {
    if (call == "stat_at" && name == "gone") return -ENOENT;
    return call == "open" && name == "locked" ? -EACCES : 0;
  };
  bench.receiver.failures_in_summary = 0;
  bench.run();
  CHECK(bench.source->error() == nullptr);
  CHECK(seen(bench, "gone") == "failed: vanished");
  CHECK(seen(bench, "locked") == "failed: Permission denied");
  CHECK(seen(bench, "pipe") == "skipped: skipping non-regular file");
  CHECK(seen(bench, "a") == "ok: ");
  CHECK(bench.seen.warnings == std::vector<std::string>{"pipe: skipping non-regular file"});
  CHECK(bench.tally().files == 2);
  CHECK(bench.tally().files_failed == 1);
  CHECK(bench.tally().files_vanished == 1);
  const auto told = posted<session::Unlisted>(bench);
  REQUIRE(told.size() == 2);  // what was left out on purpose has not failed
  CHECK(told[0].vanished);
  CHECK(told[0].path == "gone");
  CHECK(told[0].reason == "vanished");
  CHECK_FALSE(told[1].vanished);
  CHECK(told[1].path == "locked");
  CHECK(told[1].reason == "Permission denied");
  const auto ends = posted<session::End>(bench);
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].unlisted_failed == 1);
  CHECK(ends[0].unlisted_vanished == 1);
  CHECK(ends[0].entries == bench.receiver.entries.size());
}

TEST_CASE("source__name_of_an_owner_cannot_be_looked_up__the_file_goes_and_has_failed_once") {
  const TempDir dir;
  for (const char* name : {"a", "b"}) dir.file(std::string("t/") + name, "x");
  Bench bench(options_of({dir.path("t")}, archive));
  const int error = GENERATE(-EIO, -ENOENT);
  bench.files.owner_above_root = true;
  bench.files.hook = [error](std::string_view call, std::string_view name) {
    return call == "name_of_owner" && name == "many" ? error : 0;
  };
  bench.receiver.failures_in_summary = 0;
  bench.run();
  CHECK(bench.receiver.content("a") == "x");
  CHECK(bench.receiver.content("b") == "x");
  CHECK(bench.tally().files == 2);
  CHECK(bench.tally().files_failed == (error == -EIO ? 1 : 0));
  if (error == -EIO) CHECK(seen(bench, dir.path("t")) == "failed: the name of its group 7 cannot be looked up: Input/output error");
}

TEST_CASE("source__the_directory_that_was_named_cannot_be_read__is_told_by_that_name") {
  const TempDir dir;
  dir.file("t/a", "x");
  Bench bench(options_of({dir.path("t")}, archive));
  bench.files.hook = [](std::string_view call, std::string_view) { return call == "read_directory" ? -EIO : 0; };
  bench.run();
  CHECK(seen(bench, dir.path("t")) == "failed: Input/output error");
  CHECK(bench.tally().files_failed == 1);
  REQUIRE(posted<session::Unlisted>(bench).size() == 1);
  CHECK(posted<session::Unlisted>(bench)[0].path == dir.path("t"));
}

TEST_CASE("source__more_that_cannot_be_listed_than_may_be_named__the_rest_is_counted") {
  const TempDir dir;
  const size_t count = GENERATE(as<size_t>(), session::unlisted_named_max, session::unlisted_named_max + 5);
  for (size_t i = 0; i < count; ++i) dir.file("t/gone" + std::to_string(i), "x");
  dir.file("t/here", "x");
  Bench bench(options_of({dir.path("t")}, archive));
  bench.files.hook = [](std::string_view call, std::string_view name) {
    return call == "stat_at" && name.starts_with("gone") ? -ENOENT : 0;
  };
  bench.run();
  CHECK(posted<session::Unlisted>(bench).size() == session::unlisted_named_max);
  CHECK(posted<session::End>(bench).at(0).unlisted_vanished == count);
  CHECK(bench.tally().files_vanished == count);
}

// The receiver's words, each by itself. The tree: 0 "", 1 "a", 2 "large" of three pieces, 3 the end of "".
struct Talk {
  explicit Talk(uint32_t options = archive) {
    dir.file("t/a", "A");
    dir.file_of("t/large", 9 * mib);
    bench = std::make_unique<Bench>(options_of({dir.path("t")}, options));
    bench->receiver.answering = false;
    bench->start();
    bench->run_until([&] { return !posted<session::End>(*bench).empty(); });
  }
  // What the source makes of it: "" nothing.
  std::string say(const session::Message& message) {
    bench->receiver.say(message);
    bench->step();
    const send::Source& source = *bench->source;
    if (source.error() == nullptr) return "";
    CHECK(source.error()->kind == ErrorKind::protocol);
    CHECK(bench->counters.get(Counter::session_rejected) == 1);
    REQUIRE(bench->receiver.abort.has_value());
    CHECK(bench->receiver.abort->kind == ErrorKind::protocol);
    const std::string prefix = "the receiver sent ";
    CHECK(source.error()->message.starts_with(prefix));
    return source.error()->message.substr(std::min(prefix.size(), source.error()->message.size()));
  }
  TempDir dir;
  std::unique_ptr<Bench> bench;
};

session::Answer answer(uint64_t first, const std::vector<std::pair<uint32_t, Verdict>>& runs) {
  session::Answer answer;
  answer.first_index = first;
  for (const auto& [count, verdict] : runs) answer.runs.push_back({count, verdict});
  return answer;
}
session::Resend resend(uint64_t index, uint64_t piece) {
  session::Resend resend;
  resend.index = index;
  resend.piece = piece;
  return resend;
}
session::FileResults result(uint64_t index, ErrorKind kind) {
  session::FileResults results;
  results.results.push_back({index, kind, 0});
  return results;
}

TEST_CASE("source__words_that_make_no_sense__each_ends_the_session_with_what_was_wrong") {
  struct Row {
    session::Message message;
    std::string words;
  };
  const std::vector<Row> rows{
      {answer(1, {{1, Verdict::send}}), "an answer out of order"},
      {answer(0, {{5, Verdict::done}}), "an answer for entries that were not sent"},
      {answer(0, {{4, Verdict::done}, {1, Verdict::done}}), "an answer for entries that were not sent"},
      {answer(0, {{1, Verdict::make}}), "what would be done, though no dry run was asked for"},
      {answer(0, {{1, Verdict::change}}), "what would be done, though no dry run was asked for"},
      {answer(0, {{1, Verdict::send}}), "data of an entry that has none wanted"},
      {answer(0, {{1, Verdict::pieces}}), "data of an entry that has none wanted"},
      {session::Want{4, {{0, 1}}}, "pieces of an entry that was not sent wanted"},
      {session::Want{0, {{0, 1}}}, "pieces of something that is no file wanted"},
      {session::Want{2, {{0, 4}}}, "pieces behind the end wanted"},
      {session::Want{2, {{3, 1}}}, "pieces behind the end wanted"},
      {session::Want{2, {{4, 0}}}, "pieces behind the end wanted"},
      {session::Want{2, {{1, ~uint64_t{0}}}}, "pieces behind the end wanted"},
      {resend(4, 0), "an entry that was not sent wanted again"},
      {resend(0, 0), "something that is no file wanted again"},
      {resend(2, 3), "a piece behind the end wanted again"},
      {result(4, ErrorKind::ok), "the result of an entry that was not sent"},
      {result(1, ErrorKind::ok), "a file that was not sent is said to be there"},
      {session::Durable{1, 0}, "more durable bytes than were sent"},
      {session::Summary{}, "a summary without every result"},
      {session::FileEnd{}, "a message of the other direction"},
      {session::Bye{}, "a message of the other direction"},
      {session::Opened{}, "a message of the other direction"},
  };
  for (const Row& row : rows) {
    INFO(row.words);
    Talk talk;
    CHECK(talk.say(row.message) == row.words);
  }
}

TEST_CASE("source__words_that_are_just_right__are_taken") {
  const std::vector<session::Message> all{answer(0, {}),
                                          answer(0, {{1, Verdict::done}}),
                                          session::Want{2, {{0, 3}}},
                                          session::Want{2, {{2, 1}, {3, 0}}},
                                          session::Durable{0, 0},
                                          result(0, ErrorKind::file_io),
                                          result(1, ErrorKind::file_io),
                                          resend(2, 2),
                                          resend(1, session::Resend::whole),
                                          resend(session::Resend::by_segment, 0)};
  for (const session::Message& message : all) {
    Talk talk;
    CHECK(talk.say(message).empty());
  }
  Talk dry(archive | session::option_dry_run);
  CHECK(dry.say(answer(0, {{1, Verdict::make}, {2, Verdict::change}, {1, Verdict::done}})).empty());
  CHECK(seen(*dry.bench, "a") == "would-change: ");
  CHECK(dry.bench->tally().files_unchanged == 2);
  Talk made(archive | session::option_dry_run);
  CHECK(made.say(answer(0, {{1, Verdict::done}, {1, Verdict::make}})) == "a file that would be made without content");
}

TEST_CASE("source__an_answer_told_twice_in_part__counts_once") {
  Talk talk;
  CHECK(talk.say(answer(0, {{2, Verdict::done}})).empty());
  CHECK(talk.bench->tally().entries_answered == 2);
  CHECK(talk.bench->tally().files_unchanged == 1);
  CHECK(talk.say(answer(0, {{1, Verdict::done}, {2, Verdict::done}, {1, Verdict::done}})).empty());
  CHECK(talk.bench->tally().entries_answered == 4);
  CHECK(talk.bench->tally().files_unchanged == 2);
  CHECK(talk.bench->tally().bytes_total == 0);
}

TEST_CASE("source__words_of_an_entry_that_has_ended__are_late_and_nothing") {
  Talk talk;
  CHECK(talk.say(answer(0, {{4, Verdict::done}})).empty());
  CHECK(talk.say(session::Want{2, {{0, 9}}}).empty());
  CHECK(talk.say(resend(2, 9)).empty());
  CHECK(talk.say(result(2, ErrorKind::ok)).empty());
  CHECK(talk.say(result(2, ErrorKind::file_io)).empty());
  CHECK(talk.bench->tally().files == 0);
  CHECK(talk.bench->tally().files_failed == 0);
  CHECK(talk.bench->tally().files_unchanged == 2);
}

// A file that failed at the receiver: whatever was counted of it is taken back, and who is to blame is told.
TEST_CASE("source__results__are_counted_by_their_kind_and_said_once") {
  struct Row {
    ErrorKind kind;
    int32_t error_number;
    uint64_t failed, vanished;
    std::string reason;
  };
  const Row row = GENERATE(Row{ErrorKind::vanished, 0, 0, 1, "vanished"}, Row{ErrorKind::file_io, EBUSY, 1, 0, "another transfer"},
                           Row{ErrorKind::integrity, 0, 1, 0, ""}, Row{ErrorKind::file_io, ENOSPC, 1, 0, "No space left"});
  Talk talk;
  session::FileResults results;
  results.results.push_back({1, row.kind, row.error_number});
  CHECK(talk.say(results).empty());
  const session::Tally& tally = talk.bench->tally();
  CHECK(tally.files_failed == row.failed);
  CHECK(tally.files_vanished == row.vanished);
  CHECK(tally.files == 0);
  CHECK(tally.bytes_total == 9 * mib);
  CHECK(seen(*talk.bench, "a").starts_with("failed: "));
  if (row.error_number != 0) CHECK(seen(*talk.bench, "a").find(row.reason) != std::string::npos);
  CHECK(talk.say(results).empty());  // again: it has ended
  CHECK(talk.bench->seen.warnings.empty());
  CHECK(tally.files_failed + tally.files_vanished == 1);
}

TEST_CASE("source__entries_wanted_again__go_again_until_they_are_answered_and_not_after") {
  Talk talk;
  Bench& bench = *talk.bench;
  REQUIRE(bench.receiver.count(session::SegmentKind::entries) == 1);
  session::Resend again;
  again.index = session::Resend::by_segment;
  again.lane_session = bench.receiver.puts.at(0).header.lane_session;
  again.n = bench.receiver.puts.at(0).header.n;
  CHECK(talk.say(again).empty());
  bench.run_until([&] { return bench.receiver.count(session::SegmentKind::entries) == 2; });
  CHECK(bench.tally().segments_resent == 1);
  session::Resend other = again;
  ++other.n;
  ++other.lane_session;
  CHECK(talk.say(other).empty());  // of a put that never was
  for (int i = 0; i < 10; ++i) bench.step();
  CHECK(bench.receiver.count(session::SegmentKind::entries) == 2);
  SECTION("answered in part") {
    CHECK(talk.say(answer(0, {{3, Verdict::done}})).empty());
    CHECK(talk.say(again).empty());
    bench.run_until([&] { return bench.receiver.count(session::SegmentKind::entries) == 3; });
  }
  SECTION("answered") {
    CHECK(talk.say(answer(0, {{4, Verdict::done}})).empty());
    CHECK(talk.say(again).empty());
    for (int i = 0; i < 10; ++i) bench.step();
    CHECK(bench.receiver.count(session::SegmentKind::entries) == 2);
  }
}

TEST_CASE("source__part_of_a_shared_pool__never_holds_more_and_all_is_sent") {
  const TempDir dir;
  for (int i = 0; i < 5; ++i) dir.file_of("t/large" + std::to_string(i), 5 * mib);
  for (int i = 0; i < 300; ++i) dir.file("t/small" + std::to_string(i), std::string(1000, 's'));
  send::SourceOptions options = options_of({dir.path("t")}, archive);
  options.turns = std::make_shared<session::PoolTurns>(8, false);
  for (int i = 0; i < 5; ++i) options.turns->join();
  REQUIRE(options.turns->share() == 2);
  Bench bench(options);
  bench.start();
  uint32_t most = 0;
  bench.run_until([&] {
    most = std::max(most, bench.pool.count() - bench.pool.free_count());
    return bench.source->finished();
  });
  CHECK(most == 2);
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.tally().files == 305);
  for (int i = 0; i < 5; ++i) CHECK((bench.receiver.content("large" + std::to_string(i)) == pattern(5 * mib)));
  CHECK(bench.pool.free_count() == bench.pool.count());
}

// Nobody tells that a buffer came back to a shared pool.
TEST_CASE("source__others_have_the_whole_pool__asks_for_a_buffer_again_in_a_little_while") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  std::vector<memory::Loan> lent;
  while (bench.pool.free_count() > 0) lent.push_back(bench.pool.lend());
  bench.start();
  for (int i = 0; i < 10; ++i) bench.step();
  CHECK(bench.receiver.puts.empty());
  bench.source->turn(bench.now);
  CHECK(bench.source->next_deadline() > bench.now);
  CHECK(bench.source->next_deadline() <= bench.now + 100ms);
  lent.pop_back();
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.content("a") == "A");
  CHECK(bench.source->next_deadline() == never);
}

TEST_CASE("source__nothing_to_do__wants_no_turn") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  CHECK(bench.source->next_deadline() == never);  // not started
  bench.start();
  CHECK(bench.source->next_deadline() == bench.now);
  bench.receiver.answering = false;
  for (int i = 0; i < 20; ++i) bench.step();
  CHECK(bench.source->next_deadline() == never);  // it waits for the answer
  bench.source->abort({ErrorKind::interrupted, std::string(2000, 'x')});
  bench.step();
  CHECK(bench.source->next_deadline() == never);
  REQUIRE(bench.receiver.abort.has_value());
  CHECK(bench.receiver.abort->kind == ErrorKind::interrupted);
  CHECK(bench.source->error()->message.size() == 2000);
  bench.source->abort({ErrorKind::bug, "and again"});
  CHECK(bench.source->error()->kind == ErrorKind::interrupted);
}

// Whatever it hears may be what it waits for: it wants to be turned at once.
TEST_CASE("source__each_word_of_the_link__wakes_it") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  bench.start();
  bench.receiver.answering = false;
  for (int i = 0; i < 20; ++i) bench.step();
  const auto wakes = [&](const std::function<void()>& word) {
    bench.source->turn(bench.now);
    REQUIRE(bench.source->next_deadline() == never);
    word();
    return bench.source->next_deadline() == bench.now;
  };
  CHECK(wakes([&] { bench.source->on_lane_message(0, session::Credit{100, false}); }));
  CHECK(wakes([&] { bench.source->on_message(session::Alive{1, 0}); }));
  CHECK(wakes([&] { bench.source->on_message(session::Durable{0, 0}); }));
  CHECK(wakes([&] { bench.source->on_lane_up(1); }));
  CHECK(wakes([&] { bench.source->on_lane_down(1); }));
}

TEST_CASE("source__lane_out_of_bounds_or_lane_words_without_sense__refused") {
  const TempDir dir;
  dir.file("t/a", "A");
  Bench bench(options_of({dir.path("t")}));
  bench.start();
  bench.source->on_lane_up(session::lanes_max);
  bench.source->on_lane_message(session::lanes_max, session::Credit{1, false});  // as of one that is down
  bench.step();
  CHECK(bench.source->error() == nullptr);
  SECTION("credit goes back") {
    bench.source->on_lane_message(0, session::Credit{100, false});
    CHECK(bench.source->error() == nullptr);
    bench.source->on_lane_message(0, session::Credit{1, false});
  }
  SECTION("a word of a source") { bench.source->on_lane_message(0, session::Ask{1}); }
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == ErrorKind::protocol);
  CHECK(bench.counters.get(Counter::session_rejected) == 1);
}

}  // namespace
}  // namespace ccixfer::send_test
