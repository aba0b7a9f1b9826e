// How long something stands still, measured by the bytes that move. A side of a slow network that
// waits for its turn there does not stand still, so the bytes of each network are counted too.
// Pure. Source: routing/router/README.md 'A peer that stands still'.
#pragma once
#include <array>
#include <cstdint>
#include <map>

#include "core/base/time.h"

namespace ccixfer::routing {

inline constexpr uint64_t progress_bytes_min = 4096;  // a byte now and then is no progress

// Bytes that have moved, and how long they were waited for in vain.
struct ProgressClock {
  uint64_t moved = 0;
  Duration stands{0};
  void note(uint64_t at, Duration passed, uint64_t least_bytes = progress_bytes_min);
};

enum class Direction : uint8_t { gives = 0, takes = 1 };

// One direction of one leg.
struct LegFlow {
  ProgressClock clock;
  uint64_t seen_bytes = 0;     // of its own, at the last look
  uint64_t network_bytes = 0;  // of its whole network, when it moved itself
  bool waited_for = false;     // at this look
};

// What each network brings from all legs on it, and what it takes to them.
class NetworkFlows {
 public:
  void begin_look();
  // Of a leg to an end. It has moved `at_bytes` in all.
  void note(uint32_t device, Direction direction, LegFlow& leg, uint64_t at_bytes);
  void end_look(Duration passed);
  [[nodiscard]] uint64_t moved_bytes(uint32_t device, Direction direction) const { return flow(device, direction).moved_bytes; }
  [[nodiscard]] Duration stands(uint32_t device, Direction direction) const { return flow(device, direction).clock.stands; }

 private:
  struct Flow {
    uint64_t moved_bytes = 0;
    uint32_t waited_for = 0;  // legs, at this look
    ProgressClock clock;
  };
  [[nodiscard]] const Flow& flow(uint32_t device, Direction direction) const;
  std::map<uint32_t, std::array<Flow, 2>> flows_;  // by device
};

}  // namespace ccixfer::routing
