#include "app/main/path_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "app/trust/private_file.h"
#include "core/base/log.h"

namespace ccixfer::program {

PathFile::PathFile(const std::string& file, PathTable::WallTime now) : table_(std::move(now)) {
  if (file.empty() || !policy::make_directory_of(file)) return;
  file_.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat stat {};
  if (!file_ || ::fstat(file_.get(), &stat) != 0 || !S_ISREG(stat.st_mode)) {
    log(LogLevel::info, "paths are not remembered: {}: {}", file, file_ ? "it is no file" : std::strerror(errno));
    file_.reset();
    return;
  }
  read();
}

PathFile::~PathFile() {
  if (!file_ || !has_news_ || ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return;
  read();  // what others have written since
  write();
}

void PathFile::remember(std::string_view host, const reliability::KnownPath& path) {
  table_.remember(host, path);
  has_news_ = true;
}

void PathFile::read() {
  std::vector<char> text(path_file_bytes_max);
  size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t n = ::pread(file_.get(), text.data() + bytes, text.size() - bytes, static_cast<off_t>(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes += static_cast<size_t>(n);
  }
  table_.read({text.data(), bytes});
}

void PathFile::write() const {
  const std::string text = table_.text();
  const ssize_t n = ::pwrite(file_.get(), text.data(), text.size(), 0);
  if (n < 0 || ::ftruncate(file_.get(), n) != 0) log(LogLevel::info, "paths are not remembered: {}", std::strerror(errno));
}

}  // namespace ccixfer::program
