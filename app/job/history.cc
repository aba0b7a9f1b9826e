#include "app/job/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/units.h"

namespace ccixfer::job {
namespace {

constexpr int application_id = 0x63636a68;  // "ccjh": tells our database from a foreign one
constexpr int schema_version = 1;
constexpr int looked_at_bytes_max = 256 << 10;  // of a row: nobody of ours writes so much

constexpr const char* schema = R"sql(
  CREATE TABLE run(id INTEGER PRIMARY KEY, job TEXT NOT NULL, destination TEXT NOT NULL, began INTEGER NOT NULL, ended INTEGER NOT NULL,
                   exit INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, files INTEGER NOT NULL,
                   files_unchanged INTEGER NOT NULL, files_failed INTEGER NOT NULL, bytes INTEGER NOT NULL, bytes_sent INTEGER NOT NULL);
  CREATE INDEX run_of_job ON run(job);
)sql";

using report::JobRun;
using session::Database;
using session::Statement;

// A statement with its values, numbered from 1 in their order.
class Query {
 public:
  Query(sqlite3* database, const char* sql) {
    sqlite3_stmt* raw = nullptr;
    code_ = sqlite3_prepare_v2(database, sql, -1, &raw, nullptr);
    statement_.reset(raw);
  }
  Query& bind(const std::string& text) {
    if (code_ == SQLITE_OK)
      code_ = sqlite3_bind_text(statement_.get(), ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Query& bind(int64_t number) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_.get(), ++bound_, number);
    return *this;
  }
  Query& bind(uint64_t number) { return bind(static_cast<int64_t>(number)); }
  int step() { return code_ == SQLITE_OK ? sqlite3_step(statement_.get()) : code_; }
  [[nodiscard]] int64_t number(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  [[nodiscard]] uint64_t count(int column) const { return static_cast<uint64_t>(std::max<int64_t>(number(column), 0)); }
  [[nodiscard]] std::string text(int column) const {
    const auto* at = sqlite3_column_text(statement_.get(), column);
    const int size = sqlite3_column_bytes(statement_.get(), column);
    return at == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(at), static_cast<size_t>(size));
  }

