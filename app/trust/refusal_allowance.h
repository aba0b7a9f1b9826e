// How many refusals get a line in the audit log: whoever knocks without end fills no disk. Peers that the configuration names and
// strangers have an allowance each, so that strangers, who are many, hide no refusal of a peer.
// Bounds: refusals_at_once_max, and one more each refusal_interval_ms.
#pragma once
#include <array>
#include <cstdint>

namespace ccixfer::policy {

inline constexpr int64_t refusals_at_once_max = 100;
inline constexpr int64_t refusal_interval_ms = 1000;

class RefusalAllowance {
 public:
  // A line for this one? `now_ms`: of a clock that may be set back.
  [[nodiscard]] bool take(bool is_named, int64_t now_ms);

 private:
  struct Kind {
    int64_t left = refusals_at_once_max;
    int64_t counted_ms = 0;
  };
  std::array<Kind, 2> kinds_;
};

}  // namespace ccixfer::policy
