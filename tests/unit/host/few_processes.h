// What happens where the account may have so many processes and threads only (RLIMIT_NPROC), which root may always have: tried in a
// child of an account that has nothing else running.
#pragma once
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>

namespace ccixfer::testing {

// Whether `body` says true in a child that may have `processes_max` threads, its first one too. One that ends otherwise says no.
inline bool with_few_processes(rlim_t processes_max, const std::function<bool()>& body) {
  constexpr uid_t account = 54'321;
  constexpr int yes = 7;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit limit{processes_max, processes_max};
    const bool is_limited =
        setrlimit(RLIMIT_NPROC, &limit) == 0 && (getuid() != 0 || (setgid(account) == 0 && setuid(account) == 0));
    _exit(is_limited && body() ? yes : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == yes;
}

}  // namespace ccixfer::testing
