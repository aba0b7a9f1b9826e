// The ends that have stood still lately, by name: how much of the shared buffers the connections of
// each may have. An end that moves again has its full share again. Single-threaded. Bounds:
// stood_still_max.
// Source: routing/router/README.md 'A peer that stands still'.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/base/time.h"

namespace ccixfer::routing {

inline constexpr Duration look_interval = std::chrono::milliseconds(100);
// A connection that stands still for so long gets no further buffer.
inline constexpr Duration stalled_after = std::chrono::milliseconds(250);
inline constexpr Duration penalty_time = std::chrono::seconds(60);
inline constexpr size_t stood_still_max = 1024;

enum class Share : uint8_t { full, trial, penalty };  // of the shared buffers

// The names of the two ends of a connection. "": that end is not remembered here.
using EndNames = std::array<std::string, 2>;

class StoodStill {
 public:
  void remember(const std::string& end, Duration for_how_long, Instant now);
  void moves(const std::string& end);  // something of that end has moved, over any connection
  // The end was cut off a while ago, and nothing of it has moved since.
  [[nodiscard]] bool was_cut_off(const std::string& end, Instant now) const;
  [[nodiscard]] bool has(const std::string& end) const { return !end.empty() && ends_.contains(end); }
  // `proven_at`: when a fragment of the connection went through last; never: none has.
  [[nodiscard]] Share share_of(const EndNames& ends, Instant proven_at, Instant now) const;

 private:
  struct Standstill {
    Instant since{}, until{};
    bool moved = false;  // something of the end has moved since it was cut off, over any connection
  };
  std::map<std::string, Standstill> ends_;
};

}  // namespace ccixfer::routing
