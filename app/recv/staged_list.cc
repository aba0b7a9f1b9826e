#include "app/recv/staged_list.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "app/recv/held.h"
#include "app/recv/names.h"
#include "app/recv/pieces.h"
#include "app/session/limits.h"
#include "app/session/sqlite_handles.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

constexpr int tries = 10;
constexpr size_t copy_bytes = 256u << 10;
constexpr std::array suffixes{"", "-wal", "-journal"};

tl::unexpected<Error> cannot(const char* what, const std::string& path, int negative_errno) {
  return fail(ErrorKind::file_io,
              fmt::format("cannot {}: {}: {}", what, printable(path), std::generic_category().message(-negative_errno)));
}

// A directory of ours for the copy, which goes with it.
class Scratch {
 public:
  Scratch(ports::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
    for (int i = 0; i < 100 && fd_ < 0; ++i) {
      directory_ = fmt::format("{}/ccixfer-status-{:x}-{}", path_, reinterpret_cast<uintptr_t>(this), i);
      error_ = files_.mkdir_at(ports::FileSystem::no_directory, directory_, 0700);
      if (error_ >= 0) error_ = fd_ = files_.open(ports::FileSystem::no_directory, directory_, {.directory = true}, 0);
      if (error_ != -EEXIST) break;
    }
  }
  ~Scratch() {
    if (fd_ < 0) return;
    clear();
    files_.close(fd_);
    files_.unlink_at(ports::FileSystem::no_directory, directory_, true);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void clear() const {
    for (const char* suffix : {"", "-wal", "-journal", "-shm"}) files_.unlink_at(fd_, std::string(ledger_name) + suffix, false);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int error() const { return std::min(error_, 0); }
  [[nodiscard]] std::string file() const { return directory_ + "/" + std::string(ledger_name); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ports::FileSystem& files_;
  const std::string path_;
  std::string directory_;
  int fd_ = -1;
  int error_ = 0;
};

int copy_file(ports::FileSystem& files, int from_directory, int to_directory, const std::string& name) {
  const int from = files.open(from_directory, name, {}, 0);
  if (from == -ENOENT) return 0;
  if (from < 0) return from;
  const HeldFile source(files, from);
  const int to = files.open(to_directory, name, {.mode = ports::OpenMode::write, .create = true, .exclusive = true}, 0600);
  if (to < 0) return to;
  const HeldFile target(files, to);
  std::vector<std::byte> buffer(copy_bytes);
  for (uint64_t at = 0;;) {
    const int64_t got = files.pread(from, buffer, at);
    if (got <= 0) return static_cast<int>(got);
    if (const int error = write_all(files, to, Bytes(buffer).first(static_cast<size_t>(got)), at); error < 0) return error;
    at += static_cast<uint64_t>(got);
  }
}

// What tells that somebody wrote: sizes and times of the database's files.
using Marks = std::array<std::optional<ports::FileStat>, suffixes.size()>;
Marks marks_of(ports::FileSystem& files, int staging) {
  Marks marks;
  for (size_t i = 0; i < suffixes.size(); ++i) {
    ports::FileStat stat;
    if (files.stat_at(staging, std::string(ledger_name) + suffixes[i], stat, false) >= 0) marks[i] = stat;
  }
  return marks;
}
bool are_same(const Marks& a, const Marks& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const auto& one, const auto& other) {
    if (!one || !other) return one.has_value() == other.has_value();
    return one->inode == other->inode && one->size_bytes == other->size_bytes && one->mtime == other->mtime &&
           one->ctime == other->ctime;
  });
}

std::string text_of(sqlite3_stmt* row, int column) {
  const auto* at = static_cast<const char*>(sqlite3_column_blob(row, column));
  return at == nullptr ? std::string() : std::string(at, static_cast<size_t>(sqlite3_column_bytes(row, column)));
}

bool read_key(sqlite3_stmt* row, int column, Hash128& key) {
  if (sqlite3_column_bytes(row, column) != 16) return false;
  const auto* at = static_cast<const unsigned char*>(sqlite3_column_blob(row, column));
  for (size_t i = 0; i < 8; ++i) {
    key.low |= uint64_t{at[i]} << (8 * i);
    key.high |= uint64_t{at[8 + i]} << (8 * i);
  }
  return true;
}

// SQLITE_DONE, or what is wrong with the copy.
int read_copy(ports::FileSystem& files, int staging, const std::string& file, const std::function<void(const StagedEntry&)>& each,
              uint64_t& count) {
  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  const session::Database database(raw);
  if (code == SQLITE_OK) code = sqlite3_exec(raw, "PRAGMA locking_mode=EXCLUSIVE", nullptr, nullptr, nullptr);
  sqlite3_stmt* statement = nullptr;
  // Before the version with notes there is nothing to tell of size and peer.
  if (code == SQLITE_OK) {
    code = sqlite3_prepare_v2(
        raw,
        "SELECT f.path, f.key, f.version, f.size, f.peer, f.since, (SELECT count(*) FROM piece WHERE file = f.id) "
        "FROM file AS f ORDER BY f.path",
        -1, &statement, nullptr);
  }
  const session::Statement rows(statement);
  if (code != SQLITE_OK) return code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Hash128 key{};
    ports::FileStat stat;
    if (!read_key(statement, 1, key)) return SQLITE_CORRUPT;
    const std::string name = staged_name(key, static_cast<uint64_t>(sqlite3_column_int64(statement, 2)));
    if (files.stat_at(staging, name, stat, false) < 0)
      continue;  // rows without a file are of no use, and go when the root is opened
    StagedEntry entry;
    entry.path = text_of(statement, 0);
    entry.size_bytes = static_cast<uint64_t>(sqlite3_column_int64(statement, 3));
    entry.peer = text_of(statement, 4);
    entry.since_s = sqlite3_column_int64(statement, 5);
    entry.bytes = static_cast<uint64_t>(sqlite3_column_int64(statement, 6)) * session::piece_bytes;
    if (entry.size_bytes > 0) entry.bytes = std::min(entry.bytes, entry.size_bytes);
    entry.active_s = stat.ctime.seconds;
    ++count;
    each(entry);
  }
  return code;
}

}  // namespace

