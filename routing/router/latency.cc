#include "routing/router/latency.h"

#include <algorithm>

namespace ccixfer::routing {
namespace {

constexpr uint64_t smoothing = 4;  // a measurement counts for a quarter

}  // namespace

uint64_t smoothed_latency_ns(uint64_t known_ns, Duration round_trip) {
  const auto one_way_ns = std::max<uint64_t>(1, static_cast<uint64_t>(round_trip.count()) / 2);
  return known_ns == 0 ? one_way_ns : (known_ns * (smoothing - 1) + one_way_ns) / smoothing;
}

bool is_worth_telling(uint64_t told_ns, uint64_t measured_ns) {
  const uint64_t difference_ns = measured_ns > told_ns ? measured_ns - told_ns : told_ns - measured_ns;
  return told_ns == 0 || (difference_ns >= latency_step_min_ns && difference_ns >= told_ns / 4);
}

}  // namespace ccixfer::routing
