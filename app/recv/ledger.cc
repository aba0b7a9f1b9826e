#include "app/recv/ledger.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "app/recv/names.h"
#include "app/recv/task.h"
#include "app/session/sqlite_handles.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

constexpr int application_id = 0x63636c67;  // "cclg": tells our database from a foreign one
constexpr int schema_version = 3;
// Of the same tables without what is for people.
constexpr int schema_version_without_notes = 2;
// Its rows have versions of files that no source gives any more: they go, and with them what is staged. No table is another.
constexpr int schema_version_before = 1;
constexpr int damaged_copies_max = 16;

constexpr const char* add_notes = R"sql(
  ALTER TABLE file ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE file ADD COLUMN peer BLOB NOT NULL DEFAULT x'';
  ALTER TABLE file ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
)sql";

constexpr const char* schema = R"sql(
  CREATE TABLE file(id INTEGER PRIMARY KEY, key BLOB NOT NULL, version INTEGER NOT NULL, path BLOB NOT NULL,
                    size INTEGER NOT NULL DEFAULT 0, peer BLOB NOT NULL DEFAULT x'', since INTEGER NOT NULL DEFAULT 0,
                    UNIQUE(key, version));
  CREATE TABLE piece(file INTEGER NOT NULL, number INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(file, number)) WITHOUT ROWID;
)sql";

using session::Database;
using session::Statement;

std::array<std::byte, 16> to_blob(const Hash128& hash) {
  std::array<std::byte, 16> blob;
  for (size_t i = 0; i < 8; ++i) {
    blob[i] = static_cast<std::byte>(hash.low >> (8 * i));
    blob[8 + i] = static_cast<std::byte>(hash.high >> (8 * i));
  }
  return blob;
}

bool from_blob(sqlite3_stmt* statement, int column, Hash128& hash) {
  if (sqlite3_column_bytes(statement, column) != 16) return false;
  const auto* at = static_cast<const unsigned char*>(sqlite3_column_blob(statement, column));
  hash = {};
  for (size_t i = 0; i < 8; ++i) {
    hash.low |= uint64_t{at[i]} << (8 * i);
    hash.high |= uint64_t{at[8 + i]} << (8 * i);
  }
  return true;
}

// What a result code of SQLite says of the file: damaged ones are moved aside, others are the world's failure.
bool is_damage(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_SCHEMA || primary == SQLITE_FORMAT ||
         primary == SQLITE_ERROR || primary == SQLITE_MISMATCH;
}

// Whether a database that is opened again may fare better.
bool may_pass(int code) { return (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CONSTRAINT || is_damage(code); }

// SQLite has a code of its own for a disk that is full at a write, and none for a quota, or for a disk that says so when it is
// synced.
bool is_out_of_space(sqlite3* database, int code) {
  const int primary = code & 0xff;
  if (primary == SQLITE_FULL) return true;
  if (database == nullptr || (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN)) return false;
  int of_database = 0, of_journal = 0;
  sqlite3_file* journal = nullptr;
  sqlite3_file_control(database, "main", SQLITE_FCNTL_LAST_ERRNO, &of_database);
  sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &journal);
  if (journal != nullptr && journal->pMethods != nullptr)
    journal->pMethods->xFileControl(journal, SQLITE_FCNTL_LAST_ERRNO, &of_journal);
  return is_no_space(sqlite3_system_errno(database)) || is_no_space(of_database) || is_no_space(of_journal);
}

Error to_error(sqlite3* database, int code, std::string_view doing) {
  const char* words = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  const char* name = database != nullptr ? sqlite3_db_filename(database, "main") : nullptr;
  const std::string file = name != nullptr && *name != '\0' ? printable(name) : std::string(ledger_name);
  switch (is_out_of_space(database, code) ? SQLITE_FULL : code & 0xff) {
    case SQLITE_FULL:
      return {ErrorKind::no_space,
              fmt::format("no room for the ledger ({}): {}: free some space and run again to resume", words, file)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorKind::file_io,
              fmt::format("another ccixfer is writing below this root: {} is locked: wait until it ends, or give another directory",
                          file)};
    default:
      return {ErrorKind::file_io,
              fmt::format("the ledger fails to {} ({}): {}: check the directory and its disk", doing, words, file)};
  }
}

