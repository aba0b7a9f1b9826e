// The list of system calls: what ends the process, what it is told does not exist, and what goes on as before.
#include "core/sandbox/syscalls.h"

#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <set>
#include <thread>

#include "core/sandbox/syscall_lists.h"
#include "tests/unit/sandbox/child.h"

namespace ccixfer::sandbox {

using namespace test;

namespace {

Plan dialling() {
  Plan plan;
  plan.dials = true;
  return plan;
}

int raw(long number, long a = 0, long b = 0, long c = 0, long d = 0) { return error_of(syscall(number, a, b, c, d)); }

int try_socket(int family, int type, int protocol) {
  const int fd = socket(family, type, protocol);
  const int error = error_of(fd);
  if (fd >= 0) close(fd);
  return error;
}

}  // namespace

TEST_CASE("syscalls__lists__no_name_stands_in_two_of_them") {
  std::set<std::string> names;
  size_t count = 0;
  for (const Names& list : {allowed_syscalls(), deadly_syscalls()}) {
    count += list.size();
    names.insert(list.begin(), list.end());
  }
  CHECK(names.size() == count);
  for (const Names& list : {syscalls_of_programs(), deadly_syscalls_without_programs()}) {
    for (const std::string& name : list) CHECK(names.count(name) == 0);
  }
}

TEST_CASE("syscalls__what_only_an_intruder_calls__ends_the_process") {
  const std::vector<std::pair<const char*, std::function<int()>>> calls = {
      {"execve", [] { return error_of(execl("/bin/true", "true", nullptr)); }},
      {"fork", [] { return raw(SYS_fork); }},
      {"ptrace", [] { return error_of(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
      {"process_vm_readv", [] { return error_of(process_vm_readv(getppid(), nullptr, 0, nullptr, 0, 0)); }},
      {"unshare", [] { return error_of(unshare(CLONE_NEWUSER)); }},
      {"setns", [] { return error_of(setns(0, 0)); }},
      {"mount", [] { return error_of(mount("none", "/", "tmpfs", 0, nullptr)); }},
      {"chroot", [] { return error_of(chroot("/")); }},
      {"bpf", [] { return raw(SYS_bpf, BPF_MAP_CREATE); }},
      {"keyctl", [] { return raw(SYS_keyctl, KEYCTL_GET_KEYRING_ID); }},
      {"perf_event_open", [] { return raw(SYS_perf_event_open); }},
      {"init_module", [] { return raw(SYS_init_module); }},
      {"kexec_load", [] { return raw(SYS_kexec_load); }},
      {"open_by_handle_at", [] { return raw(SYS_open_by_handle_at); }},
      {"userfaultfd", [] { return raw(SYS_userfaultfd); }},
      {"pidfd_getfd", [] { return raw(SYS_pidfd_getfd); }},
  };
  for (const auto& [name, call] : calls) {
    INFO(name);
    CHECK(confined(dialling(), call).signal == SIGSYS);
  }
}

TEST_CASE("syscalls__not_on_the_list__do_not_exist") {
  const std::vector<std::pair<const char*, std::function<int()>>> calls = {
      {"one that is not yet known", [] { return raw(100'000); }},
      {"clone3", [] { return raw(SYS_clone3); }},
      {"a process", [] { return raw(SYS_clone, SIGCHLD); }},
      {"setuid", [] { return error_of(setuid(65534)); }},
      {"io_uring", [] { return raw(SYS_io_uring_setup, 1); }},
      {"a signal to another process", [] { return error_of(kill(getppid(), SIGTERM)); }},
      {"a signal to a thread of another process", [] { return raw(SYS_tgkill, getppid(), getppid(), SIGTERM); }},
      {"memory that is written and executed",
       [] {
         const void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return at == MAP_FAILED ? errno : 0;
       }},
      {"memory that becomes code",
       [] {
         void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return at == MAP_FAILED ? -1 : error_of(mprotect(at, 4096, PROT_READ | PROT_EXEC));
       }},
      {"a terminal that is typed into", [] { return error_of(ioctl(0, TIOCSTI, "x")); }},
      {"dumpable again", [] { return error_of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); }},
      {"a higher limit",
       [] {
         const rlimit limit{1, 1};
         return error_of(setrlimit(RLIMIT_NOFILE, &limit));
       }},
      {"packets", [] { return try_socket(AF_PACKET, SOCK_RAW, 0); }},
      {"raw sockets", [] { return try_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP); }},
      {"multipath TCP, which Landlock does not see", [] { return try_socket(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */); }},
      {"SCTP", [] { return try_socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP); }},
      {"other netlink", [] { return try_socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT); }},
      {"virtual machines", [] { return try_socket(AF_VSOCK, SOCK_STREAM, 0); }},
  };
  for (const auto& [name, call] : calls) {
    INFO(name);
    const Ended ended = confined(dialling(), call);
    CHECK(ended.answer == ENOSYS);
    CHECK(ended.signal == 0);
  }
}

TEST_CASE("syscalls__who_does_not_dial__has_no_datagrams") {
  CHECK(confined({}, [] { return try_socket(AF_INET, SOCK_DGRAM, 0); }).answer == ENOSYS);
  CHECK(confined(dialling(), [] { return try_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP); }).answer == 0);
  CHECK(confined({}, [] { return try_socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP); }).answer == 0);
  CHECK(confined({}, [] { return try_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }).answer == 0);
}

TEST_CASE("syscalls__orders_to_rdma_cards__of_who_uses_them") {
  const auto order = [] { return error_of(ioctl(0, 0xc0181b01, nullptr)); };  // RDMA_VERBS_IOCTL
  CHECK(confined({}, order).answer == ENOSYS);
  Plan plan;
  plan.uses_cards = true;
  CHECK(confined(plan, order).answer != ENOSYS);  // standard input is no card
}

TEST_CASE("syscalls__threads_names_and_memory__work_as_before") {
  CHECK(confined(dialling(), [] {
          int sum = 0;
          std::thread([&] { sum += 1; }).join();
          return sum == 1 ? 0 : 1;
        }).answer == 0);
  CHECK(confined(dialling(), [] {
          addrinfo* found = nullptr;
          const int problem = getaddrinfo("localhost", "80", nullptr, &found);
          if (problem == 0) freeaddrinfo(found);
          return problem == 0 ? 0 : 1;
        }).answer == 0);
  CHECK(confined({}, [] {
          const std::vector<char> large(64u << 20, 'x');  // mapped, and given back
          return large.back() == 'x' ? 0 : 1;
        }).answer == 0);
  CHECK(confined({}, [] { return error_of(prctl(PR_SET_NAME, "renamed", 0, 0, 0)); }).answer == 0);
  CHECK(confined({}, [] {
          rlimit limit{};
          return error_of(getrlimit(RLIMIT_NOFILE, &limit));
        }).answer == 0);
}

TEST_CASE("syscalls__abort__still_ends_the_process_as_a_bug_does") {
  CHECK(confined({}, [] {
          signal(SIGABRT, SIG_DFL);
          std::abort();
          return 0;
        }).signal == SIGABRT);
}

TEST_CASE("syscalls__plan_executes__a_program_runs_and_is_confined_too") {
  const TempDir mine, other;
  Plan plan;
  plan.executes = true;
  plan.places = {{mine.path(), Access::write}, {"/bin", Access::read}};
  const auto run = [&](const std::string& line) {
    return confined(plan,
                    [&] {
                      const char* const words[] = {"sh", "-c", line.c_str(), nullptr};
                      pid_t program = 0;
                      char* no_environment[] = {nullptr};
                      if (posix_spawn(&program, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(words), no_environment) != 0)
                        return 100;
                      return await(program).answer;
                    })
        .answer;
  };
  CHECK(run("exit 7") == 7);
  CHECK(run("echo x > " + mine.path() + "/new") == 0);
  if (has_landlock(2)) CHECK(run("exec 2> /dev/null; echo x > " + other.path() + "/new") != 0);
  CHECK_FALSE(std::filesystem::exists(other.path() + "/new"));
}

TEST_CASE("syscalls__kernel_without_filters__said_and_no_error") {
  const pid_t child = fork();
  if (child == 0) {
    const auto report = enter({}, {offers_of_kernel().landlock_abi, false});
    const auto about = [](const std::string& line) { return line.find("system calls") != std::string::npos; };
    const bool said = report && std::any_of(report->missing.begin(), report->missing.end(), about) &&
                      std::none_of(report->in_force.begin(), report->in_force.end(), about);
    _exit(said && error_of(syscall(SYS_clone3, nullptr, 0)) != ENOSYS ? 0 : 1);
  }
  CHECK(await(child).answer == 0);
}

TEST_CASE("syscalls__filter__is_in_force_once_entered") {
  CHECK(confined({{{"/proc", Access::read}}}, [] { return status_of_self("Seccomp") == "2" ? 0 : 1; }).answer == 0);
}

}  // namespace ccixfer::sandbox
