// The helper process that runs commands for a confined one.
#include "core/host/command_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/host/temp_dir.h"

namespace ccixfer::host {

using testing::TempDir;

namespace {

std::string read(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<int> wait_for(CommandHelper& helper, size_t count) {
  std::vector<int> statuses;
  while (statuses.size() < count && !helper.has_gone()) {
    helper.wait(std::chrono::seconds(60));
    for (const int status : helper.ended()) statuses.push_back(status);
  }
  return statuses;
}

}  // namespace

TEST_CASE("command_helper__several_texts__each_command_gets_its_own_in_order") {
  const TempDir directory;
  const std::string out = directory.path() + "/out";
  auto helper = CommandHelper::start("cat >> '" + out + "'").value();
  for (const char* text : {"one\n", "two\n", "three\n"}) REQUIRE(helper->run(text));
  CHECK(helper->running() == 3);
  CHECK(wait_for(*helper, 3) == std::vector<int>(3, 0));
  CHECK(helper->running() == 0);
  CHECK(read(out) == "one\ntwo\nthree\n");
}

TEST_CASE("command_helper__command_fails__its_status_is_told_and_the_next_one_runs") {
  auto helper = CommandHelper::start("read word; case $word in exit) exit 7;; die) kill -9 $$;; esac").value();
  for (const char* text : {"exit\n", "die\n", "well\n"}) REQUIRE(helper->run(text));
  const std::vector<int> statuses = wait_for(*helper, 3);
  REQUIRE(statuses.size() == 3);
  CHECK((WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 7));
  CHECK((WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL));
  CHECK(statuses[2] == 0);
}

TEST_CASE("command_helper__command_reads_nothing__a_long_text_does_not_stop_it") {
  auto helper = CommandHelper::start("true").value();
  REQUIRE(helper->run(std::string(CommandHelper::text_bytes_max, 'x')));
  CHECK(wait_for(*helper, 1) == std::vector<int>{0});
  CHECK_FALSE(helper->run(std::string(CommandHelper::text_bytes_max + 1, 'x')));
}

// The program that starts it ignores signals that its commands are to have: the loop SIGPIPE and SIGXFSZ, the helper the others.
TEST_CASE("command_helper__signals_that_are_ignored_here__are_not_by_the_commands") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXFSZ}) {
    INFO(number);
    auto* const before = std::signal(number, SIG_IGN);
    auto helper = CommandHelper::start("kill -" + std::to_string(number) + " $$").value();
    std::signal(number, before);
    REQUIRE(helper->run("x"));
    const std::vector<int> statuses = wait_for(*helper, 1);
    REQUIRE(statuses.size() == 1);
    CHECK((WIFSIGNALED(statuses[0]) && WTERMSIG(statuses[0]) == number));
  }
}

TEST_CASE("command_helper__object_has_gone__what_was_asked_for_is_run") {
  const TempDir directory;
  const std::string out = directory.path() + "/out";
  auto helper = CommandHelper::start("sleep 0.2; cat >> '" + out + "'").value();
  REQUIRE(helper->run("one"));
  REQUIRE(helper->run("two"));
  helper.reset();
  while (!std::filesystem::exists(out) || read(out) != "onetwo") {
  }
  SUCCEED();
}

TEST_CASE("command_helper__more_than_may_wait__refused") {
  const TempDir directory;
  const std::string gate = directory.path() + "/gate";
  auto helper = CommandHelper::start("while [ -e '" + gate + "' ]; do sleep 0.1; done").value();
  std::ofstream(gate) << "shut";
  size_t taken = 0;
  while (helper->run("x")) ++taken;
  CHECK(taken == CommandHelper::waiting_max);
}

// Whoever reads the output of a program that has ended does not wait for its commands.
TEST_CASE("command_helper__lives_on__it_holds_neither_input_nor_output_of_its_program") {
  const int number = GENERATE(STDIN_FILENO, STDOUT_FILENO);
  INFO(number);
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const int before = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
  REQUIRE(::dup2(ends[1], number) == number);  // the end of a pipe, whose other end tells when nobody has it any more
  ::close(ends[1]);
  auto helper = CommandHelper::start("true");
  ::dup2(before, number);
  ::close(before);
  REQUIRE(helper);
  pollfd reader{ends[0], POLLIN, 0};
  CHECK(::poll(&reader, 1, 60'000) == 1);
  CHECK((reader.revents & POLLHUP) != 0);
  ::close(ends[0]);
  REQUIRE((*helper)->run("x"));
  CHECK(wait_for(**helper, 1) == std::vector<int>{0});
}

}  // namespace ccixfer::host
