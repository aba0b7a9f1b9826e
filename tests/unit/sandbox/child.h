// What a confined process can do is tried in a child: it enters the plan, does what it is given, and ends with the answer.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>

#include "core/sandbox/sandbox.h"
#include "tests/unit/host/temp_dir.h"

namespace ccixfer::sandbox::test {

using testing::TempDir;

struct Ended {
  int answer = -1;  // of the body: 0 or an errno, by convention
  int signal = 0;
};

inline constexpr int not_confined = 200;

inline Ended await(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

// `before` runs in the child before it is confined; what it returns but 0 is the answer.
inline Ended confined(
    const Plan& plan, const std::function<int()>& body, const Offers& offers = offers_of_kernel(),
    const std::function<int()>& before = [] { return 0; }) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (const int problem = before(); problem != 0) _exit(problem);
    _exit(enter(plan, offers) ? body() : not_confined);
  }
  return await(child);
}

// 0, or the errno of a call that returned below 0.
inline int error_of(long result) { return result < 0 ? errno : 0; }

inline int try_open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  const int error = error_of(fd);
  if (fd >= 0) close(fd);
  return error;
}

inline void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Of /proc/self/status, without the blanks: "CapEff".
inline std::string status_of_self(const std::string& member) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(member + ":", 0) == 0) return line.substr(line.find_first_not_of(" \t", member.size() + 1));
  }
  return "";
}

inline bool has_landlock(int abi = 1) {
  if (offers_of_kernel().landlock_abi >= abi) return true;
  WARN("this kernel has no Landlock of ABI " << abi);
  return false;
}

}  // namespace ccixfer::sandbox::test
