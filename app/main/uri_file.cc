#include "app/main/uri_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "app/main/replaced_file.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

// None, or the errno of what could not be written: a full disk takes a part first, and says why at the next call only.
std::optional<int> write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return std::nullopt;
}

}  // namespace

void UriFile::remove() const {
  struct stat now {};
  const bool is_ours = ::lstat(path_.c_str(), &now) == 0 && now.st_dev == written_.st_dev && now.st_ino == written_.st_ino &&
                       now.st_mtim.tv_sec == written_.st_mtim.tv_sec && now.st_mtim.tv_nsec == written_.st_mtim.tv_nsec;
  if (is_ours) ::unlink(path_.c_str());
}

UriFile::~UriFile() {
  if (path_.empty()) return;
  remove();
  loop_.at_abrupt_end({});
}

Result<void> UriFile::write(const std::string& path, const std::vector<std::string>& uris) {
  const auto wrong = [&](int problem) {
    return fail(ErrorKind::usage, fmt::format("cannot write the uri file: {}: {}: give --uri-file a writable place",
                                              printable(path), std::strerror(problem)));
  };
  if (auto may = may_be_replaced(path, "--uri-file"); !may) return may;
  std::string text;
  for (const std::string& uri : uris) text += uri + "\n";
  const std::string staged = fmt::format("{}.{}.tmp", path, ::getpid());
  const int fd = ::open(staged.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return wrong(errno);
  std::optional<int> problem = write_all(fd, text);
  struct stat written {};
  if (!problem && ::fstat(fd, &written) != 0) problem = errno;
  ::close(fd);
  if (!problem && ::rename(staged.c_str(), path.c_str()) != 0) problem = errno;
  if (problem) {
    ::unlink(staged.c_str());
    return wrong(*problem);
  }
  path_ = path;
  written_ = written;
  loop_.at_abrupt_end([this] { remove(); });
  return {};
}

}  // namespace ccixfer::program
