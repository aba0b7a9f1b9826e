// The latency metric: what a message takes from router to router, told in our own record and
// measured only when the metrics ask for it. What is told changes when the measurement differs by a
// quarter and by latency_step_min_ns, so that noise neither floods records nor makes routes flap.
// Pure. Source: routing §VI.B.
#pragma once
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::routing {

inline constexpr Duration latency_probe_interval = std::chrono::seconds(5);
inline constexpr uint64_t latency_step_min_ns = 100'000;

// One way, at least 1. `known_ns` is what was measured before; 0: nothing.
[[nodiscard]] uint64_t smoothed_latency_ns(uint64_t known_ns, Duration round_trip);
[[nodiscard]] bool is_worth_telling(uint64_t told_ns, uint64_t measured_ns);

}  // namespace ccixfer::routing
