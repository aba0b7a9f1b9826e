#include "app/main/failed_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "app/main/confinement.h"
#include "app/main/replaced_file.h"
#include "core/base/hash.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

// The journal has records: one of these bytes, the name, a zero.
constexpr char failed_record = 'F';
constexpr char again_record = 'A';  // as failed, in place of what earlier sessions said
constexpr char delivered_record = 'D';
constexpr char session_record = 'S';  // the next session of a transfer begins; without a name
constexpr char end_record = 'E';      // of a transfer; without a name
constexpr size_t block_bytes = 64u << 10;

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return 0;
}

// A file that nobody else sees, and that goes with the descriptor.
host::Descriptor nameless_file(const std::string& directory) {
  host::Descriptor file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string pattern = directory + "/ccixfer-failed-XXXXXX";  // not every file system has the other way
  file.reset(::mkostemp(pattern.data(), O_CLOEXEC));
  const int problem = errno;
  if (file) ::unlink(pattern.c_str());
  errno = problem;
  return file;
}

using Record = std::function<int(char what, std::string_view path)>;  // 0, or the errno that ends it

// Each record of the journal in turn. 0, or an errno.
int each_record(int fd, const Record& take) {
  if (::lseek(fd, 0, SEEK_SET) != 0) return errno;
  std::string held;
  std::vector<char> block(block_bytes);
  for (;;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    held.append(block.data(), static_cast<size_t>(got));
    size_t from = 0;
    for (size_t end = held.find('\0'); end != std::string::npos; end = held.find('\0', from)) {
      const std::string_view record = std::string_view(held).substr(from, end - from);
      if (const int problem = take(record.front(), record.substr(1)); problem != 0) return problem;
      from = end + 1;
    }
    held.erase(0, from);
  }
}

uint64_t key_of(std::string_view path) { return xxh3_64(std::as_bytes(std::span(path))); }

// Sessions are numbered as they come in the journal.
bool is_last_of_session(char what) { return what == session_record || what == end_record; }

// Which session had the last word on a name that failed before. The same name in another transfer is another file.
class LaterWords {
 public:
  [[nodiscard]] int read(int fd) {
    uint64_t session = 0;
    const int problem = each_record(fd, [&](char what, std::string_view path) {
      if (what == delivered_record || what == again_record) list_.emplace_back(key_of(path), session);
      if (what == end_record) ends_.push_back(session);
      if (is_last_of_session(what)) ++session;
      return 0;
    });
    std::sort(list_.begin(), list_.end());
    return problem;
  }
  [[nodiscard]] bool follow(std::string_view path, uint64_t session) const {
    const auto end = std::lower_bound(ends_.begin(), ends_.end(), session);
    const auto behind =
        std::upper_bound(list_.begin(), list_.end(), std::pair(key_of(path), end != ends_.end() ? *end : UINT64_MAX));
    return behind != list_.begin() && std::prev(behind)->first == key_of(path) && std::prev(behind)->second > session;
  }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> list_;
  std::vector<uint64_t> ends_;  // the last sessions of the transfers
};

}  // namespace

FailedList::FailedList(std::string file, ListFormat format, host::Descriptor journal)
    : file_(std::move(file)), format_(format), journal_(std::move(journal)) {}

Result<std::unique_ptr<FailedList>> FailedList::begin(const std::string& file, ListFormat format,
                                                      const std::string& temporary_directory) {
  if (file.empty()) return std::unique_ptr<FailedList>();
  if (auto may = may_be_replaced(file, "--failed-list"); !may) return tl::unexpected(may.error());
  if (const int problem = ::access(directory_of(file).c_str(), W_OK | X_OK) == 0 ? 0 : errno; problem != 0) {
    return fail(ErrorKind::usage, fmt::format("cannot write the list of what failed: {}: {}: give --failed-list a writable place",
                                              printable(file), std::strerror(problem)));
  }
  host::Descriptor journal = nameless_file(temporary_directory);
  if (!journal) {
    return fail(ErrorKind::usage, fmt::format("cannot make a temporary file: {}: {}: set TMPDIR to a writable directory",
                                              printable(temporary_directory), std::strerror(errno)));
  }
  return std::unique_ptr<FailedList>(new FailedList(file, format, std::move(journal)));
}

void FailedList::session_begins() {
  if (++sessions_ > 1) note(session_record, "");
  had_session_ = true;
  last_failed_.clear();
  unnamed_ = 0;
}

void FailedList::ended(std::string_view path, std::string_view status) {
  if (status == "failed") {
    ++failed_;
    last_failed_ = path;
    return note(failed_record, path);
  }
  const bool is_here = status == "ok" || status == "unchanged";
  if (!is_here || failed_ == 0 || sessions_ < 2) return;
  ++later_words_;
  note(delivered_record, path);
}

void FailedList::failed_again(std::string_view path) {
  if (path == last_failed_) return;  // by another word of this session
  last_failed_ = path;
  ++later_words_;
  note(again_record, path);
}

void FailedList::transfer_ends() {
  unnamed_before_ += std::exchange(unnamed_, 0);
  sessions_ = 0;
  note(end_record, "");
}

void FailedList::note(char what, std::string_view path) {
  buffer_ += what;
  buffer_ += path;
  buffer_ += '\0';
  if (buffer_.size() >= block_bytes) flush();
}

void FailedList::flush() {
  if (problem_ == 0) problem_ = write_all(journal_.get(), buffer_);
  buffer_.clear();
}

Result<void> FailedList::finish(uint64_t& left_out) {
  left_out = 0;
  if (!had_session_) return {};
  flush();
  const std::string staged = fmt::format("{}.{}.tmp", file_, ::getpid());
  host::Descriptor list;
  LaterWords later;
  std::string text;
  if (problem_ == 0 && later_words_ > 0) problem_ = later.read(journal_.get());
  if (problem_ == 0) {
    list.reset(::open(staged.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
    problem_ = list ? 0 : errno;
  }
  if (problem_ == 0) {
    uint64_t session = 0;
    problem_ = each_record(journal_.get(), [&](char what, std::string_view path) {
      if (is_last_of_session(what)) ++session;
      const bool is_failure = what == failed_record || what == again_record;
      if (!is_failure || later.follow(path, session)) return 0;
      const bool lines = format_ == ListFormat::lines;
      if (lines && path.find_first_of("\r\n") != std::string_view::npos) {
        ++left_out;
        return 0;
      }
      if (!path.empty() && (path.front() == '#' || path.front() == ';')) text += "./";
      text += path;
      text += lines ? '\n' : '\0';
      return text.size() < block_bytes ? 0 : write_all(list.get(), std::exchange(text, {}));
    });
  }
  if (problem_ == 0) problem_ = write_all(list.get(), text);
  if (problem_ == 0 && ::fsync(list.get()) != 0) problem_ = errno;
  if (problem_ == 0 && ::rename(staged.c_str(), file_.c_str()) != 0) problem_ = errno;
  if (problem_ == 0) return {};
  if (list) ::unlink(staged.c_str());
  return fail(
      ErrorKind::file_io,
      fmt::format(
          "cannot write the list of what failed: {}: {}: what stands there is of an earlier run: make room for it and run again",
          printable(file_), std::strerror(problem_)));
}

}  // namespace ccixfer::program
