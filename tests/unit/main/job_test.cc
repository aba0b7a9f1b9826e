// `ccixfer job`: its two processes, signals, its window and its history.
#include "app/main/job.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <functional>
#include <string>

#include "app/job/history.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::program {
namespace {

using recv::test::TemporaryDirectory;

// A job whose two processes are below this one. `prepare` is done in the first of them, and `transfer` in place of one.
class RunningJob {
 public:
  using Transfer = std::function<int(const RunningJob&, JobTeller&)>;
  explicit RunningJob(
      const TemporaryDirectory& directory, const Transfer& transfer, const std::function<void()>& prepare = [] {})
      : history_(directory.path("jobs.sqlite")) {
    REQUIRE(::pipe2(words_.data(), O_CLOEXEC) == 0);
    PreparedJob job{{}, SendCommand{}, directory.path("nightly.lock"), history_};
    job.file.name = "nightly";
    job.file.lock = job.lock_file;
    job.file.destination = "tcp://archive.example:7100/runs/";
    pid_ = ::fork();
    if (pid_ == 0) {
      prepare();
      auto part = begin_job(job);
      ::_exit(!part ? 99 : part->exit ? *part->exit : transfer(*this, *part->teller));
    }
    ::close(words_[1]);
  }
  ~RunningJob() { ::close(words_[0]); }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  // Of the transfer: what the test waits for.
  void say(char word) const { static_cast<void>(!::write(words_[1], &word, 1)); }
  [[nodiscard]] char hear() const {
    char word = 0;
    return ::read(words_[0], &word, 1) == 1 ? word : '-';
  }
  void send(int signal) const { REQUIRE(::kill(pid_, signal) == 0); }
  [[nodiscard]] int wait_status() const {
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    return status;
  }
  [[nodiscard]] report::JobRun noted() const {
    auto history = job::History::open_to_read(history_);
    REQUIRE(history);
    auto runs = history->newest(2);
    REQUIRE((runs && runs->size() == 1));
    return runs->front();
  }

 private:
  const std::string history_;
  std::array<int, 2> words_{-1, -1};
  pid_t pid_ = -1;
};

void have_no_reader_of_errors() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe(ends.data()) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(98);
  ::close(ends[0]);
}

void may_write_64_bytes() {
  const rlimit limit{64, 64};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(98);
}

}  // namespace

// The window is open in the last second before six, and the transfer's process begins after it.
TEST_CASE("job__that_begins_in_the_last_moment_of_its_window__ends_with_that_window") {
  const TemporaryDirectory directory;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("TZ", "UTC", 1);
    const WallTime six = std::chrono::sys_days(std::chrono::year(2026) / 11 / 25) + std::chrono::hours(6);
    PreparedJob job{{}, SendCommand{}, directory.path("nightly.lock"), directory.path("jobs.sqlite")};
    job.file.name = "nightly";
    job.file.lock = job.lock_file;
    job.file.destination = "tcp://archive.example:7100/runs/";
    job.file.window = job::Window{22 * 60, 6 * 60, "06:00"};
    auto& stop = std::get<SendCommand>(job.command).transfer.stop_at;
    stop = *parse_stop_at("06:00");
    int looks = 0;
    auto part = begin_job(job, [&] { return six + std::chrono::seconds(++looks == 1 ? -1 : 1); });
    if (part && part->teller) ::_exit(time_of(*stop, six + std::chrono::seconds(1)) == six ? 0 : 1);
    ::_exit(part && part->exit ? *part->exit : 99);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("job__asked_for_its_counters__asks_its_transfer_and_goes_on") {
  const TemporaryDirectory directory;
  const RunningJob job(directory, [](const RunningJob& self, JobTeller& teller) {
    sigset_t asked;
    sigemptyset(&asked);
    sigaddset(&asked, SIGUSR1);
    self.say('b');
    int signal = 0;
    if (sigwait(&asked, &signal) != 0) return 97;
    self.say('c');
    teller.tell({ErrorKind::ok, ""}, {});
    return 0;
  });
  REQUIRE(job.hear() == 'b');
  job.send(SIGUSR1);
  CHECK(job.hear() == 'c');
  CHECK(job.wait_status() == 0);
  CHECK(job.noted().status == "ok");
}

TEST_CASE("job__a_warning_that_nobody_reads__costs_no_transfer") {
  const TemporaryDirectory directory;
  directory.write("jobs.sqlite", std::string(8192, 'x'));  // no history: a warning
  const RunningJob job(
      directory, [](const RunningJob&, JobTeller&) { return 0; }, have_no_reader_of_errors);
  CHECK(job.wait_status() == 0);
}

// The transfer ends only after the warning of its beginning.
TEST_CASE("job__a_history_that_can_be_written_only_at_the_end__has_the_run") {
  const TemporaryDirectory directory;
  directory.write("jobs.sqlite", std::string(8192, 'x'));
  std::array<int, 2> errors{-1, -1};
  REQUIRE(::pipe2(errors.data(), O_CLOEXEC) == 0);
  const RunningJob job(
      directory,
      [&](const RunningJob&, JobTeller& teller) {
        char word = 0;
        if (::read(errors[0], &word, 1) != 1 || ::unlink(directory.path("jobs.sqlite").c_str()) != 0) return 97;
        report::Counts counts;
        counts.files = 7;
        teller.tell({ErrorKind::partial, "1 file failed"}, counts);
        return exit_code(ErrorKind::partial);
      },
      [&] {
        if (::dup2(errors[1], STDERR_FILENO) < 0) ::_exit(98);
      });
  CHECK(WEXITSTATUS(job.wait_status()) == exit_code(ErrorKind::partial));
  const report::JobRun run = job.noted();
  CHECK(run.status == "partial");
  CHECK(run.files == 7);
  CHECK(run.ended_s >= run.began_s);
  for (const int end : errors) ::close(end);
}

TEST_CASE("job__a_history_beyond_the_limit_of_files__costs_no_transfer") {
  const TemporaryDirectory directory;
  const RunningJob job(
      directory, [](const RunningJob&, JobTeller&) { return 0; }, may_write_64_bytes);
  CHECK(job.wait_status() == 0);
}

TEST_CASE("job__a_transfer_that_ends_without_a_word__is_noted_by_its_exit_code") {
  for (const ErrorKind kind : {ErrorKind::interrupted, ErrorKind::usage}) {
    const TemporaryDirectory directory;
    const RunningJob job(directory, [kind](const RunningJob&, JobTeller&) { return exit_code(kind); });
    CHECK(WEXITSTATUS(job.wait_status()) == exit_code(kind));
    const report::JobRun run = job.noted();
    CHECK(run.status == error_row(kind).name);
    CHECK(run.exit == exit_code(kind));
    CHECK(run.reason == std::string(error_row(kind).words) + ": its standard error says more");
  }
  const TemporaryDirectory directory;
  const RunningJob job(directory, [](const RunningJob&, JobTeller&) { return 99; });  // no code of ours
  CHECK(WEXITSTATUS(job.wait_status()) == 99);
  CHECK(job.noted().status == "failed");
}

}  // namespace ccixfer::program
