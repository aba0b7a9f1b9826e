// The route map: an immutable snapshot built whole from records, by pure functions. Asks: from this router, for traffic that came
// in on this subnet, which next hops lead to that subnet, best first? Rules: a non-transit subnet is only first or last in a route;
// nothing is forwarded through an AS that is neither the source's nor the destination's; a WAN subnet is crossed only between
// different AS, once, and only for the AS its wan_to names; two WAN subnets of one AS never route to one another. Two devices with
// different subnet ids reach one another when both are WAN devices of different AS, with the same scheme, and both are public (no
// wan_to) or each names the other. Of another AS only its WAN devices need be known: a destination in a subnet of it that the map
// does not hold is reached at any of them, or by a device whose record says that it reaches that AS; the way inside is that AS's.
// Source: routing §IV.C.3, §VI, Tables I-II.
#pragma once
#include <array>
#include <compare>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "routing/map/record.h"

namespace ccixfer::routing {

enum class Metric : uint8_t { bandwidth, hops, capabilities, latency };
inline constexpr size_t metrics_max = 4;
// What a latency counts for at most: a route over all the devices that there may be can still be summed.
inline constexpr uint64_t latency_ns_max = 1'000'000'000'000;
[[nodiscard]] Result<std::vector<Metric>> parse_metrics(const std::vector<std::string>& names);  // usage: unknown, twice, none

// Additive, compared in the order of the metrics: the next one breaks ties.
struct Cost {
  std::array<uint64_t, metrics_max> value{};
  friend auto operator<=>(const Cost&, const Cost&) = default;
  friend Cost operator+(const Cost& a, const Cost& b);  // saturating
};
// max(1, floor(10^12 / rate)), doubled unless zero-copy and os-bypass both hold; a rate of 0 counts as rate_unknown_bits_per_s.
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
  bool is_static = false;  // chosen by the administrator
};

class RouterMap {
 public:
  RouterMap(std::vector<RouterRecord> records, std::vector<Metric> order, std::vector<StaticRoute> statics = {});
  RouterMap(const RouterMap&) = delete;
  RouterMap& operator=(const RouterMap&) = delete;

  // `source` is the subnet where the traffic began, `in` the one on which it reached `router`. Empty: no route. One run of
  // Dijkstra's algorithm; routing/map/forwarding.h remembers the answers.
  [[nodiscard]] std::vector<NextHop> next_hops(uint64_t router, SubnetId source, SubnetId in, SubnetId to) const;
  // For people: every route without a loop, those that contain a shorter one left out; cheapest first. `cut` is set when there
  // are more than routes_max, or the search was too long to find all. Routes over more than eight routers do not count.
  [[nodiscard]] std::vector<Route> routes(SubnetId from, SubnetId to, bool* cut = nullptr) const;
  static constexpr size_t routes_max = 256;
  // The route that forwarding takes from `from` to `to`: the static one, else the cheapest. nullopt: none, or from == to.
  [[nodiscard]] std::optional<Route> chosen(SubnetId from, SubnetId to) const;
  [[nodiscard]] std::vector<SubnetId> subnets() const;
  [[nodiscard]] bool is_wan(SubnetId subnet) const;
  [[nodiscard]] const std::vector<RouterRecord>& records() const { return records_; }
  [[nodiscard]] bool has_statics() const { return !statics_.empty(); }
  [[nodiscard]] Cost cost(SubnetId subnet) const;

 private:
  struct Place {
    uint32_t router, device;
  };  // a device of a router: also the state 'traffic that arrived there'
  struct Subnet {
    std::vector<Place> places;
    Cost cost;
    bool wan = false;
    size_t index = 0;
  };
  struct Search;  // Dijkstra's state, router_map.cc
  [[nodiscard]] const DeviceRecord& device(Place place) const { return records_[place.router].devices[place.device]; }
  [[nodiscard]] size_t state(Place place) const { return base_[place.router] + place.device; }
  [[nodiscard]] const Subnet* find(SubnetId subnet) const;
  void group_wan_devices();
  [[nodiscard]] bool joined(const DeviceRecord& a, const DeviceRecord& b) const;
  [[nodiscard]] bool passable(const DeviceRecord& device, uint32_t source_as, uint32_t to_as) const;
  [[nodiscard]] std::vector<Place> neighbours(const DeviceRecord& from) const;
  [[nodiscard]] std::vector<Cost> distances(uint32_t source_as, SubnetId to) const;
  [[nodiscard]] bool wan_to_wan(SubnetId from, SubnetId to) const;
  [[nodiscard]] std::vector<std::pair<SubnetId, bool>> next_subnets(SubnetId from, uint32_t source_as, SubnetId to) const;
  [[nodiscard]] std::optional<Route> cheapest(SubnetId from, SubnetId source, SubnetId to) const;
  [[nodiscard]] bool static_next(SubnetId source, SubnetId in, SubnetId to, SubnetId& next) const;
  [[nodiscard]] bool is_on(uint32_t router, SubnetId subnet) const;

  std::vector<RouterRecord> records_;
  std::vector<Metric> order_;
  std::vector<StaticRoute> statics_;
  std::vector<size_t> base_;   // by router: the number of its first state, which is that of its first device
  std::vector<Place> places_;  // by the number of the state
  std::vector<const Subnet*> subnet_of_;
  std::map<SubnetId, Subnet> subnets_;
  std::vector<Place> wan_;
  std::vector<size_t> wan_group_;  // by state: WAN devices of one group reach the same WAN devices
  size_t wan_groups_ = 0;
};

}  // namespace ccixfer::routing