 private:
  Statement statement_;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

constexpr const char* columns =
    "job, destination, began, ended, exit, status, reason, files, files_unchanged, files_failed, bytes, bytes_sent";
constexpr int id_column = 12;  // behind them, where it is asked for
constexpr int64_t listed_at_once = 500;

JobRun run_of(const Query& row) {
  JobRun run;
  run.job = row.text(0);
  run.destination = row.text(1);
  run.began_s = row.number(2);
  run.ended_s = row.number(3);
  run.exit = static_cast<int>(row.number(4));
  run.status = row.text(5);
  run.reason = row.text(6);
  run.files = row.count(7);
  run.files_unchanged = row.count(8);
  run.files_failed = row.count(9);
  run.bytes = row.count(10);
  run.bytes_sent = row.count(11);
  return run;
}

// Of a pipe nobody waits for the other end, as SQLite would. What is not there is SQLite's to say.
Result<void> check_regular(const std::string& file) {
  struct stat stat {};
  if (::stat(file.c_str(), &stat) != 0 || S_ISREG(stat.st_mode)) return {};
  return fail(ErrorKind::file_io,
              fmt::format("cannot open the history of jobs: {}: it is no regular file: move it away", printable(file)));
}

int run_sql(sqlite3* database, const char* sql) { return sqlite3_exec(database, sql, nullptr, nullptr, nullptr); }

}  // namespace

Error History::error(int code, const char* doing) const {
  const char* const words = database_ ? sqlite3_errmsg(database_.get()) : sqlite3_errstr(code);
  const ErrorKind kind = (code & 0xff) == SQLITE_FULL ? ErrorKind::no_space : ErrorKind::file_io;
  const char* const advice =
      (code & 0xff) == SQLITE_BUSY ? "another process writes it: run this again" : "check the file and its disk, or move it away";
  return {kind, fmt::format("cannot {} the history of jobs: {}: {}: {}", doing, printable(file_), words, advice)};
}

Result<int64_t> History::number_of(const char* sql, const char* doing) const {
  Query query(database_.get(), sql);
  if (const int code = query.step(); code != SQLITE_ROW) return tl::unexpected(error(code, doing));
  return query.number(0);
}

Result<History> History::open_with(const std::string& file, int flags, std::chrono::milliseconds wait) {
  if (auto regular = check_regular(file); !regular) return tl::unexpected(regular.error());
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  History history(Database(raw), file);
  if (code != SQLITE_OK) return tl::unexpected(history.error(code, "open"));
  sqlite3_busy_timeout(history.database_.get(), static_cast<int>(wait.count()));
  return history;
}

Result<History> History::open(const std::string& file) {
  // For this account alone: SQLite would leave that to the umask.
  const int flags = O_RDONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  if (const int fd = ::open(file.c_str(), flags, 0600); fd >= 0) ::close(fd);
  auto history = open_with(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, busy_time);
  if (!history) return history;
  if (auto ready = history->prepare_to_write(); !ready) return tl::unexpected(ready.error());
  return history;
}

Result<History> History::open_to_read(const std::string& file) { return open_with(file, SQLITE_OPEN_READWRITE, busy_time); }

Result<History> History::open_to_look(const std::string& file, std::chrono::milliseconds wait) {
  auto history = open_with(file, SQLITE_OPEN_READONLY, wait);
  if (history) sqlite3_limit(history->database_.get(), SQLITE_LIMIT_LENGTH, looked_at_bytes_max);
  return history;
}

Result<void> History::prepare_to_write() {
  sqlite3* const database = database_.get();
  int code = run_sql(database, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
  if (code != SQLITE_OK) return tl::unexpected(error(code, "open"));
  const auto is_new = look_whether_new();
  if (!is_new) {
    static_cast<void>(run_sql(database, "ROLLBACK"));
    return tl::unexpected(is_new.error());
  }
  if (*is_new) code = run_sql(database, schema);
  if (*is_new && code == SQLITE_OK) {
    code = run_sql(database,
                   fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, schema_version).c_str());
  }
  if (code == SQLITE_OK) code = run_sql(database, "COMMIT");
  if (code == SQLITE_OK) return {};
  const Error problem = error(code, "begin");
  static_cast<void>(run_sql(database, "ROLLBACK"));
  return tl::unexpected(problem);
}

Result<bool> History::look_whether_new() const {
  const auto id = number_of("PRAGMA application_id", "open");
  if (!id) return tl::unexpected(id.error());
  const auto version = number_of("PRAGMA user_version", "open");
  if (!version) return tl::unexpected(version.error());
  if (*id == application_id && *version == schema_version) return false;
  if (*id == 0 && *version == 0) {
    const auto tables = number_of("SELECT count(*) FROM sqlite_master", "open");
    if (!tables) return tl::unexpected(tables.error());
    if (*tables == 0) return true;
  }
  return fail(ErrorKind::file_io,
              fmt::format("this is no history of jobs that this version knows: {}: move it away", printable(file_)));
}

Result<int64_t> History::insert(const JobRun& run) {
  Query row(database_.get(), "INSERT INTO run VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  row.bind(run.job).bind(run.destination).bind(run.began_s).bind(run.ended_s).bind(int64_t{run.exit}).bind(run.status);
  row.bind(run.reason).bind(run.files).bind(run.files_unchanged).bind(run.files_failed).bind(run.bytes).bind(run.bytes_sent);
  if (const int code = row.step(); code != SQLITE_DONE) return tl::unexpected(error(code, "write"));
  const int64_t id = sqlite3_last_insert_rowid(database_.get());
  Query old(database_.get(), "DELETE FROM run WHERE id <= ?");
  if (const int code = old.bind(id - runs_kept_max).step(); code != SQLITE_DONE) return tl::unexpected(error(code, "shorten"));
  return id;
}

// All of it or nothing: a row of a run that was noted as killed, and of the next one nothing, would never be put right.
Result<int64_t> History::in_transaction(const std::function<Result<int64_t>()>& action) {
  if (const int code = run_sql(database_.get(), "BEGIN IMMEDIATE"); code != SQLITE_OK) return tl::unexpected(error(code, "write"));
  Result<int64_t> done = action();
  if (done) {
    const int code = run_sql(database_.get(), "COMMIT");
    if (code == SQLITE_OK) return done;
    done = tl::unexpected(error(code, "write"));
  }
  static_cast<void>(run_sql(database_.get(), "ROLLBACK"));
  return done;
}

Result<int64_t> History::begin(const JobRun& run) {
  return in_transaction([&] { return insert_begun(run); });
}

Result<int64_t> History::insert_begun(const JobRun& run) {
  if (auto killed = note_killed(run.job); !killed) return tl::unexpected(killed.error());
  JobRun begins = run;
  begins.status = report::run_under_way;
  return insert(begins);
}

Result<void> History::note_killed(const std::string& job) {
  Query killed(database_.get(), "UPDATE run SET status = ? WHERE job = ? AND status = ?");
  const int code = killed.bind(std::string(report::run_killed)).bind(job).bind(std::string(report::run_under_way)).step();
  if (code != SQLITE_DONE) return tl::unexpected(error(code, "write"));
  return {};
}

Result<void> History::note_whole(const JobRun& run) {
  const auto row = in_transaction([&]() -> Result<int64_t> {
    if (auto killed = note_killed(run.job); !killed) return tl::unexpected(killed.error());
    return insert(run);
  });
  return row ? Result<void>() : tl::unexpected(row.error());
}

Result<void> History::note(const JobRun& run) {
  if (auto row = in_transaction([&] { return insert(run); }); !row) return tl::unexpected(row.error());
  return {};
}

Result<void> History::end(int64_t row, const JobRun& run) {
  if (auto done = in_transaction([&] { return update_or_insert(row, run); }); !done) return tl::unexpected(done.error());
  return {};
}

Result<int64_t> History::update_or_insert(int64_t row, const JobRun& run) {
  Query query(
      database_.get(),
      "UPDATE run SET ended = ?, exit = ?, status = ?, reason = ?, files = ?, files_unchanged = ?, files_failed = ?, bytes = ?, "
      "bytes_sent = ? WHERE id = ?");
  query.bind(run.ended_s).bind(int64_t{run.exit}).bind(run.status).bind(run.reason).bind(run.files).bind(run.files_unchanged);
  query.bind(run.files_failed).bind(run.bytes).bind(run.bytes_sent).bind(row);
  if (const int code = query.step(); code != SQLITE_DONE) return tl::unexpected(error(code, "write"));
  return sqlite3_changes(database_.get()) > 0 ? row : insert(run);
}

Result<void> History::check_kind() const {
  const auto id = number_of("PRAGMA application_id", "read");  // one that is locked or damaged may be a history, too
  if (!id) return tl::unexpected(id.error());
  if (*id == application_id) return {};
  return fail(ErrorKind::file_io,
              fmt::format("this is no history of jobs: {}: name the state directory of the account", printable(file_)));
}

Result<void> History::list(const std::string& job, const std::function<void(const JobRun&)>& each) {
  if (auto fine = check_kind(); !fine) return fine;
  for (int64_t last = 0;;) {
    const auto runs = list_behind(last, job);
    if (!runs) return tl::unexpected(runs.error());
    if (runs->empty()) return {};
    for (const JobRun& run : *runs) each(run);
  }
}

// In one piece, so that no writer waits for what is done with them.
Result<std::vector<JobRun>> History::list_behind(int64_t& last, const std::string& job) const {
  Query rows(database_.get(),
             fmt::format("SELECT {}, id FROM run WHERE id > ?1 AND (?2 = '' OR job = ?2) ORDER BY id LIMIT ?3", columns).c_str());
  rows.bind(last).bind(job).bind(listed_at_once);
  std::vector<JobRun> runs;
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    runs.push_back(run_of(rows));
    last = rows.number(id_column);
  }
  if (code != SQLITE_DONE) return tl::unexpected(error(code, "read"));
  return runs;
}

Result<std::vector<JobRun>> History::newest(size_t count) {
  if (auto fine = check_kind(); !fine) return tl::unexpected(fine.error());
  Query rows(database_.get(), fmt::format("SELECT {} FROM run ORDER BY id DESC LIMIT ?1", columns).c_str());
  rows.bind(uint64_t{count});
  std::vector<JobRun> runs;
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) runs.push_back(run_of(rows));
  if (code != SQLITE_DONE) return tl::unexpected(error(code, "read"));
  std::reverse(runs.begin(), runs.end());
  return runs;
}

}  // namespace ccixfer::job
