// Our own broken invariants end the process, with one line.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

// Catch2 has a macro of that name too: the one that is tested here is ours.
#undef CHECK
#include "core/base/check.h"

namespace {
void broken(int value) { CHECK(value == 1); }
}  // namespace

TEST_CASE("check__failed__says_what_and_where_and_ends_the_process") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], 2);
    broken(2);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text(200, '\0');
  ssize_t got = 0;
  size_t size = 0;
  while ((got = ::read(ends[0], text.data() + size, text.size() - size)) > 0) size += static_cast<size_t>(got);
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  text.resize(size);
  REQUIRE(text.rfind("ccixfer: bug: CHECK(value == 1) failed at ", 0) == 0);
  REQUIRE(text.find("check_test.cc:") != std::string::npos);
  REQUIRE(text.back() == '\n');
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGABRT);
}