int run(sqlite3* database, const char* sql) { return sqlite3_exec(database, sql, nullptr, nullptr, nullptr); }

// First column of the first row; SQLITE_ROW or an error.
int read_text(sqlite3* database, const char* sql, std::string& text) {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(database, sql, -1, &raw, nullptr);
  const Statement statement(raw);
  if (code != SQLITE_OK) return code;
  code = sqlite3_step(raw);
  if (code == SQLITE_ROW) {
    const auto* at = sqlite3_column_text(raw, 0);
    text = at != nullptr ? reinterpret_cast<const char*>(at) : "";
  }
  return code;
}

}  // namespace

struct Ledger::Impl {
  struct Row {
    uint64_t version = 0;
    int64_t id = 0;
  };
  Impl(ports::FileSystem& file_system, int staging_fd, std::string staging_path, const char* vfs_name)
      : fs(file_system), staging(staging_fd), path(std::move(staging_path)), vfs(vfs_name) {}
  ports::FileSystem& fs;
  const int staging;
  const std::string path;
  const char* const vfs;
  mutable std::mutex mutex;
  Database database;
  Statement insert_file, insert_piece, select_pieces, delete_pieces, delete_file;
  std::unordered_multimap<Hash128, Row, KeyHash> files;  // the file table in memory: unfinished files only
  bool moved_aside = false;

  Result<void> begin();
  Result<void> begin_if_closed() { return database ? Result<void>() : begin(); }
  void close();
  int open(const std::string& file);
  int check_schema();
  int prepare();
  int load_files();
  int64_t find(const File& file) const;
  int insert(const Addition& addition, std::vector<std::pair<Hash128, Row>>& added);
  int read(int64_t id, std::vector<Piece>& pieces);  // SQLITE_DONE, or an error
  int erase(const std::vector<int64_t>& ids);
  template <typename Work>
  Result<void> transact(std::string_view doing, Work work);
};

void Ledger::Impl::close() {
  for (Statement* statement : {&insert_file, &insert_piece, &select_pieces, &delete_pieces, &delete_file}) statement->reset();
  database.reset();
  files.clear();
}

int Ledger::Impl::open(const std::string& file) {
  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs);
  database.reset(raw);
  if (code != SQLITE_OK) return code;
  sqlite3_extended_result_codes(raw, 1);
  // EXCLUSIVE before the first access: WAL then needs no shared memory, and a second process is told at once.
  std::string mode;
  if (code = run(raw, "PRAGMA locking_mode=EXCLUSIVE"); code != SQLITE_OK) return code;
  code = read_text(raw, "PRAGMA journal_mode=WAL", mode);
  if (code != SQLITE_ROW || mode != "wal") code = read_text(raw, "PRAGMA journal_mode=DELETE", mode);
  if (code != SQLITE_ROW) return code;
  if (code = run(raw, "PRAGMA synchronous=FULL"); code != SQLITE_OK) return code;
  if (code = check_schema(); code != SQLITE_OK) return code;
  if (code = prepare(); code != SQLITE_OK) return code;
  return load_files();
}

