// Which of several possible next hops a new connection tries first. Equally good ones take turns,
// from one by chance on: parallel routers share the load, and lanes that come together are spread.
// Bounds: candidates_tried_max.
#pragma once
#include <optional>
#include <vector>

#include "core/ports/entropy.h"
#include "routing/map/router_map.h"

namespace ccixfer::routing {

inline constexpr size_t candidates_tried_max = 4;

class HopTurns {
 public:
  explicit HopTurns(ports::Entropy& entropy) : entropy_(entropy) {}
  // `hops` are ordered by their rank. Returned: those to try, the best one last.
  [[nodiscard]] std::vector<NextHop> next(std::vector<NextHop> hops);

 private:
  ports::Entropy& entropy_;
  std::optional<uint64_t> turn_;
};

}  // namespace ccixfer::routing
