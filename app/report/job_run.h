// One run of a job, as its history has it: `ccixfer status --history` says it, for people and as the JSON event `run`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ccixfer::report {

inline constexpr std::string_view run_under_way = "running";
inline constexpr std::string_view run_killed = "killed";  // with its whole process, or its host: nobody could say more

struct JobRun {
  std::string job;
  std::string destination;  // of a pull: where from; "ticket" for a ticket
  int64_t began_s = 0;      // since 1970, by the wall clock
  int64_t ended_s = 0;      // 0: it has not ended, or nobody knows when
  int exit = -1;            // the exit code; -1: none
  std::string status;       // of the event `done`, or one of the words above
  std::string reason;       // why, in words; "": all is well
  uint64_t files = 0, files_unchanged = 0, files_failed = 0;
  uint64_t bytes = 0, bytes_sent = 0;
};

[[nodiscard]] std::string run_event(double t, const JobRun& run);
[[nodiscard]] std::string run_line(const JobRun& run);  // for people

}  // namespace ccixfer::report
