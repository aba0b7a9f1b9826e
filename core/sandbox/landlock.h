// Landlock: which files and directories the process reaches, and which TCP sockets it may open.
// The constants are our own copies, because the headers of Debian 12 know ABI 2 only, and a newer kernel offers more.
// Source: include/uapi/linux/landlock.h of Linux 6.18.
#pragma once
#include <cstdint>

#include "core/sandbox/sandbox.h"

namespace ccixfer::sandbox {

// 0: the kernel has none, or it is off, or the container around us does not let us ask.
[[nodiscard]] int landlock_abi();

// What a ruleset handles, which is what is refused unless a rule allows it. Pure.
struct Handled {
  uint64_t files = 0;
  uint64_t tcp = 0;
  uint64_t scoped = 0;
};
[[nodiscard]] Handled handled_by(const Plan& plan, int abi);
// What a rule for such a place allows, of what is handled. For a file: what makes sense for files. Pure.
[[nodiscard]] uint64_t allowed_at(Access access, bool is_directory, const Handled& handled);
// What of all that this page promises the ABI lacks, in words; empty: nothing. Pure.
[[nodiscard]] std::string lacks_of_abi(int abi);

// Adds to the report what is in force, or why not. file_io: as enter().
[[nodiscard]] Result<void> restrict_files(const Plan& plan, int abi, Report& report);

}  // namespace ccixfer::sandbox
