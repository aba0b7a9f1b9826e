#include "core/sandbox/syscalls.h"

#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>

#include "core/sandbox/steps.h"
#include "core/sandbox/syscall_lists.h"

namespace ccixfer::sandbox {
namespace {

using Values = std::initializer_list<uint64_t>;

constexpr unsigned socket_type = 0xf;         // of socket's second argument; the rest are flags
constexpr uint64_t low_32_bits = 0xffffffff;  // what the kernel looks at, where the argument is an int

scmp_arg_cmp is(unsigned argument, uint64_t value) { return {argument, SCMP_CMP_MASKED_EQ, low_32_bits, value}; }
scmp_arg_cmp has(unsigned argument, uint64_t mask, uint64_t value) { return {argument, SCMP_CMP_MASKED_EQ, mask, value}; }

// The rules; the first that fails is kept.
class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), seccomp_release) {
    if (!context_) problem_ = ENOMEM;
  }
  void set(scmp_filter_attr attribute, uint32_t value) {
    if (problem_ == 0) note(seccomp_attr_set(context_.get(), attribute, value));
  }
  void set_if_known(scmp_filter_attr attribute, uint32_t value) {
    if (problem_ == 0) static_cast<void>(seccomp_attr_set(context_.get(), attribute, value));
  }
  void add(uint32_t action, const char* name, std::initializer_list<scmp_arg_cmp> conditions = {}) {
    if (problem_ != 0) return;
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) return;
    note(seccomp_rule_add_array(context_.get(), action, number, static_cast<unsigned>(conditions.size()), conditions.begin()));
  }
  void allow(const char* name, std::initializer_list<scmp_arg_cmp> conditions = {}) { add(SCMP_ACT_ALLOW, name, conditions); }
  void add_all(uint32_t action, const Names& names) {
    for (const std::string& name : names) add(action, name.c_str());
  }
  // 0, or an errno.
  [[nodiscard]] int problem() const { return problem_; }
  [[nodiscard]] int load() { return -seccomp_load(context_.get()); }

 private:
  void note(int result) {
    if (result < 0) problem_ = -result;
  }
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int problem_ = 0;
};

// Memory is written or executed, never both. Libraries that are loaded late map their files to execute them.
void allow_memory(Filter& filter) {
  filter.allow("mmap", {has(2, PROT_EXEC, 0)});
  filter.allow("mmap", {has(2, PROT_EXEC | PROT_WRITE, PROT_EXEC)});
  filter.allow("mprotect", {has(2, PROT_EXEC, 0)});
}

// TCP, UDP to ask for addresses, the interfaces of this host, and sockets with a name, for caches of names and for logs. Without a
// protocol beside TCP, since Landlock knows no ports of others (MPTCP).
void allow_sockets(Filter& filter, bool dials) {
  for (const uint64_t family : Values{AF_INET, AF_INET6}) {
    for (const uint64_t protocol : Values{0, IPPROTO_TCP})
      filter.allow("socket", {is(0, family), has(1, socket_type, SOCK_STREAM), is(2, protocol)});
    if (!dials) continue;
    for (const uint64_t protocol : Values{0, IPPROTO_UDP})
      filter.allow("socket", {is(0, family), has(1, socket_type, SOCK_DGRAM), is(2, protocol)});
  }
  filter.allow("socket", {is(0, AF_UNIX)});
  filter.allow("socket", {is(0, AF_NETLINK), is(2, NETLINK_ROUTE)});
}

void allow_some_arguments(Filter& filter, const Plan& plan) {
  allow_memory(filter);
  allow_sockets(filter, plan.dials);
  // How much waits in a socket, whether something is a terminal and how wide, and the number of an interface. Blocks that
  // two files share. Never TIOCSTI, which types for whoever started us.
  for (const uint64_t order : Values{FIONREAD, FIONBIO, TIOCOUTQ, TIOCGWINSZ, TCGETS, SIOCGIFINDEX, FICLONERANGE})
    filter.allow("ioctl", {is(1, order)});
  constexpr int set_vma = 0x53564d41;  // PR_SET_VMA: newer C libraries give names to memory
  for (const uint64_t option : Values{PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_CAPBSET_READ, set_vma})
    filter.allow("prctl", {is(0, option)});
  filter.allow("prlimit64", {is(0, 0), scmp_arg_cmp{2, SCMP_CMP_EQ, 0, 0}});  // ours are read
  filter.allow("tgkill", {is(0, static_cast<uint64_t>(getpid()))});           // abort
  if (plan.shares_memory) filter.allow("memfd_create");
  constexpr uint64_t rdma_verbs_ioctl = 0xc0181b01;  // of <rdma/rdma_user_ioctl_cmds.h>, which is there with libibverbs-dev only
  if (plan.uses_cards) filter.allow("ioctl", {is(1, rdma_verbs_ioctl)});
  if (!plan.executes) filter.allow("clone", {has(0, CLONE_THREAD, CLONE_THREAD)});
}

}  // namespace

bool has_seccomp() { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0; }

Result<void> restrict_syscalls(const Plan& plan, bool offered, Report& report) {
  const auto missing = [&report] {
    report.missing.emplace_back("system calls are not restricted: this kernel, or the container, offers no seccomp filter");
    return Result<void>();
  };
  if (!offered) return missing();
  Filter filter;
  filter.set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  filter.set_if_known(SCMP_FLTATR_API_SYSRAWRC, 1);
  // We run nobody else's code beside ours, so no guard against reading memory by speculation is worth its price (before
  // Linux 5.16).
  filter.set_if_known(SCMP_FLTATR_CTL_SSB, 1);
  filter.set_if_known(SCMP_FLTATR_CTL_OPTIMIZE, 2);
  filter.add_all(SCMP_ACT_ALLOW, allowed_syscalls());
  allow_some_arguments(filter, plan);
  filter.add_all(SCMP_ACT_KILL_PROCESS, deadly_syscalls());
  filter.add_all(plan.executes ? SCMP_ACT_ALLOW : SCMP_ACT_KILL_PROCESS,
                 plan.executes ? syscalls_of_programs() : deadly_syscalls_without_programs());
  if (filter.problem() != 0) return failed_step("seccomp rules", filter.problem());
  const int problem = filter.load();
  if (problem == EINVAL || problem == ENOSYS || problem == EOPNOTSUPP || problem == EPERM || problem == EACCES) return missing();
  if (problem != 0) return failed_step("seccomp", problem);
  report.in_force.emplace_back("system calls: seccomp, a list of those that are needed");
  return {};
}

}  // namespace ccixfer::sandbox
