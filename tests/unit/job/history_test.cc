// The history of jobs: rows of runs, also of runs that crashed, and files that are damaged or foreign.
#include "app/job/history.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <vector>

using namespace ccixfer;
using namespace ccixfer::job;
using report::JobRun;

namespace {

struct Place {
  std::string directory;
  Place() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ccixfer-history-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
  }
  ~Place() { std::filesystem::remove_all(directory); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] std::string file() const { return directory + "/jobs.sqlite"; }
};

JobRun run_of(const std::string& job, int64_t began_s = 1000) {
  JobRun run;
  run.job = job;
  run.destination = "tcp://archive.example:7100/runs/";
  run.began_s = began_s;
  return run;
}

std::vector<JobRun> all(const std::string& file, const std::string& job = "") {
  auto history = History::open_to_read(file);
  REQUIRE(history);
  std::vector<JobRun> runs;
  REQUIRE(history->list(job, [&](const JobRun& run) { runs.push_back(run); }));
  return runs;
}

}  // namespace

// Whoever lists it may be a pager at its first page.
TEST_CASE("history__while_it_is_listed__a_run_begins_and_ends_and_is_listed_too") {
  const Place place;
  auto writer = History::open(place.file());
  auto reader = History::open_to_read(place.file());
  REQUIRE((writer && reader));
  constexpr int64_t runs = 1200;
  for (int64_t i = 0; i < runs; ++i) REQUIRE(writer->note(run_of(i % 2 == 0 ? "even" : "odd", i)));
  std::vector<int64_t> began;
  REQUIRE(reader->list("", [&](const JobRun& run) {
    if (began.empty()) {
      const auto row = writer->begin(run_of("odd", runs));
      REQUIRE(row);
      REQUIRE(writer->end(*row, run_of("odd", runs)));
    }
    began.push_back(run.began_s);
  }));
  REQUIRE(began.size() == runs + 1);
  for (int64_t i = 0; i <= runs; ++i) REQUIRE(began[static_cast<size_t>(i)] == i);
  CHECK(all(place.file(), "odd").size() == runs / 2 + 1);
  CHECK(all(place.file(), "none").empty());
}

TEST_CASE("history__a_run__is_there_from_its_beginning_and_complete_at_its_end") {
  const Place place;
  JobRun run = run_of("nightly");
  auto history = History::open(place.file());
  REQUIRE(history);
  const auto row = history->begin(run);
  REQUIRE(row);
  REQUIRE(all(place.file()).size() == 1);
  CHECK(all(place.file()).front().status == report::run_under_way);
  CHECK(all(place.file()).front().ended_s == 0);
  run.ended_s = 2000;
  run.exit = 23;
  run.status = "partial";
  run.reason = "1 file failed";
  run.files = 10;
  run.files_unchanged = 4;
  run.files_failed = 1;
  run.bytes = uint64_t{1} << 45;
  run.bytes_sent = 7;
  REQUIRE(history->end(*row, run));
  const JobRun got = all(place.file()).at(0);
  CHECK(got.job == "nightly");
  CHECK(got.destination == run.destination);
  CHECK(got.began_s == 1000);
  CHECK(got.ended_s == 2000);
  CHECK(got.exit == 23);
  CHECK(got.status == "partial");
  CHECK(got.reason == "1 file failed");
  CHECK(got.files == 10);
  CHECK(got.files_unchanged == 4);
  CHECK(got.files_failed == 1);
  CHECK(got.bytes == uint64_t{1} << 45);
  CHECK(got.bytes_sent == 7);
}

