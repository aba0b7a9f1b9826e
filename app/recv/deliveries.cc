#include "app/recv/deliveries.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <mutex>
#include <utility>

#include "app/session/sqlite_handles.h"
#include "core/base/log.h"

namespace ccixfer::recv {
namespace {

constexpr const char* database_name = "delivered.db";
constexpr int schema_version = 1;
constexpr const char* schema = R"sql(
  CREATE TABLE transfer(id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, at INTEGER NOT NULL);
  CREATE TABLE delivered(key BLOB PRIMARY KEY, version INTEGER NOT NULL, transfer INTEGER NOT NULL, size INTEGER NOT NULL,
    seconds INTEGER NOT NULL, nanoseconds INTEGER NOT NULL, inode INTEGER NOT NULL) WITHOUT ROWID;
  PRAGMA user_version=1;
)sql";

using session::Statement;

void bind(sqlite3_stmt* statement, int place, const void* bytes, size_t size) {
  sqlite3_bind_blob(statement, place, bytes, static_cast<int>(size), SQLITE_TRANSIENT);
}

}  // namespace

struct Deliveries::Impl {
  mutable std::mutex mutex;
  session::Database database;  // none: given up
  Statement insert_transfer, find_transfer, insert_file, find_file, delete_transfer, delete_files;
  uint64_t files = 0;  // rows, those that were replaced counted twice: a bound

  int open(const std::string& file, const char* vfs);
  int run(const std::string& sql) { return sqlite3_exec(database.get(), sql.c_str(), nullptr, nullptr, nullptr); }
  int prepare();
  int number(const char* sql, int64_t& value);
  int count();
  int step(sqlite3_stmt* statement);
  int transfer_id(const Transfer& transfer, int64_t now_s, int64_t& id);
  int insert(int64_t transfer, const File& file);
  int remove(int64_t transfer);
  void close();
  void finish(int code);
};

void Deliveries::Impl::close() {
  for (Statement* statement : {&insert_transfer, &find_transfer, &insert_file, &find_file, &delete_transfer, &delete_files})
    statement->reset();
  database.reset();
  files = 0;
}

int Deliveries::Impl::number(const char* sql, int64_t& value) {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(database.get(), sql, -1, &raw, nullptr);
  const Statement statement(raw);
  if (code != SQLITE_OK) return code;
  code = sqlite3_step(raw);
  if (code == SQLITE_ROW) value = sqlite3_column_int64(raw, 0);
  return code == SQLITE_ROW ? SQLITE_OK : code;
}

int Deliveries::Impl::open(const std::string& file, const char* vfs) {
  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs);
  database.reset(raw);
  // WAL with an exclusive lock needs no shared memory; where there is no WAL, a rollback journal.
  if (code == SQLITE_OK) code = run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
  int64_t version = 0;
  if (code == SQLITE_OK) code = number("PRAGMA user_version", version);
  if (code == SQLITE_OK && version == 0) code = run(std::string("BEGIN IMMEDIATE;") + schema + "COMMIT");
  if (code == SQLITE_OK && version != 0 && version != schema_version) code = SQLITE_NOTADB;
  if (code == SQLITE_OK) code = prepare();
  return code == SQLITE_OK ? count() : code;
}

