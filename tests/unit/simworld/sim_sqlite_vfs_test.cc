// SQLite on the simulated disk: a crash at any call leaves the database whole.
#include "transports/sim/sim_sqlite_vfs.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <catch2/catch.hpp>

using namespace ccixfer;
using sim::World;

namespace {

struct Database {
  explicit Database(const sim::SimSqliteVfs& vfs, const char* journal_mode) {
    code = sqlite3_open_v2("/data/ledger.db", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs.name());
    if (code == SQLITE_OK) code = run("PRAGMA locking_mode=EXCLUSIVE");
    if (code == SQLITE_OK) code = run(fmt::format("PRAGMA journal_mode={}", journal_mode).c_str());
    if (code == SQLITE_OK) code = run("PRAGMA synchronous=FULL");
    if (code == SQLITE_OK) code = run("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, text BLOB)");
  }
  ~Database() { sqlite3_close_v2(raw); }
  int run(const char* sql) { return sqlite3_exec(raw, sql, nullptr, nullptr, nullptr); }
  int64_t number(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    int64_t value = -1;
    if (sqlite3_prepare_v2(raw, sql, -1, &statement, nullptr) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
      value = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return value;
  }
  sqlite3* raw = nullptr;
  int code = SQLITE_OK;
};

}  // namespace

TEST_CASE("sim_sqlite_vfs__crash_at_any_call__committed_rows_stay_and_the_database_is_whole") {
  for (const char* mode : {"WAL", "DELETE"}) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      CAPTURE(mode, seed);
      World world(seed);
      const sim::NodeId node = world.add_node("n");
      sim::SimFileSystem files(world, node, {.short_io_chance = 0.1});
      // The name of the database file itself is the application's to sync, as with SQLite's own VFS; those of journal and WAL are
      // not.
      files.put("/data/ledger.db", "");
      sim::SimSqliteVfs vfs(world, files);
      int64_t committed = 0;
      {
        Database database(vfs, mode);
        REQUIRE(database.code == SQLITE_OK);
        files.freeze_after(world.random().below(1200), [] {});
        for (int64_t n = 1; n <= 60; ++n) {
          if (database.run(fmt::format("INSERT INTO t VALUES({}, randomblob(30000))", n).c_str()) != SQLITE_OK) break;
          committed = n;
        }
        files.crash();
      }
      files.mount();
      Database database(vfs, mode);
      REQUIRE(database.code == SQLITE_OK);
      CHECK(database.number("SELECT count(*) FROM t") >= committed);
      CHECK(database.number("SELECT count(*) FROM t") <= committed + 1);
      CHECK(database.number("SELECT max(n) = count(*) OR count(*) = 0 FROM t") == 1);
      CHECK(database.number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") == 1);
    }
  }
}

TEST_CASE("sim_sqlite_vfs__second_connection__is_locked_out") {
  World world(1);
  const sim::NodeId node = world.add_node("n");
  sim::SimFileSystem files(world, node);
  files.make_directory("/data");
  sim::SimSqliteVfs vfs(world, files);
  Database first(vfs, "DELETE");
  REQUIRE(first.run("INSERT INTO t VALUES(1, 'x')") == SQLITE_OK);
  Database second(vfs, "DELETE");
  CHECK((second.code & 0xff) == SQLITE_BUSY);
}

TEST_CASE("sim_sqlite_vfs__time__is_the_worlds") {
  World world(1);
  const sim::NodeId node = world.add_node("n");
  sim::SimFileSystem files(world, node);
  files.make_directory("/data");
  sim::SimSqliteVfs vfs(world, files);
  Database database(vfs, "WAL");
  CHECK(database.number("SELECT strftime('%s', 'now')") == world.wall_ns() / 1'000'000'000);
}
