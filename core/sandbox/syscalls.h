// The list of system calls that a confined process may make (seccomp, by libseccomp). What is not on it fails with ENOSYS, so that
// a library falls back to what it did before that call existed. A call that only an intruder makes ends the process (SIGSYS).
#pragma once
#include "core/sandbox/sandbox.h"

namespace ccixfer::sandbox {

[[nodiscard]] bool has_seccomp();
// Adds to the report that it is in force, or why not. file_io: as enter().
[[nodiscard]] Result<void> restrict_syscalls(const Plan& plan, bool offered, Report& report);

}  // namespace ccixfer::sandbox