int Ledger::Impl::check_schema() {
  sqlite3* raw = database.get();
  // Takes the exclusive lock, so that a second process fails here and not at its first transaction.
  int code = run(raw, "BEGIN IMMEDIATE");
  if (code != SQLITE_OK) return code;
  std::string tables, identity, version, health;
  code = read_text(raw, "SELECT count(*) FROM sqlite_master", tables);
  if (code == SQLITE_ROW) code = read_text(raw, "PRAGMA application_id", identity);
  if (code == SQLITE_ROW) code = read_text(raw, "PRAGMA user_version", version);
  if (code != SQLITE_ROW) return code;
  if (tables == "0") {
    code = run(raw, schema);
    if (code == SQLITE_OK) code = run(raw, fmt::format("PRAGMA application_id={}", application_id).c_str());
    if (code == SQLITE_OK) code = run(raw, fmt::format("PRAGMA user_version={}", schema_version).c_str());
    return code == SQLITE_OK ? run(raw, "COMMIT") : code;
  }
  if (identity == fmt::format("{}", application_id) && version == fmt::format("{}", schema_version_before)) {
    code = run(raw, "DELETE FROM piece");
    if (code == SQLITE_OK) code = run(raw, "DELETE FROM file");
    if (code != SQLITE_OK) return code;
    version = fmt::format("{}", schema_version_without_notes);
  }
  if (identity == fmt::format("{}", application_id) && version == fmt::format("{}", schema_version_without_notes)) {
    code = run(raw, add_notes);
    if (code == SQLITE_OK) code = run(raw, fmt::format("PRAGMA user_version={}", schema_version).c_str());
    if (code != SQLITE_OK) return code;
    version = fmt::format("{}", schema_version);
  }
  if (identity != fmt::format("{}", application_id) || version != fmt::format("{}", schema_version)) return SQLITE_NOTADB;
  code = read_text(raw, "PRAGMA quick_check(1)", health);
  if (code != SQLITE_ROW) return code;
  if (health != "ok") return SQLITE_CORRUPT;
  return run(raw, "COMMIT");
}

int Ledger::Impl::prepare() {
  const auto make = [&](Statement& statement, const char* sql) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(database.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    statement.reset(raw);
    return code;
  };
  int code = make(insert_file, "INSERT INTO file(key, version, path, size, peer, since) VALUES(?, ?, ?, ?, ?, ?)");
  if (code == SQLITE_OK) code = make(insert_piece, "INSERT OR REPLACE INTO piece(file, number, hash) VALUES(?, ?, ?)");
  if (code == SQLITE_OK) code = make(select_pieces, "SELECT number, hash FROM piece WHERE file = ? ORDER BY number");
  if (code == SQLITE_OK) code = make(delete_pieces, "DELETE FROM piece WHERE file = ?");
  if (code == SQLITE_OK) code = make(delete_file, "DELETE FROM file WHERE id = ?");
  return code;
}

int Ledger::Impl::load_files() {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(database.get(), "SELECT id, key, version FROM file", -1, &raw, nullptr);
  const Statement statement(raw);
  if (code != SQLITE_OK) return code;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    Hash128 key;
    if (!from_blob(raw, 1, key)) return SQLITE_CORRUPT;
    files.emplace(key, Row{static_cast<uint64_t>(sqlite3_column_int64(raw, 2)), sqlite3_column_int64(raw, 0)});
  }
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

int64_t Ledger::Impl::find(const File& file) const {
  const auto [first, last] = files.equal_range(file.key);
  for (auto at = first; at != last; ++at) {
    if (at->second.version == file.version) return at->second.id;
  }
  return 0;
}

int Ledger::Impl::insert(const Addition& addition, std::vector<std::pair<Hash128, Row>>& added) {
  sqlite3* raw = database.get();
  int64_t id = find(addition.file);
  for (const auto& [key, row] : added) {
    if (key == addition.file.key && row.version == addition.file.version) id = row.id;
  }
  if (id == 0) {
    const auto key = to_blob(addition.file.key);
    sqlite3_stmt* file = insert_file.get();
    sqlite3_bind_blob(file, 1, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT);
    sqlite3_bind_int64(file, 2, static_cast<sqlite3_int64>(addition.file.version));
    sqlite3_bind_blob(file, 3, addition.path.data(), static_cast<int>(addition.path.size()), SQLITE_TRANSIENT);
    sqlite3_bind_int64(file, 4, static_cast<sqlite3_int64>(addition.size_bytes));
    sqlite3_bind_blob(file, 5, addition.peer.data(), static_cast<int>(addition.peer.size()), SQLITE_TRANSIENT);
    sqlite3_bind_int64(file, 6, addition.now_s);
    const int code = sqlite3_step(file);
    sqlite3_reset(file);
    if (code != SQLITE_DONE) return code;
    id = sqlite3_last_insert_rowid(raw);
    added.emplace_back(addition.file.key, Row{addition.file.version, id});
  }
  sqlite3_stmt* statement = insert_piece.get();
  for (const Piece& piece : addition.pieces) {
    const auto hash = to_blob(piece.hash);
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, static_cast<sqlite3_int64>(piece.number));
    sqlite3_bind_blob(statement, 3, hash.data(), static_cast<int>(hash.size()), SQLITE_TRANSIENT);
    const int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    if (code != SQLITE_DONE) return code;
  }
  return SQLITE_OK;
}

