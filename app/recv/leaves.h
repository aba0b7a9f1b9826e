// The directories' own modes and times, once all that goes into them has ended.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/recv/attributes.h"
#include "app/recv/backups.h"
#include "app/recv/directories.h"
#include "app/recv/opened_root.h"

namespace ccixfer::recv {

// A directory whose `leave` was reached: due when no entry in [first_index, leave_index) is still in work.
struct Leave {
  std::string path;
  uint64_t first_index = 0;
  uint64_t leave_index = 0;
  Attributes attributes;
  bool made = false;      // by this session: it has its first mode yet
  bool unlocked = false;  // was there, and was given u+rwx for the time
  uint32_t mode_before = 0;
  bool is_last = false;  // due when nothing else is left to be done in it
};
// The mode that the directory gets keeps us from listing it, or from what is in it.
[[nodiscard]] bool keeps_us_out(const Policy& policy, const Leave& leave);
struct LeaveOutcome {
  int error_number = 0;             // the first that went wrong
  bool attributes_refused = false;  // as of apply_attributes
  std::string path;
  std::optional<uint32_t> mode = {};  // that it has now; none: it could not be seen
};
// In the order given: a directory's own come after those below it. Runs in a job.
[[nodiscard]] std::vector<LeaveOutcome> apply_leaves(OpenedRoot& root, KnownDirectories& known, const Policy& policy,
                                                     const Owner& owner, const std::vector<Leave>& leaves,
                                                     Backups* backups = nullptr);

}  // namespace ccixfer::recv
