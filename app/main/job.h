// `ccixfer job NAME`: the transfer that a job's file describes, once, with its lock, its window and its row in the history. Two
// processes do it: one moves the data, and confines itself as `send` and `recv` do; the other one, its parent, waits for it, passes
// signals on, and writes the history, so that a run that crashed or was killed is noted too.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/job/job_file.h"
#include "app/main/cli.h"
#include "app/main/commands.h"
#include "app/main/job_lock.h"
#include "app/main/wall_clock.h"
#include "app/report/events.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {

struct PreparedJob {
  job::JobFile file;
  Command command;  // `send` or `recv`
  std::string lock_file;
  std::string history_file;
};

// Reads the job's file, and the command line that it stands for. usage: FILE:LINE: KEY of what is wrong.
[[nodiscard]] Result<PreparedJob> prepare_job(const JobCommand& command, const std::string& name);
[[nodiscard]] std::string job_history_file();  // of this account; "": it has no place for one

// In the process that moves the data: tells the other one how that ended. It has the job's lock too, as long as it lives.
class JobTeller {
 public:
  JobTeller(host::Descriptor to, JobLock lock) : to_(std::move(to)), lock_(std::move(lock)) {}
  void tell(const Error& error, const report::Counts& counts);

 private:
  host::Descriptor to_;
  JobLock lock_;
};

// Either the run is over, with this exit code, or this is the process that is to move the data.
struct JobPart {
  std::optional<int> exit;
  std::unique_ptr<JobTeller> teller;
};
// Before the process has threads. The end of its window is fixed in the command then, as of `now`. Errors: already_running, timeout
// (its window is closed), usage; they are in the history too.
[[nodiscard]] Result<JobPart> begin_job(PreparedJob& job, const std::function<WallTime()>& now = wall_time_now);

// `ccixfer job --check NAME...`: says what is wrong before the night, and moves nothing.
[[nodiscard]] CommandEnd check_jobs(const Process& process, const JobCommand& command);

}  // namespace ccixfer::program
