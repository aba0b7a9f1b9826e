// The lock of --lock, and files that are not to be taken for one.
#include "app/main/job_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "core/base/local_kinds.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::program {
namespace {

using recv::test::TemporaryDirectory;

std::string refusal(const std::string& file) {
  const auto lock = JobLock::take(file);
  if (lock) return "";
  CHECK(lock.error().kind == already_running);
  return lock.error().message;
}

}  // namespace

TEST_CASE("job_lock__one_has_it__the_next_is_told_by_whom_until_it_goes") {
  const TemporaryDirectory directory;
  const std::string file = directory.path("nightly.lock");
  {
    const auto first = JobLock::take(file);
    REQUIRE(first);
    CHECK(directory.read("nightly.lock") == fmt::format("{}\n", ::getpid()));
    CHECK(refusal(file).find(fmt::format("process {} has the lock: {}", ::getpid(), file)) != std::string::npos);
    REQUIRE(JobLock::take(directory.path("other.lock")));  // another job
  }
  CHECK(directory.has("nightly.lock"));  // who removes it lets two in
  CHECK(JobLock::take(file));
}

TEST_CASE("job_lock__its_process_was_killed__locks_nobody_out") {
  const TemporaryDirectory directory;
  const std::string file = directory.path("l");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = JobLock::take(file);
    ::_exit(lock ? 7 : 1);  // no destructor runs
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WEXITSTATUS(status) == 7);
  CHECK(directory.read("l") == fmt::format("{}\n", child));
  CHECK(JobLock::take(file));
  CHECK(directory.read("l") == fmt::format("{}\n", ::getpid()));
}

TEST_CASE("job_lock__a_file_with_anything_in_it__is_no_name_of_a_process") {
  const TemporaryDirectory directory;
  const std::string file = directory.path("l");
  const auto first = JobLock::take(file);
  REQUIRE(first);
  for (const char* text : {"", "\x1b[2Jx", "-1"}) {
    directory.write("l", text);
    CHECK(refusal(file).find("another process has the lock") != std::string::npos);
  }
}

TEST_CASE("job_lock__a_file_of_somebodys_data__is_refused_and_stays_as_it_is") {
  const TemporaryDirectory directory;
  const std::string file = directory.path("l");
  for (const std::string& text : {std::string("hi\n"), std::string("12 pigs\n"), std::string("-1\n"), std::string(64, '7')}) {
    directory.write("l", text);
    const auto lock = JobLock::take(file);
    REQUIRE_FALSE(lock);
    CHECK(lock.error().kind == ErrorKind::usage);
    CHECK(lock.error().message.find(file + ": it is no lock") != std::string::npos);
    CHECK(directory.read("l") == text);
  }
  // What runs and power cuts leave.
  for (const std::string& text : {std::string(), std::string("4194304\n"), std::string("   77"), std::string(6, '\0')}) {
    directory.write("l", text);
    CHECK(JobLock::take(file));
    CHECK(directory.read("l") == fmt::format("{}\n", ::getpid()));
  }
}

TEST_CASE("job_lock__the_file_is_removed_under_a_run__the_next_one_has_its_own") {
  const TemporaryDirectory directory;
  const std::string file = directory.path("l");
  const auto first = JobLock::take(file);
  REQUIRE(first);
  REQUIRE(::unlink(file.c_str()) == 0);
  const auto second = JobLock::take(file);
  REQUIRE(second);
  CHECK_FALSE(refusal(file).empty());
}

TEST_CASE("job_lock__what_cannot_be_opened__is_named") {
  const TemporaryDirectory directory;
  for (const std::string& file : {directory.path("no/such/l"), directory.path()}) {
    const auto lock = JobLock::take(file);
    REQUIRE_FALSE(lock);
    CHECK(lock.error().kind == ErrorKind::usage);
    CHECK(lock.error().message.find(file) != std::string::npos);
  }
  CHECK(JobLock::take(""));
}

}  // namespace ccixfer::program
