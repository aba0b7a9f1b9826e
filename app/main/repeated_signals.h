// A signal that comes twice for once: timeout(1) signals its child, and at once the group that the child is in as well. Pure.
#pragma once
#include <sys/types.h>

#include <map>

#include "core/base/time.h"

namespace ccixfer::program {

// So long after the first one; whoever means a second one (a person, a service manager) takes longer, or is the kernel.
inline constexpr Duration repeated_within = std::chrono::milliseconds(25);

class RepeatedSignals {
 public:
  // Whether this SIGINT or SIGTERM is the one that the same process sent a moment ago. `code`: si_code.
  [[nodiscard]] bool is_repeated(int number, int code, pid_t sender, Instant now);

 private:
  struct Sent {
    pid_t sender = 0;
    Instant at;
  };
  std::map<int, Sent> sent_;  // by kill(2): the last that counts, of each number
};

}  // namespace ccixfer::program
