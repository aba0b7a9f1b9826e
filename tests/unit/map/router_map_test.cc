// The routing paper's own examples: Table I, 215 against 125, Table II.
#include "routing/map/router_map.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

constexpr uint64_t gigabit = 1'000'000'000;
constexpr uint32_t wan = 100, wan4 = 104;  // W* and W4 of AS3

DeviceRecord on(SubnetId subnet, uint64_t gigabits, std::string node) {
  DeviceRecord device;
  device.subnet = subnet;
  device.rate_bits_per_s = gigabits * gigabit;
  device.capabilities = capability_zero_copy | capability_os_bypass;
  device.uri = "tcp://" + node + ":7000";
  return device;
}
DeviceRecord wan_on(SubnetId subnet, uint64_t gigabits, std::string node, std::vector<uint32_t> to = {}) {
  DeviceRecord device = on(subnet, gigabits, std::move(node));
  device.wan = true;
  device.transit = false;
  device.wan_to = std::move(to);
  return device;
}
RouterRecord router(uint64_t id, std::vector<DeviceRecord> devices) { return {id, 1, false, std::move(devices)}; }

std::vector<RouterRecord> as3() {
  return {router(1, {on({3, 1}, 10, "r1"), wan_on({3, wan}, 10, "r1w")}),
          router(2, {on({3, 1}, 10, "r2"), wan_on({3, wan4}, 100, "r2w", {4})}),
          router(3, {on({3, 1}, 10, "r3"), on({3, 2}, 32, "r3b")}),
          router(4, {on({3, 1}, 10, "r4"), on({3, 2}, 32, "r4b"), on({3, 3}, 64, "r4c")})};
}
std::vector<RouterRecord> as3_and_as4() {
  auto records = as3();
  records.push_back(router(5, {wan_on({4, wan}, 10, "r5w"), wan_on({4, wan4}, 100, "r5d", {3}), on({4, 7}, 10, "r5")}));
  return records;
}
const std::vector<Metric> bandwidth{Metric::bandwidth, Metric::hops};

std::string text(const RouterMap& map, SubnetId from, SubnetId to) {
  std::string all;
  for (const Route& route : map.routes(from, to)) {
    if (!all.empty()) all += " ";
    for (size_t i = 0; i < route.subnets.size(); ++i) {
      const uint32_t id = route.subnets[i].subnet;
      all += (i == 0 ? "" : ",") + (id == wan ? std::string("W*") : id == wan4 ? std::string("W4") : std::to_string(id));
    }
  }
  return all;
}

}  // namespace

TEST_CASE("metric__of_rates__is_the_papers") {
  CHECK(bandwidth_metric(10 * gigabit, 3) == 100);
  CHECK(bandwidth_metric(64 * gigabit, 3) == 15);
  CHECK(bandwidth_metric(32 * gigabit, 3) == 31);
  CHECK(bandwidth_metric(100 * gigabit, 3) == 10);
  CHECK(bandwidth_metric(10 * gigabit, capability_zero_copy) == 200);
  CHECK(bandwidth_metric(10 * gigabit, 0) == 200);
  CHECK(bandwidth_metric(UINT64_MAX, 3) == 1);
  CHECK(bandwidth_metric(1, 0) == 2'000'000'000'000);
}

TEST_CASE("map__as3__gives_table_one") {
  const RouterMap map(as3(), bandwidth);
  const uint32_t ids[] = {1, 2, 3, wan, wan4};
  const char* table[5][5] = {{"", "1,2", "1,3", "1,W*", "1,W4"},
                             {"2,1", "", "2,3", "2,1,W*", "2,1,W4"},
                             {"3,1", "3,2", "", "3,1,W*", "3,1,W4"},
                             {"W*,1", "W*,1,2", "W*,1,3", "", ""},
                             {"W4,1", "W4,1,2", "W4,1,3", "", ""}};
  for (size_t row = 0; row < 5; ++row) {
    for (size_t column = 0; column < 5; ++column) {
      INFO("row " << row << " column " << column);
      CHECK(text(map, {3, ids[row]}, {3, ids[column]}) == table[row][column]);
    }
  }
  CHECK(map.routes({3, 3}, {3, wan}).at(0).cost.value[0] == 215);
  CHECK(map.routes({3, 3}, {3, wan4}).at(0).cost.value[0] == 125);
}

