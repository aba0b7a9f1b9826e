// The kernel's random numbers: keys of handles, incarnations, session numbers. Thread-safe.
#pragma once
#include "core/ports/entropy.h"

namespace ccixfer::host {

class SystemEntropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override;  // getrandom; aborts when the kernel has none, which is never after boot
};

}  // namespace ccixfer::host
