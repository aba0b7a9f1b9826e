#include "app/trust/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/units.h"
#include "core/host/descriptor.h"

namespace ccixfer::policy {
namespace {

using host::Descriptor;

std::string directory_of(const std::string& file) {
  const size_t slash = file.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : file.substr(0, slash);
}

tl::unexpected<Error> failed(const char* what, const std::string& file, int problem) {
  const ErrorKind kind = kind_of_file_errno(problem) == ErrorKind::no_space ? ErrorKind::no_space : ErrorKind::file_io;
  return fail(kind,
              fmt::format("{}: {}: {}: make it possible, or name another place", what, printable(file), std::strerror(problem)));
}

// Mostly a sentence of its own, so that what to do is exact.
tl::unexpected<Error> refused(const std::string& file, std::string_view what, std::string_view what_to_do) {
  return fail(ErrorKind::usage, fmt::format("{}: {}: {}", printable(file), what, what_to_do));
}

Result<void> check(const std::string& file, const struct stat& stat, Others others) {
  if (!S_ISREG(stat.st_mode)) return refused(file, "is no regular file", "give one");
  if (stat.st_uid != geteuid() && stat.st_uid != 0)
    return refused(file, fmt::format("belongs to another account (uid {})", stat.st_uid), "chown it, or name another file");
  const mode_t open_to = stat.st_mode & 0777;
  if (others == Others::get_nothing && (open_to & 077) != 0)
    return refused(file, "others may read it", fmt::format("chmod 600 {}", printable(file)));
  if ((open_to & 022) != 0) return refused(file, "others may write it", fmt::format("chmod go-w {}", printable(file)));
  return {};
}

// 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

int sync_directory(const std::string& directory) {
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::fsync(fd.get()) == 0 ? 0 : errno;
}

int write_staged(const std::string& staged, std::string_view content) {
  ::unlink(staged.c_str());  // of a process that had our number and died
  const Descriptor fd(::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return errno;
  if (const int problem = write_all(fd.get(), content); problem != 0) return problem;
  return ::fsync(fd.get()) == 0 ? 0 : errno;
}

}  // namespace

Result<std::optional<std::string>> read_trusted(const std::string& file, Others others, size_t bytes_max) {
  // Not blocking: it may be a pipe that nobody writes to.
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd && errno == ENOENT) return std::optional<std::string>();
  if (!fd) return refused(file, std::strerror(errno), "make it readable for this account");
  struct stat stat {};
  if (::fstat(fd.get(), &stat) != 0) return failed("cannot read", file, errno);
  if (const auto fine = check(file, stat, others); !fine) return tl::unexpected(fine.error());
  if (static_cast<uint64_t>(stat.st_size) > bytes_max)
    return refused(file, "is too long", fmt::format("at most {} bytes", bytes_max));
  std::string content(static_cast<size_t>(stat.st_size), '\0');
  size_t have = 0;
  while (have < content.size()) {
    const ssize_t n = ::read(fd.get(), content.data() + have, content.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("cannot read", file, errno);
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  content.resize(have);
  return std::optional(std::move(content));
}

Result<void> make_directory_of(const std::string& file) {
  const std::string directory = directory_of(file);
  for (size_t at = 1; at != std::string::npos;) {
    at = directory.find('/', at);
    const std::string part = directory.substr(0, at);
    if (at != std::string::npos) ++at;
    if (part.empty() || ::mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    // One that exists on a read-only file system says so first.
    struct stat stat {};
    const int problem = errno;
    if (::stat(part.c_str(), &stat) != 0) return failed("cannot make the directory", part, problem);
  }
  return {};
}

Result<bool> write_private(const std::string& file, std::string_view content, Existing existing) {
  const std::string staged = fmt::format("{}.{}.tmp", file, ::getpid());
  int problem = write_staged(staged, content);
  bool kept = false;
  if (problem == 0 && existing == Existing::replace) {
    if (::rename(staged.c_str(), file.c_str()) != 0) problem = errno;
  } else if (problem == 0) {
    if (::link(staged.c_str(), file.c_str()) != 0) problem = errno;
    kept = problem == EEXIST;
  }
  if (problem != 0 || existing == Existing::keep) ::unlink(staged.c_str());
  if (kept) return false;
  if (problem == 0) problem = sync_directory(directory_of(file));
  if (problem != 0) return failed("cannot write", file, problem);
  return true;
}

Result<void> append_private(const std::string& file, std::string_view text) {
  const Descriptor fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  if (!fd) return failed("cannot write", file, errno);
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  if (n < 0) return failed("cannot write", file, errno);
  if (static_cast<size_t>(n) != text.size()) return failed("cannot write", file, ENOSPC);
  if (::fsync(fd.get()) != 0) return failed("cannot write", file, errno);
  if (const int problem = sync_directory(directory_of(file)); problem != 0) return failed("cannot write", file, problem);
  return {};
}

}  // namespace ccixfer::policy
