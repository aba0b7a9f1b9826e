// The system calls of the transport, between it and the kernel: written down, and failing where a test says so. What the kernel
// seldom does is tested so: a signal in a call, tables that are full, memory that is out. Only the thread of the test is concerned.
#pragma once
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace ccixfer::tcp::calls {

enum class Call {
  send,
  recv,
  splice,
  vmsplice,
  accept,
  connect,
  pipe,
  pipe_size,
  epoll_create,
  epoll_add,
  epoll_wait,
  timer,
  event,
  queued,
  interfaces
};

struct Made {  // a call that went through to the kernel, or failed as planned
  Call call;
  size_t size = 0;  // offered
  bool more = false;
};

struct Interface {
  std::string name;
  std::string address;  // numeric; "": it has none
  unsigned flags = 0;
};

// While it lives.
class Watched {
 public:
  Watched();
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  // The next `times` calls of that kind fail so, after `after` that do not.
  void fail(Call call, int error, size_t times = 1, size_t after = 0);
  void pipe_sizes(int bytes);                          // what a pipe is said to have
  void interfaces(std::vector<Interface> interfaces);  // what the host is said to have
  [[nodiscard]] size_t count(Call call) const;
  [[nodiscard]] std::vector<bool> more(Call call) const;  // of each
  void forget();                                          // what was made so far
};

}  // namespace ccixfer::tcp::calls
