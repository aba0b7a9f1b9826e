// When a time of arrival can be told and when not, and what a log has of each level.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/report/log_file.h"
#include "core/base/log.h"
#include "tests/unit/report/desk.h"

namespace ccixfer::report {
namespace {

using namespace std::chrono_literals;

struct LogPlace {
  LogPlace() : path(std::filesystem::temp_directory_path() / ("told-when-" + std::to_string(getpid()) + ".log")) {}
  ~LogPlace() { std::filesystem::remove(path); }
  LogPlace(const LogPlace&) = delete;
  LogPlace& operator=(const LogPlace&) = delete;
  // Without time and process.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::ifstream in(path);
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line);) found.push_back(line.substr(line.find(' ', line.find(' ') + 1) + 1));
    return found;
  }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("reporter__time_of_arrival__from_a_byte_a_second_on_and_up_to_the_last_byte") {
  ReporterOptions options;
  options.json = true;
  Desk desk(options);
  const auto eta = [&](Duration at, uint64_t bytes, uint64_t total, bool known = true) {
    desk.reporter->set_now(start + at);
    desk.reporter->progress({1, bytes, total, known});
    const std::string line = desk.events.take();
    const size_t from = line.find("\"eta_s\":") + 8;
    return line.substr(from, line.find_first_of(",}", from) - from);
  };
  CHECK(eta(0s, 0, 1000) == "null");
  CHECK(eta(1s, 1, 1000) == "999.0");  // one byte a second
  CHECK(eta(2s, 1, 1000) == "null");   // and less: the memory of it
  CHECK(eta(12s, 10'001, 10'001) == "0.0");
  CHECK(eta(13s, 20'001, 20'000) == "null");
  CHECK(eta(14s, 20'001, 30'000, false) == "null");
}

TEST_CASE("reporter__nothing_moves__how_long_it_is_borne_if_that_ends") {
  ReporterOptions options;
  options.progress = true;
  Desk desk(options);
  desk.reporter->progress({1, 0, 1000, true, stall_told_after, forever});
  CHECK(desk.text.take() == "0 B of 1.0 kB  0%  no progress for 3 s  1 file\n");
  desk.reporter->set_now(start + 1s);
  desk.reporter->progress({1, 0, 1000, true, stall_told_after, 1min});
  CHECK(desk.text.take() == "0 B of 1.0 kB  0%  no progress for 3 s, gives up at 60 s  1 file\n");
}

TEST_CASE("reporter__log_of_each_level__has_what_is_shown_and_never_less_than_information") {
  const unsigned level = GENERATE(0u, 1u, 2u, 3u);
  const bool quiet = GENERATE(false, true);
  LogPlace place;
  ReporterOptions options;
  options.log_file = place.path;
  options.verbose = level;
  options.quiet = quiet;
  Desk desk(options);
  log(LogLevel::error, "an error");
  log(LogLevel::warning, "a warning");
  log(LogLevel::info, "an information");
  log(LogLevel::debug, "a detail");
  desk.reporter.reset();
  INFO(level << quiet);
  const bool all = level >= 2 && !quiet;
  std::vector<std::string> expected{"error an error", "warning a warning", "info an information"};
  if (all) expected.emplace_back("debug a detail");
  CHECK(place.lines() == expected);
  std::string shown = "ccixfer: an error\n";
  if (!quiet) shown += "ccixfer: a warning\n";
  if (!quiet && level >= 1) shown += "ccixfer: an information\n";
  if (all) shown += "ccixfer: a detail\n";
  CHECK(desk.text.take() == shown);
}

TEST_CASE("reporter__without_a_log__files_are_said_only_to_who_asked") {
  ReporterOptions options;
  Desk desk(options);
  desk.reporter->file({"f", 3, "ok", "", ""});
  CHECK(desk.text.take().empty());
  CHECK(desk.events.take().empty());
}

TEST_CASE("log_file__what_is_there__is_kept_and_a_place_that_takes_nothing_is_said_or_borne") {
  LogPlace place;
  for (const char* line : {"first", "second"}) {
    auto opened = LogFile::open(place.path);
    REQUIRE(opened.has_value());
    CHECK_FALSE((*opened)->write(LogLevel::info, line));
    CHECK(place.lines().back() == std::string("info ") + line);  // at once: who looks after a crash finds it
  }
  CHECK(place.lines() == std::vector<std::string>{"info first", "info second"});
  const auto directory = LogFile::open(std::filesystem::temp_directory_path());
  REQUIRE_FALSE(directory.has_value());
  CHECK(directory.error().kind == ErrorKind::usage);
  CHECK(directory.error().message.find("Is a directory: give --log-file a writable place") != std::string::npos);
  auto full = LogFile::open("/dev/full");
  REQUIRE(full.has_value());
  CHECK((*full)->write(LogLevel::warning, "nobody reads it") ==
        "WARNING: cannot write the log file: /dev/full: lines of it are lost: give it room");
  CHECK_FALSE((*full)->write(LogLevel::warning, "nobody reads it"));
}

TEST_CASE("log_file__a_fifo__is_refused_without_a_reader_and_does_not_hold_up_the_start") {
  LogPlace place;
  REQUIRE(mkfifo(place.path.c_str(), 0600) == 0);
  const auto unread = LogFile::open(place.path);
  REQUIRE_FALSE(unread.has_value());
  CHECK(unread.error().kind == ErrorKind::usage);
  CHECK(unread.error().message.ends_with(": it is a FIFO that nobody reads, or a socket: give --log-file a writable place"));
  const int reader = open(place.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  auto read = LogFile::open(place.path);
  REQUIRE(read.has_value());
  CHECK_FALSE((*read)->write(LogLevel::info, "a line"));
  char line[256] = {};
  CHECK(::read(reader, line, sizeof line - 1) > 0);
  CHECK(std::string(line).ends_with(" info a line\n"));
  close(reader);
}

TEST_CASE("reporter__who_waits_and_is_next__is_told_no_number") {
  Desk desk;
  desk.reporter->waiting("ab", 1);
  desk.reporter->waiting("ab", 0);
  CHECK(desk.text.take() == "ccixfer: waiting, 1 before you\nccixfer: waiting, next in turn\n");
}

TEST_CASE("reporter__an_alarm__is_said_also_when_quiet_a_warning_is_not") {
  ReporterOptions options;
  options.quiet = true;
  Desk desk(options);
  desk.reporter->warn("a warning");
  desk.reporter->alarm("an alarm\n");
  CHECK(desk.text.take() == "ccixfer: an alarm%0A\n");
}

TEST_CASE("reporter__a_log_that_loses_lines__is_said_once_also_when_quiet") {
  ReporterOptions options;
  options.log_file = "/dev/full";
  options.quiet = true;
  Desk desk(options);
  for (int i = 0; i < 3; ++i) desk.reporter->info("a line for the log");
  CHECK(desk.text.take() == "ccixfer: WARNING: cannot write the log file: /dev/full: lines of it are lost: give it room\n");
}

}  // namespace ccixfer::report
