// The last runs of the jobs of this account, for the status page: of their history (app/job/history), which other processes write.
// It is looked at every look_interval at most, and only while somebody wants the page. A history that is missing is one without
// runs. Of one that is locked, damaged, foreign or not ours to read, what was known before stays, and `problem` says so; that costs
// the caller look_wait at most. Bounds: runs_shown_max. The metrics' thread only.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "app/report/status.h"

namespace ccixfer::program {

inline constexpr size_t runs_shown_max = 20;
inline constexpr std::chrono::seconds look_interval{5};
inline constexpr std::chrono::milliseconds look_wait{20};

class JobRuns {
 public:
  using Clock = std::chrono::steady_clock;
  explicit JobRuns(std::string file) : file_(std::move(file)) {}  // "": there is none
  [[nodiscard]] const report::StatusJobs& look(Clock::time_point now);

 private:
  const std::string file_;
  report::StatusJobs known_;
  std::optional<Clock::time_point> looked_;
};

}  // namespace ccixfer::program
