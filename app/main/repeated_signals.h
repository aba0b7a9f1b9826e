// A signal that comes twice for once: timeout(1) signals its child, and at once the group that the child is in as well. Pure.
#pragma once
#include <sys/types.h>

#include <map>

#include "core/base/time.h"

namespace ccixfer::program {

// A second signal counts as the same one if it comes so soon after the first. A person or a service manager who means a second
// signal takes longer, and the kernel's own signals (a key at the terminal) always count.
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
  std::map<int, Sent> sent_;  // by number of the signal: the last one sent by kill(2) that counted
};

}  // namespace ccixfer::program
