// Confines this process, once, to what it still needs: no new privileges, no core dump, no debugger of the same account, no
// capabilities but those that it asks for, Landlock for files and TCP, and a list of system calls (seccomp).
// A process calls enter() after it opened what it needs and before it hears of any peer.
// Guarantees: what is in force stays in force for all threads and programs that this process starts, until it ends.
// What the kernel, or the container around us, does not offer is left out and told in Report::missing: that is no error.
// Errors: file_io: a step that the kernel offers has failed (no descriptors, no memory). Some steps may be in force then; the
// process must end. Thread: the process has one thread as yet (CHECK), because Landlock and capabilities are a thread's own.
// Source: Linux, Documentation/userspace-api/landlock.rst and seccomp_filter.rst; capabilities(7).
#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/sandbox/plan.h"

namespace ccixfer::sandbox {

// What the running kernel has.
struct Offers {
  int landlock_abi = 0;  // 0: no Landlock
  bool seccomp = true;
};
[[nodiscard]] Offers offers_of_kernel();

// For the log; each line is one thing.
struct Report {
  std::vector<std::string> in_force;
  std::vector<std::string> missing;
  bool confines_files = false;  // a directory that takes the place of another one cannot be opened from now on
};

[[nodiscard]] Result<Report> enter(const Plan& plan, const Offers& offers = offers_of_kernel());

}  // namespace ccixfer::sandbox
