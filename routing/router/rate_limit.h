// A budget of bytes a second. What was not used is not saved, and it may be overdrawn for
// rate_burst. Pure; 0: there is no limit.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/time.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

inline constexpr Duration rate_burst = std::chrono::milliseconds(20);
// A fragment is paid for as a whole, and nothing else moves meanwhile. So fragments are short enough that so many go in a second.
inline constexpr uint32_t fragments_per_s_min = 16;

class RateLimit {
  static constexpr double overdrawn_ns_max = 1e18;  // over thirty years: keeps an Instant in its bounds

 public:
  explicit RateLimit(uint64_t bytes_per_s) : bytes_per_s_(bytes_per_s) {}
  // What is overdrawn is paid back at the new rate, so a higher rate counts at once.
  void set(uint64_t bytes_per_s, Instant now) {
    const double scale = bytes_per_s == 0 ? 0 : static_cast<double>(bytes_per_s_) / static_cast<double>(bytes_per_s);
    const double left_ns = static_cast<double>(std::max(used_until_ - now, Duration{0}).count()) * scale;
    used_until_ = now + Duration(static_cast<int64_t>(std::min(left_ns, overdrawn_ns_max)));
    bytes_per_s_ = bytes_per_s;
  }
  [[nodiscard]] bool is_used_up(Instant now) const { return bytes_per_s_ > 0 && used_until_ > now + rate_burst; }
  void use(uint64_t bytes, Instant now) {
    if (bytes_per_s_ == 0) return;
    const auto cost = static_cast<int64_t>(bytes * 1'000'000'000u / bytes_per_s_);
    used_until_ = std::max(used_until_, now) + Duration(cost);
  }
  // The longest fragments on which connections should agree: whole pages, and `at_most` or less.
  [[nodiscard]] uint32_t fragment_bytes(uint32_t at_most) const {
    if (bytes_per_s_ == 0) return at_most;
    const uint64_t pages = std::max<uint64_t>(bytes_per_s_ / fragments_per_s_min / fragment_bytes_floor, 1);
    return static_cast<uint32_t>(std::min<uint64_t>(at_most, pages * fragment_bytes_floor));
  }
  // When somebody who waits for the rate may go on. never: the rate holds up nobody, whatever else
  // they wait for.
  [[nodiscard]] Instant next_deadline(Instant now) const { return is_used_up(now) ? used_until_ - rate_burst : never; }

 private:
  uint64_t bytes_per_s_;
  Instant used_until_{};
};

}  // namespace ccixfer::routing
