// Listening sockets that a service manager hands over.
#include "core/host/passed_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

namespace ccixfer::host {
namespace {

using Names = std::vector<std::string>;

Names names_of(const char* count, const char* names) {
  const auto passed = passed_sockets_of("7", count, names, 7);
  REQUIRE(passed);
  REQUIRE(passed->names.size() == static_cast<size_t>(passed->count));
  return passed->names;
}

}  // namespace

TEST_CASE("passed_sockets__of_this_process__have_names_where_they_were_given") {
  CHECK(names_of("2", "lan:wan") == Names{"lan", "wan"});
  CHECK(names_of("2", nullptr) == Names{"", ""});
  CHECK(names_of("3", "lan::wan") == Names{"lan", "", "wan"});
  CHECK(names_of("2", "lan") == Names{"lan", ""});
  CHECK(names_of("1", "lan:wan") == Names{"lan"});
  CHECK(names_of("0", "lan").empty());
}

TEST_CASE("passed_sockets__of_another_process_or_none__are_nothing") {
  CHECK(passed_sockets_of("8", "1", "lan", 7).value().count == 0);
  CHECK(passed_sockets_of("", "1", "lan", 7).value().count == 0);
  CHECK(passed_sockets_of(nullptr, "1", "lan", 7).value().count == 0);
  CHECK(passed_sockets_of("7", nullptr, "lan", 7).value().count == 0);
  CHECK(passed_sockets_of("8", "nonsense", nullptr, 7).value().count == 0);
}

TEST_CASE("passed_sockets__a_count_that_cannot_be__is_an_error_that_names_it") {
  for (const char* count : {"-1", "", "x", "1x", "1025", "99999999999999999999"}) {
    const auto passed = passed_sockets_of("7", count, nullptr, 7);
    REQUIRE_FALSE(passed);
    CHECK(passed.error().kind == ErrorKind::usage);
    CHECK(passed.error().message.find("LISTEN_FDS=" + std::string(count)) != std::string::npos);
  }
}

// In a child, whose descriptors from 3 on are ours to give.
TEST_CASE("passed_sockets__taken__are_ours_and_no_program_after_us_has_them") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (fd != passed_first_fd && ::dup2(fd, passed_first_fd) < 0) ::_exit(10);
    ::close(passed_first_fd + 1);
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    ::setenv("LISTEN_FDS", "1", 1);
    ::setenv("LISTEN_FDNAMES", "lan", 1);
    {
      const auto taken = take_passed_sockets();
      if (!taken || taken->size() != 1 || (*taken)[0].name != "lan" || (*taken)[0].fd.get() != passed_first_fd) ::_exit(11);
      if (::fcntl(passed_first_fd, F_GETFD) != FD_CLOEXEC) ::_exit(12);
      for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
        if (std::getenv(variable) != nullptr) ::_exit(13);
      }
      const auto again = take_passed_sockets();
      if (!again || !again->empty()) ::_exit(14);
    }
    if (::fcntl(passed_first_fd, F_GETFD) >= 0) ::_exit(15);
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    ::setenv("LISTEN_FDS", "1", 1);
    ::_exit(take_passed_sockets() ? 16 : 0);  // it is not open any more
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace ccixfer::host
