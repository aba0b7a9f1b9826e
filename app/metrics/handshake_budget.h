// How many handshakes of TLS there may be: strangers on a network can ask for nothing else, and each takes about a millisecond of a
// processor, so that transfers do not notice handshakes_per_s_max of them. What is not used is kept for one second.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>

namespace ccixfer::metrics {

inline constexpr size_t handshakes_per_s_max = 50;

class HandshakeBudget {
 public:
  using Clock = std::chrono::steady_clock;
  explicit HandshakeBudget(Clock::time_point now) : last_(now) {}
  [[nodiscard]] bool take(Clock::time_point now) {
    const double passed_s = std::chrono::duration<double>(now - last_).count();
    left_ = std::min<double>(handshakes_per_s_max, left_ + passed_s * handshakes_per_s_max);
    last_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  Clock::time_point last_;
  double left_ = handshakes_per_s_max;
};

}  // namespace ccixfer::metrics
