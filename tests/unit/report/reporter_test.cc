// What is said where: events, lines for people, the log, under each of the options.
#include "app/report/reporter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/log.h"
#include "tests/unit/report/desk.h"

namespace ccixfer::report {
namespace {

using namespace std::chrono_literals;

ReporterOptions with_json() {
  ReporterOptions options;
  options.json = true;
  return options;
}

ReporterOptions verbose(unsigned level) {
  ReporterOptions options;
  options.verbose = level;
  return options;
}

ReporterOptions quiet() {
  ReporterOptions options;
  options.quiet = true;
  return options;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("reporter__json__events_and_nothing_for_people_but_warnings_and_errors") {
  Desk desk(with_json());
  desk.reporter->set_now(start + 1500ms);
  CHECK(desk.reporter->seconds() == 1.5);
  desk.reporter->ready({"tcp://h:1"});
  desk.reporter->session({"ab", "tcp://h:1", {}});
  desk.reporter->file({"f", 3, "ok", "", ""});
  desk.reporter->retry("lost");
  desk.reporter->waiting("ab", 2);
  desk.reporter->ended({});
  desk.reporter->event("{}");
  CHECK(desk.text.take().empty());
  const std::string lines = desk.events.take();
  for (const char* name : {"ready", "session", "file", "retry", "waiting", "ended"}) {
    INFO(name);
    CHECK(lines.find(std::string(R"({"event":")") + name + R"(","t":1.5)") != std::string::npos);
  }
  CHECK(lines.ends_with("\n{}\n"));
  desk.reporter->warn("mind\n");
  desk.reporter->error({ErrorKind::network, "gone"});
  CHECK(desk.text.take() == "ccixfer: mind%0A\nccixfer: gone\n");
}

TEST_CASE("reporter__for_people__no_events") {
  Desk desk;
  desk.reporter->ready({"tcp://h:1", "tcp://h:2"});
  desk.reporter->session({"ab", "tcp://h:1", {}});
  desk.reporter->file({"f", 3, "failed", "why", ""});
  desk.reporter->retry("lost\n");
  desk.reporter->waiting("ab", 2);
  desk.reporter->info("so\n");
  desk.reporter->event("{}");
  desk.reporter->done({}, {}, true);
  CHECK(desk.events.take().empty());
  CHECK(desk.text.take() ==
        "ready at tcp://h:1\nready at tcp://h:2\nccixfer: f: why\nccixfer: trying again: lost%0A\nccixfer: waiting, 2 before "
        "you\nso%0A\n"
        "0 files, 0 B in 0.0 s (0 B/s)\n");
  desk.reporter->ended({});
  CHECK(desk.text.take().starts_with("transfer from "));
}

TEST_CASE("reporter__of_one_that_listens__the_time_begins_with_the_first_session") {
  const auto done_after = [](bool listens) {
    ReporterOptions options;
    options.json = true;
    Desk desk(options);
    if (listens) desk.reporter->ready({"tcp://h:1"});
    for (const int at_s : {5, 7}) {
      desk.reporter->set_now(after(start, std::chrono::seconds(at_s)));
      desk.reporter->session({"ab", "tcp://h:1", {}});
    }
    desk.reporter->set_now(after(start, std::chrono::seconds(9)));
    Done done;
    done.counts.bytes = 800;
    desk.reporter->done(done, {}, true);
    return desk.events.take();
  };
  const std::string listening = done_after(true), dialling = done_after(false);
  CHECK(listening.find("\"seconds\":4.0,\"bytes_per_s\":200.0") != std::string::npos);
  CHECK(listening.find("\"event\":\"done\",\"t\":9.0") != std::string::npos);
  CHECK(dialling.find("\"seconds\":9.0") != std::string::npos);
}

TEST_CASE("reporter__quiet__errors_only") {
  Desk desk(quiet());
  desk.reporter->ready({"tcp://h:1"});
  desk.reporter->retry("lost");
  desk.reporter->waiting("ab", 2);
  desk.reporter->warn("mind");
  desk.reporter->info("so");
  desk.reporter->ended({});
  desk.reporter->done({}, {}, true);
  log(LogLevel::warning, "mind too");
  desk.reporter->file({"f", 3, "ok", "", ""});
  CHECK(desk.text.take().empty());
  desk.reporter->file({"f\n", 3, "failed", "no\npermission", ""});
  CHECK(desk.text.take() == "ccixfer: f%0A: no%0Apermission\n");
  desk.reporter->error({ErrorKind::network, ""});
  CHECK(desk.text.take() == "ccixfer: " + std::string(error_row(ErrorKind::network).words) + "\n");
}

TEST_CASE("reporter__verbose__sessions_changed_files_and_then_all") {
  const unsigned level = GENERATE(0u, 1u, 2u);
  Desk desk(verbose(level));
  desk.reporter->session({"ab", "tcp://h:1", {{"tcp", "r1", "", 0, 0}, {"tcp", "h", "", 0, 0}}});
  desk.reporter->file({"f\n", 3, "ok", "", ""});
  desk.reporter->file({"g", 4, "unchanged", "", ""});
  desk.reporter->file({"h", 5, "failed", "why\n", ""});
  log(LogLevel::info, "an information");
  log(LogLevel::debug, "a detail");
  std::string expected;
  if (level >= 1) expected += "session ab with tcp://h:1 > r1 > h\nok f%0A (3 bytes)\n";
  if (level >= 2) expected += "unchanged g (4 bytes)\n";
  expected += "ccixfer: h: why%0A\n";
  if (level >= 1) expected += "ccixfer: an information\n";
  if (level >= 2) expected += "ccixfer: a detail\n";
  CHECK(desk.text.take() == expected);
  desk.reporter->done({}, {}, true);
  CHECK(desk.text.take() == "0 files, 0 B in 0.0 s (0 B/s)\n");
}

TEST_CASE("reporter__log_file__what_happened_whatever_is_shown") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("reporter-" + std::to_string(getpid()) + ".log");
  ReporterOptions options = quiet();
  options.log_file = path;
  {
    Desk desk(options);
    desk.reporter->ready({"tcp://h:1"});
    desk.reporter->session({"ab", "tcp://h:1", {}});
    desk.reporter->file({"g", 4, "unchanged", "", ""});
    desk.reporter->retry("lost");
    desk.reporter->waiting("ab", 2);
    desk.reporter->warn("mind");
    desk.reporter->info("so");
    Ended ended;
    ended.kind = ErrorKind::network;
    desk.reporter->ended(ended);
    desk.reporter->ended({});
    log(LogLevel::info, "inside");
    log(LogLevel::debug, "a detail");
    desk.reporter->error({ErrorKind::network, "gone"});
    desk.reporter->done({}, {}, true);
    desk.reporter->done({}, {}, false);
  }
  std::istringstream lines(content_of(path));
  std::vector<std::string> said;
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.substr(4, 1) == "-");                                      // 2026-
    said.push_back(line.substr(line.find(' ', line.find(' ') + 1) + 1));  // behind time and process
  }
  CHECK(said == std::vector<std::string>{
                    "info ready at tcp://h:1", "info session ab with tcp://h:1", "info unchanged g (4 bytes)",
                    "warning ccixfer: trying again: lost", "info waiting, 2 before you", "warning mind", "info so",
                    "warning transfer from  into the root ended: network: 0 files delivered, 0 unchanged, 0 failed, 0 B",
                    "info transfer from  into the root ended well: 0 files delivered, 0 unchanged, 0 failed, 0 B", "info inside",
                    "error ccixfer: gone", "info ok: 0 files, 0 B in 0.0 s (0 B/s)"});
  std::filesystem::remove(path);
  options.log_file = path / "in-no-directory";
  const auto refused = Reporter::create(options, start);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::usage);
  CHECK(refused.error().message.find("No such file or directory: give --log-file a writable place") != std::string::npos);
}

