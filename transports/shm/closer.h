// Closes descriptors on threads of its own. What goes with a descriptor that a stranger had a hand in may take as long as the
// stranger likes: a TCP socket that lingers, a file of a file system of the stranger's own.
// Bounds: threads_max threads at once, each of which ends when nothing waits. What comes meanwhile waits, open, and the threads are
// hurried by a signal (SIGURG, which gets an empty handler if it has none): it ends the waits that any account can cause,
// of sockets that linger. What no signal ends is an answer of a file system of the peer's own, and only a descriptor that we took
// asks for one. A closer that goes leaves its threads behind with what waits. Used by one thread.
// Source: signal(7), "Interruption of system calls"; socket(7), SO_LINGER.
#pragma once
#include <memory>

#include "core/base/time.h"
#include "core/host/descriptor.h"

namespace ccixfer::shm {

class Closer {
 public:
  static constexpr size_t threads_max = 8;
  static constexpr size_t waiting_max = 64;
  static constexpr Duration hurry_again = std::chrono::milliseconds(20);

  explicit Closer(size_t threads = threads_max);
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
  void close(host::Descriptor descriptor);
  // As many wait as should: whoever can put off what may need to be closed here does so.
  [[nodiscard]] bool is_full() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace ccixfer::shm
