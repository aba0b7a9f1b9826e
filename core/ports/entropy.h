// Randomness as an argument: getrandom in production, a seeded generator under simulation.
#pragma once
#include <cstdint>

namespace ccixfer::ports {

class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual uint64_t next_u64() = 0;
};

}  // namespace ccixfer::ports
