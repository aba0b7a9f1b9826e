#include "tests/unit/tcp/calls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <optional>

namespace ccixfer::tcp::calls {
namespace {

struct Fault {
  Call call;
  int error;
  size_t times;
  size_t after;
};
struct Listed {  // what getifaddrs gives
  std::deque<ifaddrs> entries;
  std::deque<sockaddr_storage> addresses;
  std::deque<std::string> names;
};
struct State {
  std::vector<Fault> faults;
  std::vector<Made> made;
  std::optional<int> pipe_bytes;
  std::optional<Listed> listed;
};
thread_local State* state = nullptr;

// True: it fails, errno says how.
bool fails(Call call, size_t size = 0, bool more = false) {
  if (state == nullptr) return false;
  state->made.push_back({call, size, more});
  for (Fault& fault : state->faults) {
    if (fault.call != call || fault.times == 0) continue;
    if (fault.after > 0) {
      --fault.after;
      return false;
    }
    --fault.times;
    errno = fault.error;
    return true;
  }
  return false;
}

size_t size_of(const iovec* spans, size_t count) {
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += spans[i].iov_len;
  return size;
}

}  // namespace

Watched::Watched() { state = new State; }
Watched::~Watched() {
  delete state;
  state = nullptr;
}
void Watched::fail(Call call, int error, size_t times, size_t after) { state->faults.push_back({call, error, times, after}); }
void Watched::pipe_sizes(int bytes) { state->pipe_bytes = bytes; }
void Watched::interfaces(std::vector<Interface> interfaces) {
  Listed& listed = state->listed.emplace();
  for (const Interface& one : interfaces) {
    ifaddrs& entry = listed.entries.emplace_back();
    entry.ifa_name = listed.names.emplace_back(one.name).data();
    entry.ifa_flags = one.flags;
    if (one.address.empty()) continue;
    sockaddr_storage& storage = listed.addresses.emplace_back();
    if (in_addr v4{}; inet_pton(AF_INET, one.address.c_str(), &v4) == 1) {
      storage.ss_family = AF_INET;
      reinterpret_cast<sockaddr_in&>(storage).sin_addr = v4;
    } else {
      storage.ss_family = AF_INET6;
      inet_pton(AF_INET6, one.address.c_str(), &reinterpret_cast<sockaddr_in6&>(storage).sin6_addr);
    }
    entry.ifa_addr = reinterpret_cast<sockaddr*>(&storage);
  }
  for (size_t i = 1; i < listed.entries.size(); ++i) listed.entries[i - 1].ifa_next = &listed.entries[i];
}
size_t Watched::count(Call call) const {
  return static_cast<size_t>(
      std::count_if(state->made.begin(), state->made.end(), [&](const Made& made) { return made.call == call; }));
}
std::vector<bool> Watched::more(Call call) const {
  std::vector<bool> list;
  for (const Made& made : state->made) {
    if (made.call == call) list.push_back(made.more);
  }
  return list;
}
void Watched::forget() { state->made.clear(); }

}  // namespace ccixfer::tcp::calls

using namespace ccixfer::tcp::calls;

// In place of the C library's, for all of this executable.
extern "C" {

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  if (fails(Call::send, size, (flags & MSG_MORE) != 0)) return -1;
  return syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (fails(Call::send, size_of(message->msg_iov, message->msg_iovlen), (flags & MSG_MORE) != 0)) return -1;
  return syscall(SYS_sendmsg, fd, message, flags);
}
ssize_t recv(int fd, void* bytes, size_t size, int flags) {
  if (fails(Call::recv, size)) return -1;
  return syscall(SYS_recvfrom, fd, bytes, size, flags, nullptr, nullptr);
}
ssize_t readv(int fd, const iovec* spans, int count) {
  if (fails(Call::recv, size_of(spans, static_cast<size_t>(count)))) return -1;
  return syscall(SYS_readv, fd, spans, count);
}
ssize_t splice(int from, loff_t* from_at, int to, loff_t* to_at, size_t size, unsigned flags) {
  if (fails(Call::splice, size, (flags & SPLICE_F_MORE) != 0)) return -1;
  return syscall(SYS_splice, from, from_at, to, to_at, size, flags);
}
ssize_t vmsplice(int fd, const iovec* spans, size_t count, unsigned flags) {
  if (fails(Call::vmsplice, size_of(spans, count))) return -1;
  return syscall(SYS_vmsplice, fd, spans, count, flags);
}
int accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  if (fails(Call::accept)) return -1;
  return static_cast<int>(syscall(SYS_accept4, fd, peer, size, flags));
}
int connect(int fd, const sockaddr* address, socklen_t size) {
  if (fails(Call::connect)) return -1;
  return static_cast<int>(syscall(SYS_connect, fd, address, size));
}
int pipe2(int* ends, int flags) noexcept {
  if (fails(Call::pipe)) return -1;
  return static_cast<int>(syscall(SYS_pipe2, ends, flags));
}
int epoll_create1(int flags) noexcept {
  if (fails(Call::epoll_create)) return -1;
  return static_cast<int>(syscall(SYS_epoll_create1, flags));
}
int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && fails(Call::epoll_add)) return -1;
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}
int epoll_wait(int epoll, epoll_event* events, int count, int timeout_ms) {
  if (fails(Call::epoll_wait)) return -1;
  return static_cast<int>(syscall(SYS_epoll_pwait, epoll, events, count, timeout_ms, nullptr, 0));
}
int timerfd_create(clockid_t clock, int flags) noexcept {
  if (fails(Call::timer)) return -1;
  return static_cast<int>(syscall(SYS_timerfd_create, clock, flags));
}
int eventfd(unsigned count, int flags) noexcept {
  if (fails(Call::event)) return -1;
  return static_cast<int>(syscall(SYS_eventfd2, count, flags));
}
int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (fails(Call::queued)) return -1;
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}
int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  const bool of_pipe = command == F_SETPIPE_SZ || command == F_GETPIPE_SZ;
  if (of_pipe && fails(Call::pipe_size)) return -1;
  if (of_pipe && state != nullptr && state->pipe_bytes) return *state->pipe_bytes;
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}
int getifaddrs(ifaddrs** list) noexcept {
  if (fails(Call::interfaces)) return -1;
  if (state != nullptr && state->listed) {
    *list = state->listed->entries.empty() ? nullptr : &state->listed->entries.front();
    return 0;
  }
  return reinterpret_cast<int (*)(ifaddrs**)>(dlsym(RTLD_NEXT, "getifaddrs"))(list);
}
void freeifaddrs(ifaddrs* list) noexcept {
  if (state != nullptr && state->listed) return;
  reinterpret_cast<void (*)(ifaddrs*)>(dlsym(RTLD_NEXT, "freeifaddrs"))(list);
}

}  // extern "C"