int Ledger::Impl::read(int64_t id, std::vector<Piece>& pieces) {
  if (id == 0) return SQLITE_DONE;
  sqlite3_stmt* statement = select_pieces.get();
  sqlite3_bind_int64(statement, 1, id);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Piece piece;
    piece.number = static_cast<uint64_t>(sqlite3_column_int64(statement, 0));
    if (from_blob(statement, 1, piece.hash)) pieces.push_back(piece);
  }
  sqlite3_reset(statement);
  return code;
}

int Ledger::Impl::erase(const std::vector<int64_t>& ids) {
  for (const int64_t id : ids) {
    for (sqlite3_stmt* statement : {delete_pieces.get(), delete_file.get()}) {
      sqlite3_bind_int64(statement, 1, id);
      const int code = sqlite3_step(statement);
      sqlite3_reset(statement);
      if (code != SQLITE_DONE) return code;
    }
  }
  return SQLITE_OK;
}

// Commits what `work` does, or undoes it and says why. A database that failed to read or write is opened again and asked once more:
// the kernel tells of data that it lost once, perhaps long after; what SQLite has in memory may be something else than what is on
// the disk by then, and a transaction that failed may be there.
template <typename Work>
Result<void> Ledger::Impl::transact(std::string_view doing, Work work) {
  for (const bool again : {false, true}) {
    if (auto begun = begin_if_closed(); !begun) return begun;
    int code = run(database.get(), "BEGIN IMMEDIATE");
    if (code == SQLITE_OK) code = work();
    if (code == SQLITE_OK) code = run(database.get(), "COMMIT");
    if (code == SQLITE_OK) return {};
    Error error = to_error(database.get(), code, doing);
    if (sqlite3_get_autocommit(database.get()) == 0) run(database.get(), "ROLLBACK");
    if (!may_pass(code)) return tl::unexpected<Error>(std::move(error));
    close();
    if (again) return tl::unexpected<Error>(std::move(error));
    log(LogLevel::warning, "{}: it is opened again", error.message);
  }
  return {};
}

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::~Ledger() = default;

Result<std::unique_ptr<Ledger>> Ledger::open(ports::FileSystem& files, int staging, const std::string& path, const char* vfs) {
  auto impl = std::make_unique<Impl>(files, staging, path, vfs);
  if (auto begun = impl->begin(); !begun) return tl::unexpected<Error>(std::move(begun.error()));
  return std::unique_ptr<Ledger>(new Ledger(std::move(impl)));
}

