// Streams whose dialler has said nothing yet, by the time at which they came. When connections are undecided up to the bound, so
// many silent ones would keep everybody out until the handshake's time is over; those that have been silent for
// silence_when_crowded_max make room then. Pure; single-threaded.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "core/base/time.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

class SilentDiallers {
 public:
  void add(uint32_t index, Instant since) { silent_.emplace(since, index); }
  void remove(uint32_t index, Instant since) { silent_.erase({since, index}); }
  // When the first of them has to go, if there is a crowd.
  [[nodiscard]] Instant deadline() const {
    return silent_.empty() ? never : after(silent_.begin()->first, silence_when_crowded_max);
  }
  [[nodiscard]] std::optional<uint32_t> first_due(Instant now) const {
    return deadline() <= now ? std::optional(silent_.begin()->second) : std::nullopt;
  }

 private:
  std::set<std::pair<Instant, uint32_t>> silent_;
};

}  // namespace ccixfer::stream
