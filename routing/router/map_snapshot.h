// What the workers of a router share: the map at one moment, and which of the router's devices its
// own record tells of. Immutable, so that any thread may read it and nobody locks. It is replaced as
// a whole.
// Source: routing/router/README.md 'Workers'.
#pragma once
#include <memory>
#include <utility>

#include "routing/map/router_map.h"
#include "routing/router/own_record.h"

namespace ccixfer::routing {

class MapSnapshot {
 public:
  MapSnapshot(std::shared_ptr<const RouterMap> map, OwnRecord own) : map_(std::move(map)), own_(std::move(own)) {}
  [[nodiscard]] const std::shared_ptr<const RouterMap>& map() const { return map_; }
  [[nodiscard]] const OwnRecord& own() const { return own_; }

 private:
  std::shared_ptr<const RouterMap> map_;
  OwnRecord own_;
};

}  // namespace ccixfer::routing
