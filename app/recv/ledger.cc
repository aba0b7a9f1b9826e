#include "app/recv/ledger.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "app/recv/names.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

constexpr int application_id = 0x63636c67;  // "cclg": tells our database from a foreign one
constexpr int schema_version = 2;
// Its rows have versions of files that no source gives any more: they go, and with them what is staged. No table is another.
constexpr int schema_version_before = 1;
constexpr int damaged_copies_max = 16;

constexpr const char* schema = R"sql(
  CREATE TABLE file(id INTEGER PRIMARY KEY, key BLOB NOT NULL, version INTEGER NOT NULL, path BLOB NOT NULL, UNIQUE(key, version));
  CREATE TABLE piece(file INTEGER NOT NULL, number INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(file, number)) WITHOUT ROWID;
)sql";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

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

Error to_error(sqlite3* database, int code, std::string_view doing) {
  const char* words = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  const char* name = database != nullptr ? sqlite3_db_filename(database, "main") : nullptr;
  const std::string file = name != nullptr && *name != '\0' ? printable(name) : std::string(ledger_name);
  switch (code & 0xff) {
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
  mutable std::mutex mutex;
  Database database;
  Statement insert_file, insert_piece, select_pieces, delete_pieces, delete_file;
  std::unordered_multimap<Hash128, Row, KeyHash> files;  // the file table in memory: unfinished files only
  bool moved_aside = false;

  int open(const std::string& file, const char* vfs);
  int check_schema();
  int prepare();
  int load_files();
  int64_t find(const File& file) const;
  int insert(const Addition& addition, std::vector<std::pair<Hash128, Row>>& added);
  Result<void> finish(int code, std::string_view doing);
};

int Ledger::Impl::open(const std::string& file, const char* vfs) {
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
  int code = make(insert_file, "INSERT INTO file(key, version, path) VALUES(?, ?, ?)");
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

// The end of a transaction: commit, or undo and say why.
Result<void> Ledger::Impl::finish(int code, std::string_view doing) {
  sqlite3* raw = database.get();
  if (code == SQLITE_OK) code = run(raw, "COMMIT");
  if (code == SQLITE_OK) return {};
  Error error = to_error(raw, code, doing);
  if (sqlite3_get_autocommit(raw) == 0) run(raw, "ROLLBACK");
  return tl::unexpected<Error>(std::move(error));
}

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::~Ledger() = default;

Result<std::unique_ptr<Ledger>> Ledger::open(ports::FileSystem& files, int staging, const std::string& path, const char* vfs) {
  const std::string file = path + "/" + std::string(ledger_name);
  bool moved_aside = false;
  for (;;) {
    auto impl = std::make_unique<Impl>();
    const int code = impl->open(file, vfs);
    if (code == SQLITE_OK) {
      impl->moved_aside = moved_aside;
      return std::unique_ptr<Ledger>(new Ledger(std::move(impl)));
    }
    Error error = to_error(impl->database.get(), code, "open");
    impl.reset();
    if (!is_damage(code) || moved_aside) return tl::unexpected<Error>(std::move(error));
    log(LogLevel::warning, "ledger of {} is damaged or foreign ({}): moved aside", printable(path), error.message);
    moved_aside = true;
    const std::string name(ledger_name);
    ports::FileStat stat;
    int copy = 1;
    while (copy < damaged_copies_max && files.stat_at(staging, fmt::format("{}.damaged-{}", name, copy), stat, false) == 0) ++copy;
    if (files.rename_at(staging, name, staging, fmt::format("{}.damaged-{}", name, copy)) < 0) {
      return tl::unexpected<Error>(std::move(error));
    }
    for (const char* suffix : {"-wal", "-shm", "-journal"}) files.unlink_at(staging, name + suffix, false);
  }
}

std::vector<uint64_t> Ledger::versions(const Hash128& key) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<uint64_t> versions;
  const auto [first, last] = impl_->files.equal_range(key);
  for (auto at = first; at != last; ++at) versions.push_back(at->second.version);
  return versions;
}

std::vector<Ledger::File> Ledger::all() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<File> all;
  all.reserve(impl_->files.size());
  for (const auto& [key, row] : impl_->files) all.push_back({key, row.version});
  return all;
}

bool Ledger::empty() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->files.empty();
}

bool Ledger::moved_aside() const { return impl_->moved_aside; }

Result<std::vector<Ledger::Piece>> Ledger::pieces(const File& file) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<Piece> pieces;
  const int64_t id = impl_->find(file);
  if (id == 0) return pieces;
  sqlite3_stmt* statement = impl_->select_pieces.get();
  sqlite3_bind_int64(statement, 1, id);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Piece piece;
    piece.number = static_cast<uint64_t>(sqlite3_column_int64(statement, 0));
    if (from_blob(statement, 1, piece.hash)) pieces.push_back(piece);
  }
  sqlite3_reset(statement);
  if (code != SQLITE_DONE) return tl::unexpected<Error>(to_error(impl_->database.get(), code, "read"));
  return pieces;
}

// What is durable is written down, before anybody is told.
Result<void> Ledger::add(const std::vector<Addition>& additions) {
  if (additions.empty()) return {};
  trace_hop("[hop 10] ledger");
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::pair<Hash128, Impl::Row>> added;
  int code = run(impl_->database.get(), "BEGIN IMMEDIATE");
  for (const Addition& addition : additions) {
    if (code == SQLITE_OK) code = impl_->insert(addition, added);
  }
  Result<void> result = impl_->finish(code, "write");
  if (result) impl_->files.insert(added.begin(), added.end());
  return result;
}

Result<void> Ledger::remove(const std::vector<File>& files) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<int64_t> ids;
  for (const File& file : files) {
    if (const int64_t id = impl_->find(file); id != 0) ids.push_back(id);
  }
  if (ids.empty()) return {};
  int code = run(impl_->database.get(), "BEGIN IMMEDIATE");
  for (const int64_t id : ids) {
    for (sqlite3_stmt* statement : {impl_->delete_pieces.get(), impl_->delete_file.get()}) {
      if (code != SQLITE_OK) break;
      sqlite3_bind_int64(statement, 1, id);
      const int step = sqlite3_step(statement);
      sqlite3_reset(statement);
      if (step != SQLITE_DONE) code = step;
    }
  }
  Result<void> result = impl_->finish(code, "remove");
  if (!result) return result;
  for (auto at = impl_->files.begin(); at != impl_->files.end();) {
    at = std::find(ids.begin(), ids.end(), at->second.id) != ids.end() ? impl_->files.erase(at) : std::next(at);
  }
  return result;
}

}  // namespace ccixfer::recv
