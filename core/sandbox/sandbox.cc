#include "core/sandbox/sandbox.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <filesystem>
#include <system_error>

#include "core/base/check.h"
#include "core/sandbox/capabilities.h"
#include "core/sandbox/landlock.h"
#include "core/sandbox/steps.h"
#include "core/sandbox/syscalls.h"

namespace ccixfer::sandbox {
namespace {

// Where /proc is not mounted nobody can tell.
Result<void> check_one_thread() {
  std::error_code problem;
  std::filesystem::directory_iterator thread("/proc/self/task", problem);
  if (problem) return {};
  size_t threads = 0;
  for (; thread != std::filesystem::directory_iterator() && !problem; thread.increment(problem)) ++threads;
  if (problem) return failed_step("/proc/self/task", problem.value());
  CHECK(threads == 1);
  return {};
}

// Memory holds keys and other people's data: it is in no core dump, and no other process of the account looks at it.
Result<void> hide_memory() {
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return failed_step("setrlimit");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed_step("PR_SET_DUMPABLE");
  return {};
}

}  // namespace

Offers offers_of_kernel() { return {landlock_abi(), has_seccomp()}; }

Result<Report> enter(const Plan& plan, const Offers& offers) {
  if (auto checked = check_one_thread(); !checked) return tl::unexpected(checked.error());
  Report report;
  if (auto hidden = hide_memory(); !hidden) return tl::unexpected(hidden.error());
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed_step("PR_SET_NO_NEW_PRIVS");
  report.in_force.emplace_back("no new privileges, no core dump, memory hidden from other processes");
  // In this order: Landlock opens the places, which may take a capability, and the list of system calls has none of the calls that
  // the steps before it make.
  if (plan.uses_cards) {
    report.missing.emplace_back(
        "files and capabilities are not restricted: RDMA devices take no orders from a process whose rights have changed");
  } else {
    if (auto done = restrict_files(plan, offers.landlock_abi, report); !done) return tl::unexpected(done.error());
    if (auto done = drop_capabilities(plan.file_rights, report); !done) return tl::unexpected(done.error());
  }
  if (auto done = restrict_syscalls(plan, offers.seccomp, report); !done) return tl::unexpected(done.error());
  return report;
}

}  // namespace ccixfer::sandbox
