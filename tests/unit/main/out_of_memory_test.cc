// A process that gets no memory ends with one line and its exit code.
#include "app/main/out_of_memory.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

using namespace ccixfer::program;

TEST_CASE("out_of_memory__the_process__ends_with_one_line_and_the_code_of_memory") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    end_out_of_memory();
  }
  close(ends[1]);
  std::string said(1000, '\0');
  const ssize_t got = read(ends[0], said.data(), said.size());
  close(ends[0]);
  REQUIRE(got > 0);
  said.resize(static_cast<size_t>(got));
  CHECK(said.starts_with("ccixfer: the host gives no more memory: give less to --memory"));
  CHECK(said.find('\n') == said.size() - 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 1));
}