// What a peer says would else write lines of its own, or move the cursor of whoever looks at the log.
TEST_CASE("reporter__log_file__words_of_others_are_one_line_without_control_characters") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("reporter-" + std::to_string(getpid()) + ".log");
  const std::string words = "a\nb\x1b[2J", escaped = "a%0Ab%1B[2J";
  ReporterOptions options = quiet();
  options.log_file = path;
  {
    Desk desk(options);
    log(LogLevel::warning, "{}", words);
    desk.reporter->ready({words});
    desk.reporter->session({"ab", words, {{words, words, words, 0, 0}}});
    desk.reporter->file({words, 4, "ok", words, ""});
    desk.reporter->retry(words);
    desk.reporter->warn(words);
    desk.reporter->info(words);
    Ended ended;
    ended.kind = ErrorKind::network;
    ended.peer = ended.path = ended.reason = words;
    desk.reporter->ended(ended);
    desk.reporter->error({ErrorKind::network, words});
  }
  const std::string said = content_of(path);
  std::filesystem::remove(path);
  INFO(said);
  CHECK(std::count(said.begin(), said.end(), '\n') == 9);
  CHECK(said.find('\x1b') == std::string::npos);
  CHECK(said.find("warning " + escaped + "\n") != std::string::npos);
  CHECK(said.find("info ready at " + escaped + "\n") != std::string::npos);
}

