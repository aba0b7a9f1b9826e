#include "app/main/standard_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "app/main/turn_loop.h"
#include "core/base/units.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {
namespace {

const Error told_to_end{ErrorKind::interrupted, "interrupted: by a signal: run the same command again"};

bool is_stored(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

// Like write(2), which a pipe that was ready for some bytes would not let go of before it has taken them all.
ssize_t write_some(int to, const char* bytes, size_t count, bool stored) {
  return ::write(to, bytes, stored ? count : std::min<size_t>(count, PIPE_BUF));
}

Error cannot_write(int problem, const char* what, const char* where) {
  const bool is_full = kind_of_file_errno(problem) == ErrorKind::no_space;
  return {ErrorKind::file_io, fmt::format("{}: {}: {}: {}", what, where, std::strerror(problem),
                                          is_full ? "make room there" : "give it to something that reads all of it")};
}

Result<void> write_all(int to, std::string_view bytes, bool stored, const char* what, const char* where) {
  while (!bytes.empty()) {
    if (!wait_until_ready(to, POLLOUT)) return tl::unexpected(told_to_end);
    const ssize_t wrote = write_some(to, bytes.data(), bytes.size(), stored);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (wrote <= 0) return tl::unexpected(cannot_write(errno, what, where));
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

}  // namespace

bool wait_until_ready(int fd, short events) {
  constexpr int look_every_ms = 100;
  for (;;) {
    if (TurnLoop::is_told_to_end()) return false;
    pollfd ready{fd, events, 0};
    if (::poll(&ready, 1, look_every_ms) > 0) return true;
  }
}

Result<void> write_text(std::string_view text, int to, const char* what) {
  const char* const where = to == STDERR_FILENO ? "standard error" : "standard output";
  return write_all(to, text, is_stored(to), what, where);
}

Result<std::string> read_text(const std::string& file, size_t bytes_max, std::optional<char> end) {
  const bool is_input = file == "-";
  const std::string name = is_input ? "standard input" : printable(file);
  const auto wrong = [&name](const char* what) { return fail(ErrorKind::usage, fmt::format("{}: {}", name, what)); };
  // To open a FIFO would wait for its writer.
  const host::Descriptor own(is_input ? -1 : ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!is_input && !own) return wrong(std::strerror(errno));
  const int fd = is_input ? STDIN_FILENO : own.get();
  std::string text;
  size_t blank = 0;
  std::vector<char> buffer(end ? 1 : 1u << 16);
  while (text.size() <= bytes_max) {
    if (!wait_until_ready(fd, POLLIN)) return tl::unexpected(told_to_end);
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return wrong(std::strerror(errno));
    if (got > 0 && end && buffer.front() == *end && text.empty() && blank++ < bytes_max) continue;
    if (got == 0 || (end && buffer.front() == *end)) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return wrong(fmt::format("more than {} bytes", bytes_max).c_str());
}

Result<host::Descriptor> open_again_and_again(const std::string& file, const std::string& temporary) {
  const auto wrong = [](ErrorKind kind, const std::string& name, int problem) {
    return fail(kind, fmt::format("{}: {}", printable(name), std::strerror(problem)));
  };
  // To open a FIFO would wait for its writer. Of a regular file it means nothing.
  host::Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!in || ::fstat(in.get(), &status) != 0) return wrong(ErrorKind::usage, file, errno);
  if (S_ISDIR(status.st_mode)) return wrong(ErrorKind::usage, file, EISDIR);
  if (S_ISREG(status.st_mode)) return in;
  host::Descriptor copy(::open(temporary.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!copy) return wrong(ErrorKind::file_io, "a copy of " + file + " in " + temporary, errno);
  std::vector<char> buffer(1u << 16);
  for (;;) {
    if (!wait_until_ready(in.get(), POLLIN)) return tl::unexpected(told_to_end);
    const ssize_t got = ::read(in.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return wrong(ErrorKind::usage, file, errno);
    if (got == 0) break;
    for (ssize_t written = 0; written < got;) {
      const ssize_t wrote = ::write(copy.get(), buffer.data() + written, static_cast<size_t>(got - written));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return wrong(kind_of_file_errno(errno), "a copy of " + file + " in " + temporary, errno);
      written += wrote;
    }
  }
  if (::lseek(copy.get(), 0, SEEK_SET) != 0) return wrong(ErrorKind::file_io, file, errno);
  return copy;
}

Result<void> write_out(const std::filesystem::path& file, int to) {
  const auto wrong = [](const char* what) { return tl::unexpected(cannot_write(errno, what, "standard output")); };
  const host::Descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) return wrong("cannot read what was pulled");
  const bool stored = is_stored(to);
  std::vector<char> buffer(1u << 20);
  for (;;) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return wrong("cannot read what was pulled");
    if (got == 0) break;
    if (auto wrote = write_all(to, {buffer.data(), static_cast<size_t>(got)}, stored, "cannot write", "standard output"); !wrote)
      return wrote;
  }
  // A disk that is full, or fails, may say so only now. Of what has no medium (a pipe, a terminal) there is nothing to sync.
  if (::fsync(to) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) return wrong("cannot make it durable");
  return {};
}

}  // namespace ccixfer::program
