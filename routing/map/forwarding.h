// What a router asks of a map snapshot: the same answers as RouterMap::next_hops, remembered. The first question for
// a destination costs one run of Dijkstra's algorithm, every other one a look-up. Single-threaded.
// Bounds: answers_max (a peer chooses what it asks for; beyond, all is forgotten and computed anew).
#pragma once
#include <memory>
#include <unordered_map>

#include "routing/map/router_map.h"

namespace ccixfer::routing {

class Forwarding {
 public:
  static constexpr size_t answers_max = 16384;
  Forwarding(std::shared_ptr<const RouterMap> map, uint64_t router) : map_(std::move(map)), router_(router) {}
  // Valid until the next call.
  [[nodiscard]] const std::vector<NextHop>& next_hops(SubnetId source, SubnetId in, SubnetId to);
  [[nodiscard]] const RouterMap& map() const { return *map_; }
  [[nodiscard]] const std::shared_ptr<const RouterMap>& shared_map() const { return map_; }
  [[nodiscard]] size_t answers() const { return answers_.size(); }

 private:
  struct Question {
    SubnetId source;
    SubnetId in;
    SubnetId to;
    bool any_source = false;  // of that AS: source.subnet is 0
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Mix {
    size_t operator()(const Question& question) const;
  };
  std::shared_ptr<const RouterMap> map_;
  uint64_t router_;
  std::unordered_map<Question, std::vector<NextHop>, Mix> answers_;
};

}  // namespace ccixfer::routing
