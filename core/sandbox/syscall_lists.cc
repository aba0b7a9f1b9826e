#include "core/sandbox/syscall_lists.h"

#include <sstream>

namespace ccixfer::sandbox {
namespace {

// A paragraph a purpose.
constexpr const char* allowed = R"(
  brk madvise membarrier mlock mlock2 mremap munlock munmap

  exit exit_group futex futex_wait futex_waitv futex_wake get_robust_list restart_syscall rseq sched_getaffinity sched_yield
  set_robust_list

  rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigtimedwait sigaltstack signalfd4

  clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time timerfd_create timerfd_gettime timerfd_settime

  capget getcpu getegid geteuid getgid getgroups getpid getppid getrandom getrlimit getrusage gettid getuid sysinfo times
  ugetrlimit uname

  access chmod chown faccessat faccessat2 fchmodat fchmodat2 fchownat getcwd lchown link linkat lstat mkdir mkdirat
  mknod mknodat name_to_handle_at newfstatat open openat openat2 readlink readlinkat rename renameat renameat2 rmdir stat statfs statx symlink
  symlinkat truncate umask unlink unlinkat utimensat

  close close_range copy_file_range dup dup2 dup3 fadvise64 fallocate fchmod fchown fcntl fdatasync flock fstat fstatfs fsync
  ftruncate getdents64 lseek pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readv sendfile sync_file_range syncfs
  write writev

  fgetxattr flistxattr fremovexattr fsetxattr getxattr lgetxattr llistxattr lremovexattr lsetxattr

  epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 pipe pipe2 poll ppoll pselect6 select splice tee vmsplice

  accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto
  setsockopt shutdown socketpair
)";

constexpr const char* of_programs = R"(
  arch_prctl chdir clone execve execveat fchdir getpgid getpgrp getpriority getresgid getresuid getsid kill rt_sigsuspend setpgid
  setsid set_tid_address vfork wait4 waitid
)";

constexpr const char* deadly = R"(
  kcmp migrate_pages move_pages pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace

  chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree pivot_root setns umount2 unshare

  acct bpf clock_settime delete_module finit_module init_module ioperm iopl kexec_file_load kexec_load lookup_dcookie nfsservctl
  perf_event_open quotactl quotactl_fd reboot setdomainname sethostname settimeofday swapoff swapon syslog userfaultfd vhangup

  add_key keyctl open_by_handle_at request_key
)";

constexpr const char* deadly_without_programs = "execve execveat fork vfork";

Names words(const char* text) {
  std::istringstream stream(text);
  Names names;
  for (std::string name; stream >> name;) names.push_back(name);
  return names;
}

}  // namespace

Names allowed_syscalls() { return words(allowed); }
Names syscalls_of_programs() { return words(of_programs); }
Names deadly_syscalls() { return words(deadly); }
Names deadly_syscalls_without_programs() { return words(deadly_without_programs); }

}  // namespace ccixfer::sandbox
