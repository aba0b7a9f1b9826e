// Whether bytes move, however slowly: a segment may take longer than the timeout on its way, and tells of itself only at its end.
// Keepalives and words in between are too few to count.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/time.h"

namespace ccixfer::program {

inline constexpr uint64_t flow_bytes_per_s_min = 1024;
inline constexpr Duration flow_look_interval = std::chrono::seconds(1);

class FlowWatch {
 public:
  [[nodiscard]] bool is_due(Instant now) const { return !since_ || now - *since_ >= flow_look_interval; }  // to count costs calls
  // When it is due, with a count that grows, or begins anew with less. The moment up to which bytes are known to have moved;
  // nullopt: they did not.
  std::optional<Instant> note(Instant now, uint64_t bytes);

 private:
  std::optional<Instant> since_;
  uint64_t bytes_ = 0;
};

}  // namespace ccixfer::program
