// Closes descriptors on threads of its own. What goes with a descriptor that a stranger had a hand in may take as long as the
// stranger likes: a TCP socket that lingers, a file of a file system of the stranger's own.
// Bounds: threads_max threads at once, each of which ends when nothing waits. What comes meanwhile waits, open. A closer that goes
// leaves its threads behind with what waits. Used by one thread.
#pragma once
#include <memory>

#include "core/host/descriptor.h"

namespace ccixfer::shm {

class Closer {
 public:
  static constexpr size_t threads_max = 8;
  static constexpr size_t waiting_max = 64;

  Closer();
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
