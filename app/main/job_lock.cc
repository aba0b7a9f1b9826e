#include "app/main/job_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/local_kinds.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

constexpr int attempts_max = 100;  // to meet a file that nobody replaces at the same moment

tl::unexpected<Error> cannot(const char* what, const std::string& file, int problem) {
  return fail(ErrorKind::usage, fmt::format("cannot {} the lock file: {}: {}: give --lock a file that can be written", what,
                                            printable(file), std::strerror(problem)));
}

// As the one who has the lock wrote it; it may be anybody's file.
std::string holder_of(int fd) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  std::string number;
  for (ssize_t i = 0; i < got && text[static_cast<size_t>(i)] >= '0' && text[static_cast<size_t>(i)] <= '9'; ++i)
    number += text[static_cast<size_t>(i)];
  return number.empty() ? "another process" : "process " + number;
}

// A mistyped name may be that of somebody's data: only what a lock may have in it is written over. Zeros are what a power cut may
// leave of a number.
bool may_be_written_over(int fd) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  if (got == static_cast<ssize_t>(text.size())) return false;
  return std::all_of(text.begin(), text.begin() + std::max<ssize_t>(got, 0),
                     [](char c) { return (c >= '0' && c <= '9') || c == ' ' || c == '\n' || c == '\0'; });
}

// False: the name leads elsewhere by now, where somebody else may have the lock.
bool is_at(int fd, const std::string& file) {
  struct stat ours {
  }, named{};
  return ::fstat(fd, &ours) == 0 && ::stat(file.c_str(), &named) == 0 && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

}  // namespace

Result<JobLock> JobLock::take(const std::string& file) {
  JobLock lock;
  if (file.empty()) return lock;
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    lock.file_.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
    if (!lock.file_) return cannot("open", file, errno);
    const int fd = lock.file_.get();
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return cannot("lock", file, errno);
      return fail(already_running, fmt::format("the same job is running: {} has the lock: {}: wait for its end, or stop it",
                                               holder_of(fd), printable(file)));
    }
    if (!is_at(fd, file)) continue;
    if (!may_be_written_over(fd))
      return fail(
          ErrorKind::usage,
          fmt::format("--lock: {}: it is no lock, as more than a number is in it: give it a file of its own", printable(file)));
    const std::string number = fmt::format("{}\n", ::getpid());
    if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, number.data(), number.size(), 0) < 0) {
      // The number is for people only: a full disk keeps nobody from the lock.
    }
    return lock;
  }
  return cannot("open", file, EAGAIN);
}

}  // namespace ccixfer::program