TEST_CASE("history__run_that_did_not_end__is_killed_when_the_next_of_that_job_begins") {
  const Place place;
  {
    auto history = History::open(place.file());
    REQUIRE(history);
    REQUIRE(history->begin(run_of("nightly", 1)));
    REQUIRE(history->begin(run_of("other", 2)));
    REQUIRE(history->note(run_of("nightly", 3)));  // one that did not begin says nothing of the one that runs
    CHECK(all(place.file()).at(0).status == report::run_under_way);
    REQUIRE(history->begin(run_of("nightly", 4)));
  }
  const auto runs = all(place.file());
  REQUIRE(runs.size() == 4);
  CHECK(runs[0].status == report::run_killed);
  CHECK(runs[1].status == report::run_under_way);
  CHECK(runs[3].status == report::run_under_way);
  CHECK(all(place.file(), "other").size() == 1);
  CHECK(all(place.file(), "nightly").size() == 3);
  CHECK(all(place.file(), "nobody").empty());
}

// A transaction: what cannot be done to its end is not begun.
TEST_CASE("history__run_whose_beginning_was_not_noted__is_there_at_its_end_and_the_one_before_it_killed") {
  const Place place;
  auto history = History::open(place.file());
  REQUIRE(history);
  REQUIRE(history->begin(run_of("nightly", 1)));
  REQUIRE(history->begin(run_of("hourly", 2)));
  JobRun run = run_of("nightly", 3);
  run.ended_s = 9;
  run.status = "ok";
  REQUIRE(history->note_whole(run));
  const auto runs = all(place.file());
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].status == report::run_killed);
  CHECK(runs[1].status == report::run_under_way);  // of another job
  CHECK(runs[2].status == "ok");
  CHECK(runs[2].ended_s == 9);
}

