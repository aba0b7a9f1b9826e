#include "app/main/flow_watch.h"

#include <utility>

namespace ccixfer::program {

std::optional<Instant> FlowWatch::note(Instant now, uint64_t bytes) {
  const std::optional<Instant> since = std::exchange(since_, now);
  const uint64_t before = std::exchange(bytes_, bytes);
  if (!since || bytes < before) return std::nullopt;
  const double seconds = std::chrono::duration<double>(now - *since).count();
  if (static_cast<double>(bytes - before) < seconds * static_cast<double>(flow_bytes_per_s_min)) return std::nullopt;
  return *since + flow_look_interval;  // after a long time between two looks nobody knows when in it they moved
}

}  // namespace ccixfer::program