int Deliveries::Impl::prepare() {
  const std::pair<Statement*, const char*> all[] = {
      {&insert_transfer, "INSERT INTO transfer(name, at) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET at = excluded.at"},
      {&find_transfer, "SELECT id FROM transfer WHERE name = ?"},
      {&insert_file, "INSERT OR REPLACE INTO delivered VALUES(?, ?, ?, ?, ?, ?, ?)"},
      {&find_file, "SELECT version, transfer, size, seconds, nanoseconds, inode FROM delivered WHERE key = ?"},
      {&delete_transfer, "DELETE FROM transfer WHERE id = ?"},
      {&delete_files, "DELETE FROM delivered WHERE transfer = ?"}};
  for (const auto& [statement, sql] : all) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(database.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    statement->reset(raw);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

int Deliveries::Impl::count() {
  int64_t rows = 0;
  const int code = number("SELECT count(*) FROM delivered", rows);
  files = static_cast<uint64_t>(rows);
  return code;
}

int Deliveries::Impl::step(sqlite3_stmt* statement) {
  const int code = sqlite3_step(statement);
  sqlite3_reset(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

int Deliveries::Impl::transfer_id(const Transfer& transfer, int64_t now_s, int64_t& id) {
  bind(insert_transfer.get(), 1, transfer.data(), transfer.size());
  sqlite3_bind_int64(insert_transfer.get(), 2, now_s);
  if (const int code = step(insert_transfer.get()); code != SQLITE_OK) return code;
  bind(find_transfer.get(), 1, transfer.data(), transfer.size());
  const int code = sqlite3_step(find_transfer.get());
  if (code == SQLITE_ROW) id = sqlite3_column_int64(find_transfer.get(), 0);
  sqlite3_reset(find_transfer.get());
  return code == SQLITE_ROW ? SQLITE_OK : code;
}

int Deliveries::Impl::insert(int64_t transfer, const File& file) {
  sqlite3_stmt* statement = insert_file.get();
  bind(statement, 1, &file.key, sizeof file.key);
  sqlite3_bind_int64(statement, 2, static_cast<sqlite3_int64>(file.version));
  sqlite3_bind_int64(statement, 3, transfer);
  sqlite3_bind_int64(statement, 4, static_cast<sqlite3_int64>(file.placed.size_bytes));
  sqlite3_bind_int64(statement, 5, file.placed.mtime.seconds);
  sqlite3_bind_int64(statement, 6, file.placed.mtime.nanoseconds);
  sqlite3_bind_int64(statement, 7, static_cast<sqlite3_int64>(file.placed.inode));
  return step(statement);
}

int Deliveries::Impl::remove(int64_t transfer) {
  for (sqlite3_stmt* statement : {delete_files.get(), delete_transfer.get()}) {
    sqlite3_bind_int64(statement, 1, transfer);
    if (const int code = step(statement); code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

// The end of a transaction. What fails once is not tried again.
void Deliveries::Impl::finish(int code) {
  if (code == SQLITE_OK) code = run("COMMIT");
  if (code == SQLITE_OK) return;
  log(LogLevel::warning, "delivered files are not remembered any more: {}", sqlite3_errmsg(database.get()));
  sqlite3_db_config(database.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  close();
}

Deliveries::Deliveries(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Deliveries::~Deliveries() = default;

std::unique_ptr<Deliveries> Deliveries::open(ports::FileSystem& files, int staging, const std::string& path, const char* vfs) {
  auto impl = std::make_unique<Impl>();
  const std::string file = path + "/" + database_name;
  for (const bool anew : {false, true}) {
    if (anew) remove(files, staging);
    const int code = impl->open(file, vfs);
    if (code == SQLITE_OK) break;
    if (anew) log(LogLevel::warning, "delivered files are not remembered: {}", sqlite3_errstr(code));
    impl->close();
  }
  return std::unique_ptr<Deliveries>(new Deliveries(std::move(impl)));
}

void Deliveries::abandon() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->database) sqlite3_db_config(impl_->database.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void Deliveries::remove(ports::FileSystem& files, int staging) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) files.unlink_at(staging, std::string(database_name) + suffix, false);
}

bool Deliveries::empty() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->files == 0;
}

std::optional<Deliveries::Found> Deliveries::find(const Hash128& key, uint64_t version) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->files == 0) return std::nullopt;
  sqlite3_stmt* statement = impl_->find_file.get();
  bind(statement, 1, &key, sizeof key);
  std::optional<Found> found;
  if (sqlite3_step(statement) == SQLITE_ROW && static_cast<uint64_t>(sqlite3_column_int64(statement, 0)) == version) {
    found.emplace();
    found->transfer = sqlite3_column_int64(statement, 1);
    Placed& placed = found->placed;
    placed.size_bytes = static_cast<uint64_t>(sqlite3_column_int64(statement, 2));
    placed.mtime.seconds = sqlite3_column_int64(statement, 3);
    placed.mtime.nanoseconds = static_cast<decltype(placed.mtime.nanoseconds)>(sqlite3_column_int64(statement, 4));
    placed.inode = static_cast<uint64_t>(sqlite3_column_int64(statement, 5));
  }
  sqlite3_reset(statement);
  return found;
}

void Deliveries::add(const Transfer& transfer, int64_t now_s, const std::vector<File>& files) {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->database || files.empty() || impl_->files + files.size() > files_max) return;
  int64_t id = 0;
  int code = impl_->run("BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = impl_->transfer_id(transfer, now_s, id);
  for (const File& file : files) {
    if (code == SQLITE_OK) code = impl_->insert(id, file);
  }
  impl_->files += files.size();
  impl_->finish(code);
}

void Deliveries::forget(const Transfer& transfer, const std::set<int64_t>& others) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->files == 0) return;
  int64_t own = 0;
  int code = impl_->run("BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = impl_->transfer_id(transfer, 0, own);
  if (code == SQLITE_OK) code = impl_->remove(own);
  for (const int64_t other : others) {
    if (code == SQLITE_OK) code = impl_->remove(other);
  }
  if (code == SQLITE_OK) code = impl_->count();
  impl_->finish(code);
}

void Deliveries::expire(int64_t now_s) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->files == 0) return;
  const std::string old = fmt::format("(SELECT id FROM transfer WHERE at < {})", now_s - kept_s);
  int code =
      impl_->run("BEGIN IMMEDIATE; DELETE FROM delivered WHERE transfer IN " + old + "; DELETE FROM transfer WHERE id IN " + old);
  if (code == SQLITE_OK) code = impl_->count();
  impl_->finish(code);
}

}  // namespace ccixfer::recv
