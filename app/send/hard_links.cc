#include "app/send/hard_links.h"

#include <sqlite3.h>

#include "core/base/log.h"

namespace ccixfer::send {

namespace {

// What is in it is of no use to anybody once the process has ended. The name "" is a file of SQLite's own, in the directory for
// temporary files, that has no name there.
constexpr const char* set_up = R"sql(
  PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-4096;
  CREATE TABLE first(device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
                     mtime_ns INTEGER NOT NULL, path BLOB NOT NULL, PRIMARY KEY(device, inode)) WITHOUT ROWID;
  BEGIN;
)sql";

session::Statement prepare(sqlite3* database, const char* text) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, text, -1, &statement, nullptr);
  return session::Statement(statement);
}

}  // namespace

void HardLinks::bind(sqlite3_stmt* statement, const Key& key, const Content& content) {
  sqlite3_reset(statement);
  sqlite3_bind_int64(statement, 1, static_cast<int64_t>(key.device));
  sqlite3_bind_int64(statement, 2, static_cast<int64_t>(key.inode));
  sqlite3_bind_int64(statement, 3, static_cast<int64_t>(content.size_bytes));
  sqlite3_bind_int64(statement, 4, content.mtime.seconds);
  sqlite3_bind_int64(statement, 5, content.mtime.nanoseconds);
}

bool HardLinks::open_table() {
  if (database_) return !table_failed_;
  sqlite3* database = nullptr;
  const int opened = sqlite3_open("", &database);
  database_.reset(database);
  table_failed_ = opened != SQLITE_OK || sqlite3_exec(database, set_up, nullptr, nullptr, nullptr) != SQLITE_OK;
  if (!table_failed_) {
    find_ = prepare(database, "SELECT path FROM first WHERE device = ? AND inode = ? AND size = ? AND mtime = ? AND mtime_ns = ?");
    put_ = prepare(database, "INSERT OR REPLACE INTO first VALUES (?, ?, ?, ?, ?, ?)");
    table_failed_ = !find_ || !put_;
  }
  if (table_failed_) {
    log(LogLevel::warning, "hard links: no table for more than {} files: {}: the names of others are sent as files", in_memory_max_,
        sqlite3_errmsg(database));
  }
  return !table_failed_;
}

bool HardLinks::find_in_table(const Key& key, const Content& content) {
  if (!database_ || table_failed_) return false;
  sqlite3_stmt* const find = find_.get();
  bind(find, key, content);
  if (sqlite3_step(find) != SQLITE_ROW) return false;
  path_.assign(static_cast<const char*>(sqlite3_column_blob(find, 0)), static_cast<size_t>(sqlite3_column_bytes(find, 0)));
  return true;
}

bool HardLinks::put_into_table(const Key& key, const Content& content, std::string_view path) {
  if (!open_table()) return false;
  sqlite3_stmt* const put = put_.get();
  bind(put, key, content);
  sqlite3_bind_blob(put, 6, path.data(), static_cast<int>(path.size()), SQLITE_STATIC);
  return sqlite3_step(put) == SQLITE_DONE;
}

HardLinks::Listed HardLinks::again(std::string_view path) const {
  return {true, path == path_ ? std::string_view() : std::string_view(path_)};
}

HardLinks::Listed HardLinks::list(const ports::FileStat& stat, std::string_view path) {
  if (stat.links < 2 || stat.type == ports::FileType::directory || path.empty()) return {};
  const Key key{stat.device, stat.inode};
  const Content content{stat.size_bytes, stat.mtime};
  if (const auto found = files_.find(key); found != files_.end()) {
    if (found->second.content != content) {
      found->second = {std::string(path), content, stat.links - 1};
      return {true, {}};
    }
    path_ = found->second.path;
    if (!names_recur_ && --found->second.names_left == 0) files_.erase(found);
    return again(path);
  }
  if (find_in_table(key, content)) return again(path);
  if (files_.size() < in_memory_max_) {
    files_.emplace(key, File{std::string(path), content, stat.links - 1});
    return {true, {}};
  }
  return {put_into_table(key, content, path), {}};
}

}  // namespace ccixfer::send
