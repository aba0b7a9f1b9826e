// What a router tells the status page: of itself at once, and of its map in the other thread, which may take long in a large one.
// Bounds: connections_shown_max; of the map, routers_shown_max routers and routes_shown_max routes, and no routes at all where
// there are more routers.
#pragma once
#include <functional>
#include <memory>

#include "app/main/status_teller.h"
#include "routing/router/router.h"

namespace ccixfer::program {

inline constexpr size_t connections_shown_max = 100;
inline constexpr size_t routers_shown_max = 256;
inline constexpr size_t routes_shown_max = 200;

[[nodiscard]] report::Status of_router(StatusTeller& teller, const routing::Router& router, Instant now);
// What the further workers of a router have. They say how much it is, and not which connections.
struct WorkersShare {
  size_t connections = 0;
  uint32_t buffers_used = 0, buffers_count = 0;
};
void add_workers(report::StatusRouter& router, const WorkersShare& share);
// Routers, routes and problems of the map. Nothing is worked out twice for the same one.
class MapWords {
 public:
  [[nodiscard]] std::function<void(report::Status&)> of(std::shared_ptr<const routing::RouterMap> map);

 private:
  struct Known;
  std::shared_ptr<Known> known_;
};

}  // namespace ccixfer::program
