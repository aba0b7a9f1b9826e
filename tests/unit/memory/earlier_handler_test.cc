// Who handled missing pages before there was a view is asked for those that are not of one. The handler of views is set once a
// process, so each way to have handled them is tried in a process that is nothing but this program, begun again with a hidden case.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/memory/file_view.h"
#include "core/memory/pool.h"

using namespace ccixfer;
using namespace ccixfer::memory;

namespace {

constexpr size_t page = 4096;
constexpr int plain_was_asked = 41, telling_was_asked = 42, told_wrongly = 43, nobody_was_asked = 44;
const volatile char* missing = nullptr;

void plain(int signal) { ::_exit(signal == SIGBUS ? plain_was_asked : told_wrongly); }
void telling(int signal, siginfo_t* info, void* context) {
  const bool right = signal == SIGBUS && info->si_addr == const_cast<const char*>(missing) && context != nullptr;
  ::_exit(right ? telling_was_asked : told_wrongly);
}

int ended_with(const char* before) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(1);
    ::close(2);
    ::setenv("EARLIER_HANDLER", before, 1);
    ::execl("/proc/self/exe", "unit_memory", "earlier_handler__in_a_process_of_its_own", nullptr);
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("file_view__a_missing_page_that_is_not_of_a_view__goes_to_who_handled_it_before") {
  const int asked = ended_with("plain");
  REQUIRE(WIFEXITED(asked));
  CHECK(WEXITSTATUS(asked) == plain_was_asked);
  const int told = ended_with("telling");
  REQUIRE(WIFEXITED(told));
  CHECK(WEXITSTATUS(told) == telling_was_asked);
  // The system ends who reads a missing page, even if he ignores the signal, and does not take "ignored" for a function.
  for (const char* nobody : {"ignored", "none"}) {
    INFO(nobody);
    const int status = ended_with(nobody);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGBUS);
  }
}

TEST_CASE("earlier_handler__in_a_process_of_its_own", "[.]") {
  const char* wanted = std::getenv("EARLIER_HANDLER");
  const std::string before = wanted == nullptr ? "none" : wanted;
  struct sigaction action {};
  if (before == "plain") {
    action.sa_handler = plain;
  } else if (before == "telling") {
    action.sa_sigaction = telling;
    action.sa_flags = SA_SIGINFO;
  } else {
    action.sa_handler = before == "ignored" ? SIG_IGN : SIG_DFL;
  }
  REQUIRE(::sigaction(SIGBUS, &action, nullptr) == 0);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  REQUIRE(::sigaction(SIGSEGV, &standard, nullptr) == 0);  // nobody else turns it into an exit code
  FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  REQUIRE(::ftruncate(::fileno(file), 2 * page) == 0);
  Pool pool(page, 1);
  Loan loan = pool.lend();
  REQUIRE(show_file(loan.bytes(), ::fileno(file), 0) == 0);
  loan.shows_file(page);
  void* theirs = ::mmap(nullptr, page, PROT_READ, MAP_SHARED, ::fileno(file), page);
  REQUIRE(theirs != MAP_FAILED);
  missing = static_cast<const volatile char*>(theirs);
  REQUIRE(::ftruncate(::fileno(file), page) == 0);
  static_cast<void>(missing[0]);
  ::_exit(nobody_was_asked);
}