TEST_CASE("history__a_run_that_cannot_be_noted__leaves_the_others_as_they_were") {
  const Place place;
  auto history = History::open(place.file());
  REQUIRE(history);
  REQUIRE(history->begin(run_of("nightly", 1)));
  const auto run_sql = [&](const char* sql) {
    sqlite3* raw = nullptr;
    REQUIRE(sqlite3_open(place.file().c_str(), &raw) == SQLITE_OK);
    REQUIRE(sqlite3_exec(raw, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(raw);
  };
  run_sql("CREATE TRIGGER no_row BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'no row'); END");
  const auto refused = history->begin(run_of("nightly", 2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::file_io);
  CHECK(refused.error().message.find("no row") != std::string::npos);
  REQUIRE(all(place.file()).size() == 1);
  CHECK(all(place.file()).front().status == report::run_under_way);
  run_sql("DROP TRIGGER no_row; CREATE TRIGGER not_shorter BEFORE DELETE ON run BEGIN SELECT RAISE(ABORT, 'not shorter'); END");
  run_sql("INSERT INTO run SELECT 20000, job, destination, 2, 2, 0, 'ok', '', 0, 0, 0, 0, 0 FROM run");  // the first has to go
  CHECK_FALSE(history->note(run_of("nightly", 3)));
  CHECK(all(place.file()).size() == 2);
  run_sql("DROP TRIGGER not_shorter");
  REQUIRE(history->begin(run_of("nightly", 4)));  // nothing of it is left over
  const auto runs = all(place.file());
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].began_s == 2);
  CHECK(runs[1].began_s == 4);
}

TEST_CASE("history__more_runs_than_are_kept__the_oldest_go") {
  const Place place;
  auto history = History::open(place.file());
  REQUIRE(history);
  // As if so many had been: rows one by one would be synced one by one.
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(place.file().c_str(), &raw) == SQLITE_OK);
  REQUIRE(sqlite3_exec(raw,
                       "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
                       "INSERT INTO run SELECT i, 'nightly', 'd', i, i, 0, 'ok', '', 0, 0, 0, 0, 0 FROM n",
                       nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(raw);
  REQUIRE(history->begin(run_of("nightly", 20'000)));
  const auto runs = all(place.file());
  CHECK(static_cast<int64_t>(runs.size()) == runs_kept_max);
  CHECK(runs.front().began_s == 2);
  CHECK(runs.back().began_s == 20'000);
}

TEST_CASE("history__damaged_or_foreign_file__is_refused_and_left_as_it_is") {
  const Place place;
  const std::string damage(8192, 'x');
  std::ofstream(place.file()) << damage;
  const auto damaged = History::open(place.file());
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().kind == ErrorKind::file_io);
  CHECK(damaged.error().message.find(place.file()) != std::string::npos);
  std::ifstream again(place.file());
  CHECK(std::string(std::istreambuf_iterator<char>(again), {}) == damage);

  const std::string other = place.directory + "/other.sqlite";
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(other.c_str(), &raw) == SQLITE_OK);
  REQUIRE(sqlite3_exec(raw, "CREATE TABLE run(x)", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(raw);
  REQUIRE_FALSE(History::open(other));
  auto foreign = History::open_to_read(other);
  REQUIRE(foreign);
  const auto listed = foreign->list("", [](const JobRun&) {});
  REQUIRE_FALSE(listed);
  CHECK(listed.error().message.find("this is no history of jobs") != std::string::npos);
}

// Whoever is told that it is no history would look for another one.
TEST_CASE("history__one_that_cannot_be_read__is_called_locked_or_damaged_and_not_foreign") {
  const Place place;
  const auto problem = [&] {
    auto history = History::open_to_look(place.file(), std::chrono::milliseconds(0));
    REQUIRE(history);
    const auto runs = history->newest(1);
    REQUIRE_FALSE(runs);
    CHECK(runs.error().message.find("no history of jobs") == std::string::npos);
    return runs.error().message;
  };
  REQUIRE(History::open(place.file()));
  {
    sqlite3* raw = nullptr;
    REQUIRE(sqlite3_open(place.file().c_str(), &raw) == SQLITE_OK);
    REQUIRE(sqlite3_exec(raw, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK);
    CHECK(problem().find("database is locked: another process writes it") != std::string::npos);
    sqlite3_close(raw);
  }
  std::ofstream(place.file(), std::ios::trunc) << std::string(8192, 'x');
  CHECK(problem().find("not a database: check the file") != std::string::npos);
}

// The end of it that the test holds lets nobody wait.
TEST_CASE("history__a_pipe_in_its_place__is_refused_and_not_waited_for") {
  const Place place;
  REQUIRE(::mkfifo(place.file().c_str(), 0600) == 0);
  const int held = ::open(place.file().c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(held >= 0);
  const auto is_named = [](const Result<History>& history) {
    return !history && history.error().message.find("no regular file") != std::string::npos;
  };
  CHECK(is_named(History::open(place.file())));
  CHECK(is_named(History::open_to_read(place.file())));
  CHECK(is_named(History::open_to_look(place.file(), std::chrono::milliseconds(0))));
  ::close(held);
}

TEST_CASE("history__no_directory_or_no_file__says_where") {
  const Place place;
  CHECK_FALSE(History::open(place.directory + "/missing/jobs.sqlite"));
  CHECK_FALSE(History::open_to_read(place.file()));
  CHECK_FALSE(std::filesystem::exists(place.file()));
}

TEST_CASE("history__a_run_whose_row_went_meanwhile__is_there_at_its_end") {
  const Place place;
  JobRun run = run_of("nightly");
  auto history = History::open(place.file());
  REQUIRE(history);
  const auto row = history->begin(run);
  REQUIRE(row);
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(place.file().c_str(), &raw) == SQLITE_OK);
  REQUIRE(sqlite3_exec(raw, "DELETE FROM run", nullptr, nullptr, nullptr) == SQLITE_OK);  // as when many runs began
  sqlite3_close(raw);
  run.ended_s = 2000;
  run.status = "ok";
  run.files = 3;
  REQUIRE(history->end(*row, run));
  const auto runs = all(place.file());
  REQUIRE(runs.size() == 1);
  CHECK(runs.front().job == "nightly");
  CHECK(runs.front().status == "ok");
  CHECK(runs.front().files == 3);
}
