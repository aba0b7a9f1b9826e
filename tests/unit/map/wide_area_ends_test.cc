// Routes that begin or end on a wide area network itself, and the table of routes to what nobody has.
#include <algorithm>
#include <catch2/catch.hpp>

#include "routing/map/router_map.h"

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

constexpr uint32_t wan = 100, other_wan = 104;

DeviceRecord on(SubnetId subnet, std::string uri = "tcp://r:7000") {
  DeviceRecord device;
  device.subnet = subnet;
  device.rate_bits_per_s = 10'000'000'000;
  device.uri = std::move(uri);
  return device;
}
DeviceRecord wan_on(SubnetId subnet, std::string uri = "tcp://w:7000") {
  DeviceRecord device = on(subnet, std::move(uri));
  device.wan = true;
  device.transit = false;
  return device;
}
RouterRecord router(uint64_t id, std::vector<DeviceRecord> devices) { return {id, 1, false, std::move(devices)}; }

const std::vector<Metric> hops_only{Metric::hops};

using Subnets = std::vector<SubnetId>;

}  // namespace

TEST_CASE("map__from_a_wan_of_one_as_to_one_of_another__goes_through_what_lies_between") {
  const RouterMap map({router(1, {wan_on({3, wan})}), router(2, {wan_on({4, wan}), on({4, 7})}),
                       router(3, {on({4, 7}, "tcp://r3:7000"), wan_on({4, other_wan})})},
                      hops_only);
  const auto routes = map.routes({3, wan}, {4, other_wan});
  REQUIRE(routes.size() == 1);
  CHECK(routes[0].subnets == Subnets{{3, wan}, {4, 7}, {4, other_wan}});
  const auto next = map.next_hops(2, {3, wan}, {4, wan}, {4, other_wan});
  REQUIRE(next.size() == 1);
  CHECK(next[0].uri == "tcp://r3:7000");
  // Within one AS that is never so, whatever is between the two.
  CHECK(map.routes({4, wan}, {4, other_wan}).empty());
  CHECK(map.next_hops(2, {4, wan}, {4, wan}, {4, other_wan}).empty());
}

TEST_CASE("map__from_a_wan_to_one_that_it_joins__is_no_route_of_its_own") {
  const RouterMap map({router(1, {wan_on({3, wan}), on({3, 1})}), router(2, {wan_on({4, wan})})}, hops_only);
  REQUIRE(map.routes({3, 1}, {3, wan}).size() == 1);
  CHECK(map.routes({3, wan}, {4, wan}).empty());
}

TEST_CASE("map__routes_to_a_subnet_that_nobody_has__none_and_none_was_left_out") {
  // A lattice in five dimensions, so that to try all its paths would be more steps than a table may take.
  constexpr uint32_t side = 4, corners = 1024;
  std::vector<RouterRecord> records;
  for (uint32_t corner = 0; corner < corners; ++corner) {
    for (uint32_t step = 1; step < corners; step *= side) {
      const uint32_t along = corner / step % side;
      const uint32_t next = corner - along * step + (along + 1) % side * step;
      records.push_back(router(records.size() + 1, {on({1, corner + 1}), on({1, next + 1})}));
    }
  }
  const RouterMap map(std::move(records), hops_only);
  bool cut = true;
  CHECK(map.routes({1, 1}, {1, corners + 1}, &cut).empty());
  CHECK_FALSE(cut);
}

// Border routers that are alike are looked at once for all of them. These are not alike: the near ones serve another AS.
TEST_CASE("map__near_border_routers_that_do_not_serve_us__do_not_hide_a_far_one_that_does") {
  const auto border = [](uint64_t id, uint64_t gigabits, std::vector<uint32_t> serves, const char* uri) {
    RouterRecord record = router(id, {on({2, static_cast<uint32_t>(id)}), wan_on({2, wan}, uri)});
    record.devices[0].rate_bits_per_s = gigabits * 1'000'000'000;
    record.devices[1].wan_to = std::move(serves);
    record.devices.push_back(on({2, 1}));
    return record;
  };
  const std::vector<RouterRecord> near{border(11, 100, {3}, "tcp://w:7000"), border(12, 100, {3}, "tcp://w:7000"),
                                       border(13, 100, {}, "udp://w:7000"), border(14, 100, {}, "udp://w:7000")};
  const RouterRecord far = router(15, {on({2, 2}), wan_on({2, other_wan})});
  RouterRecord inside = router(16, {on({2, 1}), on({2, 2})});
  std::vector<RouterRecord> records = near;
  records.push_back(far);
  records.push_back(inside);
  records.push_back(router(1, {on({1, 1}), wan_on({1, wan})}));
  records.push_back(router(2, {on({1, 1}), wan_on({1, other_wan})}));
  records.push_back(router(3, {on({1, 1}), on({1, 5})}));
  const RouterMap map(records, hops_only);
  for (const uint64_t ours : {1u, 2u}) {
    const auto hops = map.next_hops(ours, {1, 1}, {1, 1}, {2, 1});
    const auto over_wan = std::find_if(hops.begin(), hops.end(), [](const NextHop& hop) { return hop.router >= 10; });
    REQUIRE(over_wan != hops.end());
    CHECK(over_wan->router == 15);
  }
  CHECK(map.next_hops(3, {1, 5}, {1, 5}, {2, 1}).size() == 2);
}

TEST_CASE("map__border_routers_that_are_alike__each_is_a_way_and_so_is_each_of_ours_that_joins_them") {
  std::vector<RouterRecord> records{router(1, {on({1, 1}), wan_on({1, wan}), wan_on({1, other_wan})}),
                                    router(2, {on({1, 1}), wan_on({1, wan})}), router(3, {on({1, 1}), on({1, 5})})};
  for (uint64_t id = 11; id <= 13; ++id) records.push_back(router(id, {on({2, 1}), wan_on({2, wan})}));
  const RouterMap map(records, hops_only);
  for (const uint64_t ours : {1u, 2u}) {
    const auto hops = map.next_hops(ours, {1, 1}, {1, 1}, {2, 1});
    const auto best = [](const NextHop& hop) { return hop.router > 10 && hop.rank == 0; };
    CHECK(std::count_if(hops.begin(), hops.end(), best) == (ours == 1 ? 6 : 3));
  }
  CHECK(map.next_hops(3, {1, 5}, {1, 5}, {2, 1}).size() == 2);
}
