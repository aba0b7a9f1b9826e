// Names of system calls, as libseccomp resolves them; README.md says how the lists were found. A name that an architecture, or this
// libseccomp, does not have is skipped.
#pragma once
#include <string>
#include <vector>

namespace ccixfer::sandbox {

using Names = std::vector<std::string>;

// For any arguments.
[[nodiscard]] Names allowed_syscalls();
[[nodiscard]] Names syscalls_of_programs();  // with Plan::executes, for what starts a program and for most programs
// They end the process.
[[nodiscard]] Names deadly_syscalls();
[[nodiscard]] Names deadly_syscalls_without_programs();  // unless Plan::executes

}  // namespace ccixfer::sandbox
