// The history of jobs: a row for each run, in an SQLite database of the account that runs them. A row is there from the beginning
// of its run, so a run that was killed with its whole host is seen too: the next run of the same job notes it as killed. Bounds:
// the newest runs_kept_max runs. Each call is a transaction of its own, synced. Several processes may use it at once; one waits up
// to busy_time for another. Errors: file_io (also damage, and what is no regular file), no_space. Nothing is ever removed because
// it is damaged.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/report/job_run.h"
#include "app/session/sqlite_handles.h"
#include "core/base/result.h"

namespace ccixfer::job {

inline constexpr int64_t runs_kept_max = 10'000;
inline constexpr std::chrono::milliseconds busy_time{10'000};

class History {
 public:
  // The file is made where it is missing, and its directory is not.
  [[nodiscard]] static Result<History> open(const std::string& file);
  // To read it only; it must be there.
  [[nodiscard]] static Result<History> open_to_read(const std::string& file);
  // The same, for a process that may not write there, and waits for another one so long at most. A history whose writer was killed
  // in the middle of a row is not read so: the next run puts it right.
  [[nodiscard]] static Result<History> open_to_look(const std::string& file, std::chrono::milliseconds wait);

  // A run begins. Earlier ones of this job that did not end are killed: the caller has the job's lock. The row's number.
  [[nodiscard]] Result<int64_t> begin(const report::JobRun& run);
  // A run that did not begin: somebody else has the lock, or the window is closed.
  [[nodiscard]] Result<void> note(const report::JobRun& run);
  // Of a row that went meanwhile, since so many runs began after it, there is a new one.
  [[nodiscard]] Result<void> end(int64_t row, const report::JobRun& run);
  // A run that has ended, and whose beginning could not be noted. As with begin(), the caller has the job's lock.
  [[nodiscard]] Result<void> note_whole(const report::JobRun& run);
  // Oldest first. `job`: only its runs; "": of all. `each` may take its time: others may write meanwhile, and what they add is
  // listed.
  [[nodiscard]] Result<void> list(const std::string& job, const std::function<void(const report::JobRun&)>& each);
  // The newest, so many at most; the oldest of them first.
  [[nodiscard]] Result<std::vector<report::JobRun>> newest(size_t count);

 private:
  History(session::Database database, std::string file) : database_(std::move(database)), file_(std::move(file)) {}
  [[nodiscard]] static Result<History> open_with(const std::string& file, int flags, std::chrono::milliseconds wait);
  [[nodiscard]] Result<void> prepare_to_write();
  [[nodiscard]] Result<bool> look_whether_new() const;  // an error: it is somebody else's
  [[nodiscard]] Result<int64_t> insert(const report::JobRun& run);
  [[nodiscard]] Result<int64_t> insert_begun(const report::JobRun& run);
  [[nodiscard]] Result<void> note_killed(const std::string& job);
  [[nodiscard]] Result<int64_t> update_or_insert(int64_t row, const report::JobRun& run);
  [[nodiscard]] Result<int64_t> in_transaction(const std::function<Result<int64_t>()>& action);
  [[nodiscard]] Result<std::vector<report::JobRun>> list_behind(int64_t& last, const std::string& job) const;
  [[nodiscard]] Result<void> check_kind() const;
  [[nodiscard]] Result<int64_t> number_of(const char* sql, const char* doing) const;
  [[nodiscard]] Error error(int code, const char* doing) const;
  session::Database database_;
  std::string file_;
};

}  // namespace ccixfer::job
