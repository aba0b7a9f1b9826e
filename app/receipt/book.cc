#include "app/receipt/book.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "app/session/sqlite_handles.h"
#include "core/base/units.h"
#include "core/trust/peer_id.h"

namespace ccixfer::receipt {
namespace {

// Its name is empty: SQLite keeps it in memory, and in a file without a name in $TMPDIR or /var/tmp when it is more than the cache.
constexpr const char* schema = R"sql(
  PRAGMA journal_mode=OFF;
  PRAGMA synchronous=OFF;
  PRAGMA locking_mode=EXCLUSIVE;
  CREATE TABLE entry(key BLOB NOT NULL, round INTEGER NOT NULL, type INTEGER NOT NULL, size INTEGER NOT NULL, digest INTEGER NOT NULL,
                     line BLOB NOT NULL, PRIMARY KEY(key, round)) WITHOUT ROWID;
)sql";

constexpr size_t write_bytes = 256u << 10;

using session::Database;
using session::Statement;

constexpr int beside_names_max = 100;

tl::unexpected<Error> cannot(const std::string& file, int negative_errno) {
  const ErrorKind kind = kind_of_file_errno(-negative_errno) == ErrorKind::no_space ? ErrorKind::no_space : ErrorKind::file_io;
  return fail(kind, fmt::format("cannot write the receipt: {}: {}: the transfer itself is done", printable(file),
                                std::generic_category().message(-negative_errno)));
}

// A file that is hashed as it is written.
class Output {
 public:
  Output(ports::FileSystem& files, int fd) : files_(files), fd_(fd) {}
  void add(std::string_view text, bool is_signed = true) {
    if (is_signed) hash_.update(as_bytes(text));
    waiting_ += text;
    if (waiting_.size() >= write_bytes) flush();
  }
  void flush() {
    Bytes rest = as_bytes(waiting_);
    while (!rest.empty() && error_ == 0) {
      const int64_t wrote = files_.pwrite(fd_, rest, written_);
      if (wrote <= 0) {
        error_ = wrote < 0 ? static_cast<int>(wrote) : -ENOSPC;
        break;
      }
      written_ += static_cast<uint64_t>(wrote);
      rest = rest.subspan(static_cast<size_t>(wrote));
    }
    waiting_.clear();
  }
  [[nodiscard]] trust::Sha256Digest digest() { return hash_.digest(); }
  [[nodiscard]] int error() const { return error_; }

 private:
  ports::FileSystem& files_;
  const int fd_;
  trust::Sha256 hash_;
  std::string waiting_;
  uint64_t written_ = 0;
  int error_ = 0;
};

}  // namespace

struct Book::Impl {
  Database database;
  Statement insert;
  std::string transfer;                        // of this round
  int64_t round = 0;                           // of each transfer that is in it; a later one counts
  std::string transfers;                       // of all rounds
  uint64_t unlisted = 0, unlisted_before = 0;  // in this round, and in those before it
  std::string problem;                         // the first one

  bool run(const char* sql) { return check(sqlite3_exec(database.get(), sql, nullptr, nullptr, nullptr)); }
  Statement prepare(const char* sql) {
    sqlite3_stmt* raw = nullptr;
    check(sqlite3_prepare_v2(database.get(), sql, -1, &raw, nullptr));
    return Statement(raw);
  }
  bool check(int code) {
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return true;
    if (problem.empty()) problem = database ? sqlite3_errmsg(database.get()) : sqlite3_errstr(code);
    return false;
  }
  void put_entries(Output& out, End& end, uint64_t& without_digest);
};

Book::Book() : impl_(std::make_unique<Impl>()) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2("", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  impl_->database.reset(raw);
  if (!impl_->check(code)) return;
  impl_->run(schema);
  impl_->run(fmt::format("PRAGMA cache_size=-{}", cache_kib).c_str());
  impl_->insert = impl_->prepare("INSERT OR REPLACE INTO entry(key, round, type, size, digest, line) VALUES(?, ?, ?, ?, ?, ?)");
}
Book::~Book() = default;

void Book::begin(std::string_view transfer) {
  Impl& impl = *impl_;
  if (!impl.problem.empty()) return;
  if (impl.round == 0 || impl.transfer != transfer) {
    ++impl.round;
    impl.transfer = transfer;
    impl.unlisted_before += std::exchange(impl.unlisted, 0);
    impl.transfers += (impl.transfers.empty() ? "" : " ") + impl.transfer;
    return;
  }
  impl.unlisted = 0;
  impl.run(fmt::format("DELETE FROM entry WHERE round = {}", impl.round).c_str());
}

