// How many lanes a session has, where nobody said: few to begin with, and more as long as the path shows that more are of use.
// - Packets that are lost although no queue stands in the path are lost by chance. Each loss holds up its own lane alone, and for
//   a round trip, so the more losses there are in a round trip, the more lanes the session gets.
// - Where the rate grows no more, half as many lanes again are tried. They stay, and more are tried, if the rate grew with them.
//   If it did not, the path is full, or a disk or a processor sets the pace, and nothing is tried before the rate grows. Nothing
//   is tried while a queue stands in the path: then it is full.
// Few lanes are better as long as they fill the path: many that do not know of each other fill its queue, lose what does not
// fit there, and the last one to end is later.
// Pure: it is told what moved, and when.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/time.h"
#include "core/ports/transport.h"

namespace ccixfer::program {

inline constexpr uint16_t lanes_first_most = 6;
inline constexpr uint16_t lanes_chosen_most = 16;
inline constexpr Duration lane_look_every_least = std::chrono::milliseconds(50);

// The most connections in parallel that a path can make use of. The window of a connection of tcp is bounded by the hosts' socket
// buffers, so a long path needs several to be full: 2 x bandwidth x delay / window. udp, eth, verbs and shm have windows of their
// own, and one connection that knows the whole path fills less of its queue than many that do not know of each other.
[[nodiscard]] uint16_t lanes_for(const std::vector<ports::HopInfo>& hops);

class LaneCount {
 public:
  // There are `least` lanes at any time, and up to `most` when the path wants them: 1 <= least <= most. Where the two are equal,
  // nothing is looked at.
  LaneCount(uint16_t least, uint16_t most, Duration round_trip);

  [[nodiscard]] uint16_t lanes() const { return lanes_; }
  [[nodiscard]] Instant next_look() const { return next_look_; }  // never: the number stands
  // To be called from next_look() on. The counts are sums over all lanes, so they fall when a lane goes; then the comparison
  // begins anew.
  void look(Instant now, uint64_t moved_bytes, const std::optional<ports::PathFigures>& path);

 private:
  struct Seen {
    Instant at{};
    uint64_t moved_bytes = 0;
    std::optional<ports::PathFigures> path;
  };
  struct Trial {
    uint16_t lanes_before = 0;
    double rate_before = 0;
  };
  [[nodiscard]] double losses_by_chance(const Seen& seen) const;  // in a round trip, by all lanes
  void grow(uint16_t lanes, Instant now);
  void judge_rate(double rate, const std::optional<ports::PathFigures>& path, Instant now);

  const uint16_t most_;
  const Duration round_trip_;
  const Duration look_every_;
  const Duration interval_;  // over which rates are compared
  uint16_t lanes_;
  Instant next_look_ = Instant::min();
  std::optional<Seen> before_;
  double rate_before_ = 0;  // bytes/s, of the interval before
  std::optional<Trial> trial_;
};

}  // namespace ccixfer::program
