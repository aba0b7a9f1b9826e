// Whether it is worth to look on for a moment before sleeping. A peer that answers at once is met without a system call on either
// side; for one that does not, the moment is lost. So what happened lately decides: each moment in vain doubles the number of
// sleeps that come without one. Pure: no clock. Bounds: vain_doublings_max.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ccixfer::shm {

// In vain again and again: one sleep of 64 comes after a moment.
inline constexpr uint32_t vain_doublings_max = 6;

class Linger {
 public:
  // Asked before each sleep: whether there is to be a moment first.
  [[nodiscard]] bool before_this_sleep() {
    if (sleeps_without_ == 0) return true;
    --sleeps_without_;
    return false;
  }
  void ended(bool news) {
    vain_ = news ? 0 : std::min(vain_ + 1, vain_doublings_max);
    sleeps_without_ = (uint32_t{1} << vain_) - 1;
  }

 private:
  uint32_t vain_ = 0;  // moments in a row, vain_doublings_max at most
  uint32_t sleeps_without_ = 0;
};

}  // namespace ccixfer::shm