TEST_CASE("reporter__progress__once_a_while_with_what_can_be_told") {
  Desk desk(with_json());
  CHECK(desk.reporter->wants_progress());
  CHECK(desk.reporter->progress_due() == start);
  desk.reporter->progress({1, 0, 1000, true});
  CHECK(desk.events.take().find(R"("eta_s":null)") != std::string::npos);  // no rate yet
  desk.reporter->progress({1, 0, 1000, true});
  CHECK(desk.events.take().empty());  // too soon
  const Instant due = desk.reporter->progress_due();
  CHECK(due > start);
  CHECK(due <= start + 1s);
  desk.reporter->set_now(start + 1s);
  desk.reporter->progress({1, 100, 1000, true});
  CHECK(desk.events.take() ==
        R"({"event":"progress","t":1.0,"files":1,"bytes":100,"bytes_total":1000,"bytes_per_s":100.0,"eta_s":9.0})"
        "\n");
  desk.reporter->set_now(start + 2s);
  desk.reporter->progress({1, 200, 1000, false});  // of how many nobody knows
  CHECK(desk.events.take().find(R"("eta_s":null)") != std::string::npos);
  desk.reporter->set_now(start + 3s);
  desk.reporter->progress({1, 2000, 1000, true});  // more than there are
  CHECK(desk.events.take().find(R"("eta_s":null)") != std::string::npos);
  desk.reporter->set_now(start + 4s);
  desk.reporter->progress({1, 2000, 3000, true, stall_told_after - 1ns, 60s});
  CHECK(desk.events.take().find("stalled_s") == std::string::npos);
  desk.reporter->set_now(start + 5s);
  desk.reporter->progress({1, 2000, 3000, true, stall_told_after, 60s});
  const std::string stalled = desk.events.take();
  CHECK(stalled.find(R"("stalled_s":3.0)") != std::string::npos);
  CHECK(stalled.find(R"("eta_s":null)") != std::string::npos);
}

TEST_CASE("reporter__progress__lines_for_people_only_when_asked_or_watched") {
  ReporterOptions asked;
  asked.progress = true;
  Desk desk(asked);
  CHECK(desk.reporter->wants_progress());
  desk.reporter->progress({1, 0, 1000, true});
  desk.reporter->set_now(start + 999ms);
  desk.reporter->progress({1, 10, 1000, true});  // a file, no terminal: once a second
  desk.reporter->set_now(start + 1s);
  desk.reporter->progress({1, 100, 1000, true, 5s, 60s});
  CHECK(desk.text.take() ==
        "0 B of 1.0 kB  0%  0 B/s  1 file\n100 B of 1.0 kB  10%  no progress for 5 s, gives up at 60 s  1 file\n");
  CHECK(desk.events.take().empty());
  desk.reporter->done({}, {}, true);
  CHECK(desk.text.take() == "0 files, 0 B in 1.0 s (0 B/s)\n");
  asked.quiet = true;
  CHECK_FALSE(Desk(asked).reporter->wants_progress());
  CHECK(Desk(asked).reporter->progress_due() == never);
  CHECK_FALSE(Desk().reporter->wants_progress());
}

