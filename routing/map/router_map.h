// The route map: an immutable snapshot built whole from records, by pure functions. Asks: from this router, for traffic that came
// in on this subnet, which next hops lead to that subnet, best first? Rules: a non-transit subnet is only first or last in a route;
// nothing is forwarded through an AS that is neither the source's nor the destination's; a WAN subnet is crossed only between
// different AS, once, and only for the AS its wan_to names; two WAN subnets of one AS never route to one another. Two devices with
// different subnet ids reach one another when both are WAN devices of different AS, with the same scheme, and both are public (no
// wan_to) or each names the other. Source: routing §IV.C.3, §VI, Tables I-II; reference cci.md 'The routing paper's examples'.
#pragma once
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "routing/map/record.h"

namespace ccixfer::routing {

enum class Metric : uint8_t { bandwidth, hops, capabilities, latency };
inline constexpr size_t metrics_max = 4;
[[nodiscard]] Result<std::vector<Metric>> parse_metrics(const std::vector<std::string>& names);  // usage: unknown, twice, none

// Additive, compared in the order of the metrics: the next one breaks ties.
struct Cost {
  std::array<uint64_t, metrics_max> value{};
  friend auto operator<=>(const Cost&, const Cost&) = default;
  friend Cost operator+(const Cost& a, const Cost& b);  // saturating
};
// max(1, floor(10^12 / rate)), doubled unless zero-copy and os-bypass both hold; a rate of 0 counts as 1 Gb/s.
[[nodiscard]] uint64_t bandwidth_metric(uint64_t rate_bits_per_s, uint8_t capabilities);

struct StaticRoute {
  SubnetId from, to;
  std::vector<SubnetId> via;  // subnets to cross, the first being `from`
};

struct NextHop {
  uint32_t device = 0;  // index in the asking router's record
  bool last = false;    // the destination itself is on that subnet: dial it
  uint64_t router = 0;  // else this router
  std::string uri;      // and its native address there
  uint32_t rank = 0;    // equal ranks cost the same; higher ones are fallbacks, still nearer to the destination than we are
  Cost cost;            // of what is left of the route
};

struct Route {
  std::vector<SubnetId> subnets;  // from the source's to the destination's
  Cost cost;
};

class RouterMap {
 public:
  RouterMap(std::vector<RouterRecord> records, std::vector<Metric> order, std::vector<StaticRoute> statics = {});

  // `source` is the subnet where the traffic began, `in` the one on which it reached `router`. Empty: no route.
  [[nodiscard]] std::vector<NextHop> next_hops(uint64_t router, SubnetId source, SubnetId in, SubnetId to) const;
  // For people: every route without a loop, those that contain a shorter one left out; cheapest first. Bound: routes_max.
  [[nodiscard]] std::vector<Route> routes(SubnetId from, SubnetId to) const;
  static constexpr size_t routes_max = 256;
  [[nodiscard]] std::vector<SubnetId> subnets() const;
  [[nodiscard]] const std::vector<RouterRecord>& records() const { return records_; }
  [[nodiscard]] Cost cost(SubnetId subnet) const;

 private:
  struct Place {
    uint32_t router, device;
  };  // a device of a router: also the state 'traffic that arrived there'
  [[nodiscard]] const DeviceRecord& device(Place place) const { return records_[place.router].devices[place.device]; }
  [[nodiscard]] size_t state(Place place) const { return base_[place.router] + place.device; }
  [[nodiscard]] bool joined(const DeviceRecord& a, const DeviceRecord& b) const;
  [[nodiscard]] bool passable(const DeviceRecord& device, uint32_t source_as, uint32_t to_as) const;
  [[nodiscard]] std::vector<Place> neighbours(const DeviceRecord& from) const;
  [[nodiscard]] std::vector<Cost> distances(uint32_t source_as, SubnetId to) const;
  [[nodiscard]] bool wan_to_wan(SubnetId from, SubnetId to) const;
  [[nodiscard]] const StaticRoute* static_route(SubnetId source, SubnetId in, SubnetId to, SubnetId& next) const;

  std::vector<RouterRecord> records_;
  std::vector<Metric> order_;
  std::vector<StaticRoute> statics_;
  std::vector<size_t> base_;
  size_t states_ = 0;
  std::map<SubnetId, std::vector<Place>> by_subnet_;
  std::vector<Place> wan_;
  std::map<SubnetId, Cost> cost_;
  std::map<SubnetId, bool> is_wan_;
};

}  // namespace ccixfer::routing
