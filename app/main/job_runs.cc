#include "app/main/job_runs.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "app/job/history.h"

namespace ccixfer::program {
namespace {

constexpr const char* not_read = "the history of jobs is locked, damaged, or not this process's to read";

// Nothing: it cannot be read.
std::optional<std::vector<report::JobRun>> read(const std::string& file) {
  struct stat stat {};
  if (::stat(file.c_str(), &stat) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return std::nullopt;
    return std::vector<report::JobRun>();
  }
  auto history = job::History::open_to_look(file, look_wait);
  if (!history) return std::nullopt;
  auto runs = history->newest(runs_shown_max);
  if (!runs) return std::nullopt;
  return std::move(*runs);
}

}  // namespace

const report::StatusJobs& JobRuns::look(Clock::time_point now) {
  if (file_.empty() || (looked_ && now < *looked_ + look_interval)) return known_;
  looked_ = now;
  auto runs = read(file_);
  known_.problem = runs ? "" : not_read;
  if (runs) known_.runs = std::move(*runs);
  return known_;
}

}  // namespace ccixfer::program