TEST_CASE("map__as3_to_as4__prefers_the_private_wan") {
  const RouterMap map(as3_and_as4(), bandwidth);
  const auto routes = map.routes({3, 3}, {4, 7});
  REQUIRE(routes.size() == 2);
  CHECK(routes[0].cost.value[0] == 125 + 100);
  CHECK(routes[1].cost.value[0] == 215 + 100);
  // Router 4 forwards over subnet 1 to router 2, and falls back on router 1.
  const auto hops = map.next_hops(4, {3, 3}, {3, 3}, {4, 7});
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].router == 2);
  CHECK(hops[0].uri == "tcp://r2:7000");
  CHECK(hops[0].rank == 0);
  CHECK(hops[1].router == 1);
  CHECK(hops[1].rank == 1);
  const auto across = map.next_hops(2, {3, 3}, {3, 1}, {4, 7});
  REQUIRE_FALSE(across.empty());
  CHECK(across[0].router == 5);
  CHECK(across[0].uri == "tcp://r5d:7000");
  const auto last = map.next_hops(5, {3, 3}, {4, wan4}, {4, 7});
  REQUIRE_FALSE(last.empty());
  CHECK(last[0].last);
  CHECK(last[0].device == 2);
}

TEST_CASE("map__private_wan__serves_only_its_as") {
  auto records = as3_and_as4();
  records.push_back(router(6, {wan_on({5, wan}, 10, "r6w"), on({5, 1}, 10, "r6")}));
  const RouterMap map(records, bandwidth);
  const auto hops = map.next_hops(2, {3, 1}, {3, 1}, {5, 1});
  for (const NextHop& hop : hops) CHECK(hop.router == 1);  // back over subnet 1 to the router on the public WAN
  CHECK(hops.size() == 1);
}

TEST_CASE("map__wan_to_wan__is_never_forwarded") {
  auto records = as3_and_as4();
  records.push_back(router(6, {wan_on({5, wan}, 10, "r6w"), on({5, 1}, 10, "r6")}));
  const RouterMap map(records, bandwidth);
  // Traffic of AS5 for AS4 that reached AS3's router 1 over the public WAN does not go through AS3.
  for (const NextHop& hop : map.next_hops(1, {5, 1}, {3, wan}, {4, 7})) CHECK(hop.router == 5);
  CHECK(map.next_hops(1, {3, wan}, {3, wan}, {3, wan4}).empty());
  CHECK(map.next_hops(3, {5, 1}, {3, 1}, {4, 7}).empty());
}

TEST_CASE("map__figure_three__bandwidth_takes_262_and_hops_take_the_other") {
  const std::vector<RouterRecord> records = {router(1, {on({1, 1}, 10, "a"), on({1, 2}, 10, "a2"), on({1, 5}, 32, "a5")}),
                                             router(2, {on({1, 2}, 10, "b"), on({1, 8}, 10, "b8")}),
                                             router(3, {on({1, 5}, 32, "c"), on({1, 6}, 32, "c6")}),
                                             router(4, {on({1, 6}, 32, "d"), on({1, 8}, 10, "d8")})};
  const RouterMap fast(records, bandwidth);
  const auto routes = fast.routes({1, 1}, {1, 8});
  REQUIRE(routes.size() == 2);
  CHECK(routes[0].cost.value[0] == 262);
  CHECK(routes[1].cost.value[0] == 300);
  CHECK(text(fast, {1, 1}, {1, 8}) == "1,5,6,8 1,2,8");
  CHECK(fast.next_hops(1, {1, 1}, {1, 1}, {1, 8}).at(0).router == 3);
  const RouterMap few(records, {Metric::hops});
  CHECK(text(few, {1, 1}, {1, 8}) == "1,2,8 1,5,6,8");
  CHECK(few.next_hops(1, {1, 1}, {1, 1}, {1, 8}).at(0).router == 2);
  const RouterMap pinned(records, bandwidth, {{{1, 1}, {1, 8}, {{1, 1}, {1, 2}}}});
  const auto hops = pinned.next_hops(1, {1, 1}, {1, 1}, {1, 8});
  REQUIRE(hops.size() == 1);
  CHECK(hops[0].router == 2);
}

