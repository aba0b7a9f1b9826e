// The last runs of jobs for the status page, of a history that others write.
#include "app/main/job_runs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "app/job/history.h"

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

struct Place {
  Place() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    file = directory + "/jobs.sqlite";
  }
  ~Place() { std::filesystem::remove_all(directory); }
  void run(int number) const {
    auto history = job::History::open(file);
    REQUIRE(history);
    report::JobRun one;
    one.job = fmt::format("night {}", number);
    one.destination = "tcp://192.0.2.1:7000/d";
    one.began_s = number;
    one.ended_s = number + 5;
    one.exit = 0;
    one.status = "ok";
    REQUIRE(history->note(one));
  }
  std::string directory = (std::filesystem::temp_directory_path() / "ccixfer-runs-XXXXXX").string();
  std::string file;
};

constexpr JobRuns::Clock::time_point begin{std::chrono::seconds(100)};

}  // namespace

TEST_CASE("job_runs__a_history__its_newest_runs_and_anew_after_a_while") {
  const Place place;
  JobRuns runs(place.file);
  CHECK(runs.look(begin).runs.empty());
  CHECK(runs.look(begin).problem.empty());
  for (int number = 0; number < 30; ++number) place.run(number);
  CHECK(runs.look(begin + look_interval / 2).runs.empty());  // it was looked at a moment ago
  const report::StatusJobs& known = runs.look(begin + look_interval);
  REQUIRE(known.runs.size() == runs_shown_max);
  CHECK(known.runs.front().job == "night 10");
  CHECK(known.runs.back().job == "night 29");
  CHECK(known.runs.back().destination == "tcp://192.0.2.1:7000/d");
  CHECK((known.runs.back().ended_s == 34 && known.runs.back().status == "ok"));
  CHECK(JobRuns("").look(begin).problem.empty());
}

TEST_CASE("job_runs__a_history_that_is_locked__costs_no_time_and_what_was_known_stays") {
  const Place place;
  place.run(1);
  JobRuns runs(place.file);
  CHECK(runs.look(begin).runs.size() == 1);
  sqlite3* writer = nullptr;
  REQUIRE(sqlite3_open(place.file.c_str(), &writer) == SQLITE_OK);
  REQUIRE(sqlite3_exec(writer, "BEGIN EXCLUSIVE; DELETE FROM run", nullptr, nullptr, nullptr) == SQLITE_OK);
  const report::StatusJobs& known = runs.look(begin + look_interval);
  CHECK(known.runs.size() == 1);
  CHECK(known.problem.find("locked") != std::string::npos);
  REQUIRE(sqlite3_exec(writer, "ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(writer);
  place.run(2);
  CHECK(runs.look(begin + 2 * look_interval).runs.size() == 2);
  CHECK(known.problem.empty());
}

TEST_CASE("job_runs__what_is_no_history__is_said_and_no_more") {
  const Place place;
  const auto problem = [&] {
    JobRuns runs(place.file);
    CHECK(runs.look(begin).runs.empty());
    return runs.look(begin).problem;
  };
  std::ofstream(place.file) << std::string(10'000, 'x');
  CHECK_FALSE(problem().empty());
  std::ofstream(place.file, std::ios::trunc) << "";
  CHECK_FALSE(problem().empty());  // of no kind
  std::filesystem::remove(place.file);
  for (int number = 0; number < 200; ++number) place.run(number);
  {
    // Damaged: the pages behind the first one.
    std::fstream file(place.file, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(60'000, '\x7f');
  }
  CHECK_FALSE(problem().empty());
  std::filesystem::remove(place.file);
  std::filesystem::create_directory(place.file);
  CHECK_FALSE(problem().empty());
  std::filesystem::remove(place.file);
  REQUIRE(::mkfifo(place.file.c_str(), 0600) == 0);
  CHECK_FALSE(problem().empty());  // and nobody waits for its other end
  std::filesystem::remove(place.file);
  sqlite3* foreign = nullptr;
  REQUIRE(sqlite3_open(place.file.c_str(), &foreign) == SQLITE_OK);
  REQUIRE(sqlite3_exec(foreign, "CREATE TABLE run(job)", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(foreign);
  CHECK_FALSE(problem().empty());
}
