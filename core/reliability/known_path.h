// What earlier connections found of a path, so that a new one need not find out from nothing how much it carries.
// Who keeps it decides for how long: what is recalled only hastens the start of a connection, which finds out for itself whether
// it still holds (careful_start.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/time.h"

namespace ccixfer::reliability {

struct KnownPath {
  uint64_t bytes_per_s = 0;  // that it delivered
  Duration round_trip{0};    // the shortest
};

// Paths by the host at their other end, as people write it. Single-threaded; outlives the transports that use it.
class PathMemory {
 public:
  virtual ~PathMemory() = default;
  [[nodiscard]] virtual std::optional<KnownPath> recall(std::string_view host) const = 0;
  virtual void remember(std::string_view host, const KnownPath& path) = 0;
};

}  // namespace ccixfer::reliability