TEST_CASE("map__parallel_routers__share_a_rank") {
  const std::vector<RouterRecord> records = {router(1, {on({1, 1}, 10, "a"), on({1, 9}, 10, "a9")}),
                                             router(2, {on({1, 9}, 10, "b"), on({1, 2}, 10, "b2")}),
                                             router(3, {on({1, 9}, 10, "c"), on({1, 2}, 10, "c2")})};
  const RouterMap map(records, bandwidth);
  const auto hops = map.next_hops(1, {1, 1}, {1, 1}, {1, 2});
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].rank == 0);
  CHECK(hops[1].rank == 0);
  CHECK(hops[0].router != hops[1].router);
}

TEST_CASE("map__non_transit_subnet__only_first_or_last") {
  std::vector<RouterRecord> records = {router(1, {on({1, 1}, 10, "a"), on({1, 9}, 10, "a9")}),
                                       router(2, {on({1, 9}, 10, "b"), on({1, 2}, 10, "b2")})};
  CHECK(RouterMap(records, bandwidth).next_hops(1, {1, 1}, {1, 1}, {1, 2}).size() == 1);
  for (auto& record : records) {
    for (auto& device : record.devices) device.transit = device.subnet.subnet != 9;
  }
  const RouterMap map(records, bandwidth);
  CHECK(map.next_hops(1, {1, 1}, {1, 1}, {1, 2}).empty());
  CHECK(map.next_hops(1, {1, 1}, {1, 1}, {1, 9}).at(0).last);
  // First: a client on subnet 9 that chose the wrong router reaches the right one over subnet 9.
  CHECK(map.next_hops(1, {1, 9}, {1, 9}, {1, 2}).at(0).router == 2);
  CHECK(map.routes({1, 1}, {1, 2}).empty());
}

TEST_CASE("map__unknown_router_or_subnet__no_route") {
  const RouterMap map(as3(), bandwidth);
  CHECK(map.next_hops(99, {3, 1}, {3, 1}, {3, 2}).empty());
  CHECK(map.next_hops(0, {3, 1}, {3, 1}, {3, 2}).empty());  // before all that are known
  CHECK(map.next_hops(1, {3, 1}, {3, 1}, {3, 77}).empty());
  CHECK(map.next_hops(1, {3, 1}, {3, 1}, {9, 1}).empty());
  CHECK(RouterMap({}, bandwidth).next_hops(1, {3, 1}, {3, 1}, {3, 2}).empty());
}

TEST_CASE("map__following_next_hops__always_arrives_within_eight_routers") {
  // A grid of subnets, every start and destination: hop by hop, by any candidate, the destination is reached without a loop.
  std::vector<RouterRecord> records;
  uint64_t id = 0;
  for (uint32_t row = 0; row < 3; ++row) {
    for (uint32_t column = 0; column < 3; ++column) {
      const uint32_t here = row * 3 + column + 1;
      for (const uint32_t next : {column < 2 ? here + 1 : 0, row < 2 ? here + 3 : 0}) {
        if (next == 0) continue;
        const uint64_t rate = 1 + (here * 7 + next * 13) % 40;
        ++id;
        records.push_back(
            router(id, {on({1, here}, rate, "n" + std::to_string(id)), on({1, next}, rate + 3, "m" + std::to_string(id))}));
      }
    }
  }
  const RouterMap map(records, bandwidth);
  for (const RouterRecord& first : map.records()) {
    for (const DeviceRecord& start : first.devices) {
      for (const SubnetId to : map.subnets()) {
        const auto walk = [&](const auto& self, uint64_t at, SubnetId in, int depth) -> void {
          REQUIRE(depth <= 8);
          const auto hops = map.next_hops(at, start.subnet, in, to);
          REQUIRE_FALSE(hops.empty());
          for (const NextHop& hop : hops) {
            if (hop.last) continue;
            const auto record =
                std::find_if(map.records().begin(), map.records().end(), [&](const auto& r) { return r.router == at; });
            self(self, hop.router, record->devices[hop.device].subnet, depth + 1);
          }
        };
        if (start.subnet != to) walk(walk, first.router, start.subnet, 1);
      }
    }
  }
}