Result<uint64_t> list_staged(ports::FileSystem& files, const std::string& root, const std::string& scratch,
                             const std::function<void(const StagedEntry&)>& each) {
  const int fd = files.open(ports::FileSystem::no_directory, root, {.directory = true}, 0);
  if (fd < 0) return cannot("open the directory", root, fd);
  const HeldFile root_directory(files, fd);
  const int staging = files.open(fd, staging_name, {.directory = true}, 0);
  if (staging == -ENOENT) return uint64_t{0};
  const std::string staging_path = root + "/" + std::string(staging_name);
  if (staging < 0) return cannot("read", staging_path, staging);
  const HeldFile staging_directory(files, staging);
  const Scratch copy(files, scratch);
  if (copy.error() < 0) return cannot("make a directory for a copy of the ledger in", copy.path(), copy.error());
  for (int tried = 0; tried < tries; ++tried) {
    copy.clear();
    const Marks before = marks_of(files, staging);
    if (!before.front()) return uint64_t{0};
    for (const char* suffix : suffixes) {
      if (const int error = copy_file(files, staging, copy.fd(), std::string(ledger_name) + suffix); error < 0)
        return cannot("copy the ledger of", staging_path, error);
    }
    if (!are_same(before, marks_of(files, staging))) continue;  // somebody wrote meanwhile
    uint64_t count = 0;
    std::vector<StagedEntry> entries;  // unfinished files only
    const int code = read_copy(
        files, staging, copy.file(), [&](const StagedEntry& entry) { entries.push_back(entry); }, count);
    if (code != SQLITE_DONE) continue;
    for (const StagedEntry& entry : entries) each(entry);
    return count;
  }
  return fail(ErrorKind::file_io, fmt::format("the ledger cannot be read: {}: it is damaged, or changes all the time: try again",
                                              printable(staging_path)));
}

}  // namespace ccixfer::recv