// Opens the database; one that fails is opened again, as what the disk could not read once looks like damage to SQLite's check. A
// damaged one is moved aside, and another begun.
Result<void> Ledger::Impl::begin() {
  const std::string file = path + "/" + std::string(ledger_name);
  for (int tried = 0;; ++tried) {
    const int code = open(file);
    if (code == SQLITE_OK) return {};
    Error error = to_error(database.get(), code, "open");
    close();
    if (tried == 0 && may_pass(code)) continue;
    if (!is_damage(code) || tried > 1) return tl::unexpected<Error>(std::move(error));
    log(LogLevel::warning, "ledger of {} is damaged or foreign ({}): moved aside", printable(path), error.message);
    moved_aside = true;
    const std::string name(ledger_name);
    ports::FileStat stat;
    int copy = 1;
    while (copy < damaged_copies_max && fs.stat_at(staging, fmt::format("{}.damaged-{}", name, copy), stat, false) == 0) ++copy;
    if (fs.rename_at(staging, name, staging, fmt::format("{}.damaged-{}", name, copy)) < 0) {
      return tl::unexpected<Error>(std::move(error));
    }
    for (const char* suffix : {"-wal", "-shm", "-journal"}) fs.unlink_at(staging, name + suffix, false);
  }
}

Result<std::vector<uint64_t>> Ledger::versions(const Hash128& key) {
  const std::lock_guard lock(impl_->mutex);
  if (auto begun = impl_->begin_if_closed(); !begun) return tl::unexpected<Error>(std::move(begun.error()));
  std::vector<uint64_t> versions;
  const auto [first, last] = impl_->files.equal_range(key);
  for (auto at = first; at != last; ++at) versions.push_back(at->second.version);
  return versions;
}

Result<std::vector<Ledger::File>> Ledger::all() {
  const std::lock_guard lock(impl_->mutex);
  if (auto begun = impl_->begin_if_closed(); !begun) return tl::unexpected<Error>(std::move(begun.error()));
  std::vector<File> all;
  all.reserve(impl_->files.size());
  for (const auto& [key, row] : impl_->files) all.push_back({key, row.version});
  return all;
}

bool Ledger::empty() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->database != nullptr && impl_->files.empty();
}

void Ledger::abandon() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->database) sqlite3_db_config(impl_->database.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

bool Ledger::moved_aside() const { return impl_->moved_aside; }

Result<std::vector<Ledger::Piece>> Ledger::pieces(const File& file) {
  const std::lock_guard lock(impl_->mutex);
  for (const bool again : {false, true}) {
    if (auto begun = impl_->begin_if_closed(); !begun) return tl::unexpected<Error>(std::move(begun.error()));
    std::vector<Piece> pieces;
    const int code = impl_->read(impl_->find(file), pieces);
    if (code == SQLITE_DONE) return pieces;
    Error error = to_error(impl_->database.get(), code, "read");
    if (may_pass(code)) impl_->close();
    if (again || !may_pass(code)) return tl::unexpected<Error>(std::move(error));
  }
  return std::vector<Piece>();
}

// What is durable is written down, before anybody is told.
Result<void> Ledger::add(const std::vector<Addition>& additions) {
  if (additions.empty()) return {};
  trace_stage("[stage 10] ledger");
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::pair<Hash128, Impl::Row>> added;
  Result<void> result = impl_->transact("write", [&] {
    added.clear();
    int code = SQLITE_OK;
    for (const Addition& addition : additions) {
      if (code == SQLITE_OK) code = impl_->insert(addition, added);
    }
    return code;
  });
  if (result) impl_->files.insert(added.begin(), added.end());
  return result;
}

Result<void> Ledger::remove(const std::vector<File>& files) {
  const std::lock_guard lock(impl_->mutex);
  if (auto begun = impl_->begin_if_closed(); !begun) return begun;
  std::vector<int64_t> ids;
  const auto look_up = [&] {
    ids.clear();
    for (const File& file : files) {
      if (const int64_t id = impl_->find(file); id != 0) ids.push_back(id);
    }
  };
  look_up();
  if (ids.empty()) return {};
  Result<void> result = impl_->transact("remove", [&] {
    look_up();  // again: the database may be another one by now
    return impl_->erase(ids);
  });
  if (!result) return result;
  for (auto at = impl_->files.begin(); at != impl_->files.end();) {
    at = std::find(ids.begin(), ids.end(), at->second.id) != ids.end() ? impl_->files.erase(at) : std::next(at);
  }
  return result;
}

}  // namespace ccixfer::recv