void Book::on_entry(const Entry& entry) {
  Impl& impl = *impl_;
  if (!impl.problem.empty()) return;
  const std::string key = order_key(entry.path), line = encode(entry);
  sqlite3_stmt* insert = impl.insert.get();
  sqlite3_bind_blob(insert, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
  sqlite3_bind_int64(insert, 2, impl.round);
  sqlite3_bind_int64(insert, 3, static_cast<int64_t>(entry.type));
  sqlite3_bind_int64(insert, 4, static_cast<int64_t>(entry.size_bytes));
  sqlite3_bind_int64(insert, 5, entry.sha256 ? 1 : 0);
  sqlite3_bind_blob(insert, 6, line.data(), static_cast<int>(line.size()), SQLITE_STATIC);
  impl.check(sqlite3_step(insert));
  sqlite3_reset(insert);
}

void Book::on_unlisted() { ++impl_->unlisted; }

void Book::Impl::put_entries(Output& out, End& end, uint64_t& without_digest) {
  const Statement rows = prepare(
      "SELECT line, type, size, digest FROM entry AS e WHERE round = (SELECT max(round) FROM entry WHERE key = e.key) ORDER BY "
      "key");
  int code = rows ? SQLITE_ROW : SQLITE_ERROR;
  while (rows && (code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    const auto* at = static_cast<const char*>(sqlite3_column_blob(rows.get(), 0));
    out.add({at, static_cast<size_t>(sqlite3_column_bytes(rows.get(), 0))});
    const auto type = static_cast<EntryType>(sqlite3_column_int(rows.get(), 1));
    if (type == EntryType::directory) ++end.directories;
    if (type == EntryType::link) ++end.links;
    if (type != EntryType::file) continue;
    ++end.files;
    end.bytes += static_cast<uint64_t>(sqlite3_column_int64(rows.get(), 2));
    if (sqlite3_column_int(rows.get(), 3) == 0) ++without_digest;
  }
  check(code);
}

Result<Gaps> Book::write(ports::FileSystem& files, const std::string& file, const Header& given,
                         const std::optional<trust::Identity>& identity) {
  Header header = given;
  if (header.transfer.empty()) header.transfer = impl_->transfers;
  constexpr int here = ports::FileSystem::no_directory;
  // What stands there may be the user's.
  std::string beside;
  int fd = -EEXIST;
  for (int number = 0; fd == -EEXIST && number < beside_names_max; ++number) {
    beside = fmt::format("{}.{}-{}.tmp", file, ::getpid(), number);
    fd = files.open(here, beside, {.mode = ports::OpenMode::write, .create = true, .exclusive = true}, 0666);
  }
  if (fd < 0) return cannot(beside, fd);
  Output out(files, fd);
  End end;
  Gaps gaps{0, impl_->unlisted_before + impl_->unlisted};
  out.add(encode(header));
  impl_->put_entries(out, end, gaps.without_digest);
  out.add(encode(end));
  Signed last;
  if (identity) {
    last.id = trust::to_string(identity->id());
    const trust::Sha256Digest digest = out.digest();
    last.signature = trust::sign(*identity, signature_purpose, std::as_bytes(std::span(digest)));
  }
  out.add(encode(last), false);
  out.flush();
  int error = out.error();
  if (error >= 0) error = files.fsync(fd);
  files.close(fd);
  if (error >= 0 && impl_->problem.empty()) error = files.rename_at(here, beside, here, file);
  if (error < 0 || !impl_->problem.empty()) files.unlink_at(here, beside, false);
  if (!impl_->problem.empty())
    return fail(ErrorKind::file_io,
                fmt::format("cannot write the receipt: {}: the list of entries: {}: the transfer itself is done", printable(file),
                            impl_->problem));
  if (error < 0) return cannot(file, error);
  const std::string parent = std::filesystem::path(file).parent_path().string();
  const int directory = files.open(here, parent.empty() ? "." : parent, {.directory = true}, 0);
  if (directory >= 0) {
    error = files.fsync(directory);
    files.close(directory);
  }
  if (error < 0) return cannot(file, error);
  return gaps;
}

}  // namespace ccixfer::receipt