TEST_CASE("reporter__stats__in_words_and_with_v_every_counter") {
  Counters counters;
  for (const bool summary : {true, false}) {
    for (const unsigned level : {0u, 1u}) {
      ReporterOptions options = verbose(level);
      options.stats = true;
      Desk desk(options);
      desk.reporter->file({"h", 5, "failed", "why", ""});
      desk.text.take();
      Done done;
      done.counts.files_failed = 1;
      desk.reporter->done(done, counters, summary);
      const std::string said = desk.text.take();
      INFO(summary << level << said);
      CHECK((said.find("1 failed") != std::string::npos) == summary);
      CHECK((said.find("  1: why") != std::string::npos) == summary);
      CHECK((said.find("routed_connections") != std::string::npos) == (!summary || level > 0));
    }
  }
}

TEST_CASE("reporter__done__has_all_counters_and_the_time_since_the_start_if_none_is_given") {
  Desk desk(with_json());
  desk.reporter->set_now(start + 2s);
  Counters counters;
  desk.reporter->done({}, counters, true);
  const std::string line = desk.events.take();
  CHECK(line.find(R"("seconds":2.0)") != std::string::npos);
  for (const auto& [name, value] : counter_list(counters)) CHECK(line.find("\"" + name + "\":0") != std::string::npos);
  Done done;
  done.seconds = 1;
  desk.reporter->done(done, counters, true);
  CHECK(desk.events.take().find(R"("seconds":1.0)") != std::string::npos);
}

TEST_CASE("reporter__output_that_takes_no_more__is_told_once_a_reader_that_left_is_not") {
  const bool full = GENERATE(true, false);
  int fd = -1;
  if (full) {
    fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  } else {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    close(ends[0]);
    fd = ends[1];
  }
  REQUIRE(fd >= 0);
  Written text;
  ReporterOptions options = with_json();
  options.json_fd = fd;
  options.text_fd = text.fd();
  auto reporter = std::move(Reporter::create(options, start).value());
  CHECK_FALSE(reporter->output_problem().has_value());
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  for (int i = 0; i < 2; ++i) reporter->retry("lost");
  sigaction(SIGPIPE, &before, nullptr);
  const auto problem = reporter->output_problem();
  REQUIRE(problem.has_value() == full);
  if (full) {
    CHECK(problem->kind == ErrorKind::file_io);
    CHECK(problem->message.starts_with("standard output cannot be written: No space left on device: "));
  }
  CHECK(reporter->next_deadline() == never);  // nothing waits for it
  close(fd);
}

TEST_CASE("reporter__the_journal__hears_how_grave_each_line_is") {
  for (const bool journal : {true, false}) {
    Written text;
    ReporterOptions options;
    options.text_fd = text.fd();
    options.journal = journal;
    auto reporter = std::move(Reporter::create(options, start).value());
    reporter->info("told");
    reporter->warn("warned");
    reporter->error({ErrorKind::network, "a: b: c"});
    log(LogLevel::error, "logged");
    const std::string said = text.all();
    INFO(said);
    CHECK((said.find("<6>told\n") != std::string::npos) == journal);
    CHECK((said.find("<4>ccixfer: warned\n") != std::string::npos) == journal);
    CHECK((said.find("<3>ccixfer: a: b: c\n") != std::string::npos) == journal);
    CHECK((said.find("<3>ccixfer: logged\n") != std::string::npos) == journal);
    CHECK(said.starts_with(journal ? "<6>told\n" : "told\n"));
  }
}

TEST_CASE("reporter__slow_reader__is_written_to_again_soon") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  Written text;
  ReporterOptions options = with_json();
  options.json_fd = ends[1];
  options.text_fd = text.fd();
  auto reporter = std::move(Reporter::create(options, start).value());
  CHECK(reporter->next_deadline() == never);
  const std::string line(4000, 'x');
  for (int i = 0; i < 20; ++i) reporter->event(line);
  const Instant deadline = reporter->next_deadline();
  CHECK(deadline > start);
  CHECK(deadline <= start + 1s);
  std::vector<char> buffer(1 << 20);
  size_t got = 0;
  while (got < 20 * 4001u) {
    const ssize_t more = read(ends[0], buffer.data(), buffer.size());
    REQUIRE(more > 0);
    got += static_cast<size_t>(more);
    reporter->set_now(deadline);  // writes what waits
  }
  CHECK(got == 20 * 4001u);
  CHECK(reporter->next_deadline() == never);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace ccixfer::report
