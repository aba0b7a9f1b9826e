// What routers of several AS may know of one another, and what follows for the routes.
#include <catch2/catch.hpp>

#include "routing/map/forwarding.h"
#include "routing/map/router_map.h"

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

constexpr uint64_t gigabit = 1'000'000'000;
constexpr uint32_t wan = 100, wan4 = 104;

DeviceRecord on(SubnetId subnet, uint64_t gigabits, const std::string& node) {
  return {subnet, gigabits * gigabit, 3, true, false, {}, "tcp://" + node + ":7000", 0};
}
DeviceRecord wan_on(SubnetId subnet, uint64_t gigabits, const std::string& node, std::vector<uint32_t> to = {}) {
  return {subnet, gigabits * gigabit, 3, false, true, std::move(to), "tcp://" + node + ":7000", 0};
}
RouterRecord router(uint64_t id, std::vector<DeviceRecord> devices) { return {id, 1, false, std::move(devices)}; }
DeviceRecord reaching(DeviceRecord device, std::vector<uint32_t> as) {
  device.reaches = std::move(as);
  return device;
}
const std::vector<Metric> bandwidth{Metric::bandwidth, Metric::hops};

}  // namespace

TEST_CASE("record__seen_by_another_as__shows_only_the_wan_devices_that_serve_it") {
  const RouterRecord record = router(
      1, {on({3, 1}, 10, "a"), reaching(wan_on({3, wan}, 10, "w"), {4, 5}), reaching(wan_on({3, wan4}, 100, "d", {4}), {4})});
  const RouterRecord four = as_seen_by(4, record);
  REQUIRE(four.devices.size() == 2);
  for (const DeviceRecord& device : four.devices) CHECK((device.wan && device.reaches.empty()));
  const RouterRecord five = as_seen_by(5, record);
  REQUIRE(five.devices.size() == 1);
  CHECK(five.devices[0].subnet == SubnetId{3, wan});
  CHECK(as_seen_by(5, router(2, {on({3, 1}, 10, "a")})).devices.empty());
}

TEST_CASE("record__rate_0_or_an_address_that_is_none_or_a_subnet_twice__is_refused") {
  const auto bytes_of = [](const RouterRecord& record) {
    std::vector<std::byte> bytes;
    REQUIRE(encode_record(record, bytes));
    return bytes;
  };
  std::vector<std::byte> bytes = bytes_of(router(1, {on({3, 1}, 10, "a")}));
  CHECK(decode_record(bytes));
  constexpr size_t rate_at = 20 + 8;
  for (size_t i = 0; i < 8; ++i) bytes[rate_at + i] = std::byte{0};
  CHECK_FALSE(decode_record(bytes));
  std::vector<std::byte> none;
  for (const char* uri : {"tcp://", "tcp://nowhere", "10.0.0.1:7000", "://a:1", "tcp://a b:1", "tcp://a:1/path"}) {
    DeviceRecord device = on({3, 1}, 10, "a");
    device.uri = uri;
    CHECK_FALSE(encode_record(router(1, {device}), none));
    bytes = bytes_of(router(1, {on({3, 1}, 10, "a")}));
    const std::string text(uri);
    const size_t old_bytes = std::string("tcp://a:7000").size();
    bytes[20 + 18] = static_cast<std::byte>(text.size());
    bytes.erase(bytes.begin() + 40, bytes.begin() + static_cast<std::ptrdiff_t>(40 + old_bytes));
    std::vector<std::byte> replaced;
    for (const char c : text) replaced.push_back(static_cast<std::byte>(c));
    bytes.insert(bytes.begin() + 40, replaced.begin(), replaced.end());
    INFO(uri);
    CHECK_FALSE(decode_record(bytes));
  }
  CHECK_FALSE(decode_record(bytes_of(router(1, {on({3, 1}, 10, "a"), on({3, 1}, 10, "b")}))));
}

TEST_CASE("record__reaches__round_trips_within_its_bound") {
  RouterRecord record = router(1, {reaching(wan_on({3, wan}, 10, "w"), {4, 5, 4'000'000'000})});
  record.devices[0].latency_ns = 7;
  std::vector<std::byte> bytes;
  REQUIRE(encode_record(record, bytes));
  CHECK(decode_record(bytes) == record);
  record.devices[0].reaches.assign(reaches_max + 1, 4);
  CHECK_FALSE(encode_record(record, bytes));
}

// AS3 as its own routers see it: of AS4 the border routers know its WAN devices, router 4 only what the borders say they reach.
TEST_CASE("map__another_as_known_as_reachable_only__is_reached_by_the_cheapest_border") {
  const auto borders = [] {
    return std::vector<RouterRecord>{router(1, {on({3, 1}, 10, "r1"), reaching(wan_on({3, wan}, 10, "r1w"), {4})}),
                                     router(2, {on({3, 1}, 10, "r2"), reaching(wan_on({3, wan4}, 100, "r2w", {4}), {4})}),
                                     router(4, {on({3, 1}, 10, "r4"), on({3, 2}, 32, "r4b"), on({3, 3}, 64, "r4c")})};
  };
  const RouterMap inner(borders(), bandwidth);
  const auto hops = inner.next_hops(4, {3, 3}, {3, 3}, {4, 7});
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].router == 2);
  CHECK(hops[0].cost.value[0] == 100 + 10);
  CHECK(hops[1].router == 1);
  CHECK(inner.next_hops(4, {3, 3}, {3, 3}, {5, 7}).empty());  // nobody reaches AS5

  auto records = borders();
  records.push_back(router(9, {wan_on({4, wan}, 10, "r5w"), wan_on({4, wan4}, 100, "r5d", {3})}));
  const RouterMap border(records, bandwidth);
  const auto across = border.next_hops(2, {3, 3}, {3, 1}, {4, 7});
  REQUIRE_FALSE(across.empty());
  CHECK(across[0].router == 9);
  CHECK(across[0].uri == "tcp://r5d:7000");
  // Its own AS's unknown subnet is nowhere: no other border router is asked.
  CHECK(border.next_hops(1, {4, 7}, {3, wan}, {3, 77}).empty());
}

TEST_CASE("map__third_as_that_serves_both__is_not_passed_through") {
  // AS5's router is joined to AS3 and to AS4 by dedicated WAN devices on one subnet; AS3 and AS4 cannot reach one another.
  const RouterMap map({router(1, {on({3, 1}, 10, "a"), wan_on({3, wan}, 10, "aw", {5})}),
                       router(2, {on({5, 1}, 10, "b"), wan_on({5, wan}, 10, "bw", {3, 4})}),
                       router(3, {on({4, 1}, 10, "c"), wan_on({4, wan}, 10, "cw", {5})})},
                      bandwidth);
  CHECK_FALSE(map.next_hops(1, {3, 1}, {3, 1}, {5, 1}).empty());
  CHECK(map.next_hops(1, {3, 1}, {3, 1}, {4, 1}).empty());
  CHECK(map.next_hops(2, {3, 1}, {5, wan}, {4, 1}).empty());
  CHECK(map.routes({3, 1}, {4, 1}).empty());
  CHECK_FALSE(map.chosen({3, 1}, {4, 1}));
}

TEST_CASE("map__same_subnet_numbers_in_two_as__are_two_subnets") {
  const RouterMap map(
      {router(1, {on({3, 1}, 10, "a"), wan_on({3, 9}, 10, "aw")}), router(2, {on({4, 1}, 40, "b"), wan_on({4, 9}, 10, "bw")})},
      bandwidth);
  const auto route = map.chosen({3, 1}, {4, 1});
  REQUIRE(route);
  CHECK(route->subnets == std::vector<SubnetId>{{3, 1}, {3, 9}, {4, 1}});
  CHECK(route->cost.value[0] == 100 + 100 + 25);
}

TEST_CASE("map__static_route_and_a_client_at_the_wrong_router__goes_to_the_pinned_subnet") {
  const std::vector<RouterRecord> records = {
      router(1, {on({1, 1}, 10, "a"), on({1, 2}, 10, "a2")}), router(2, {on({1, 1}, 10, "b"), on({1, 5}, 100, "b5")}),
      router(3, {on({1, 2}, 10, "c"), on({1, 8}, 10, "c8")}), router(4, {on({1, 5}, 100, "d"), on({1, 8}, 10, "d8")})};
  const RouterMap map(records, bandwidth, {{{1, 1}, {1, 8}, {{1, 1}, {1, 2}}}});
  const auto hops = map.next_hops(2, {1, 1}, {1, 1}, {1, 8});
  REQUIRE(hops.size() == 1);
  CHECK(hops[0].router == 1);
  CHECK(map.next_hops(1, {1, 1}, {1, 1}, {1, 8}).at(0).router == 3);
  const auto chosen = map.chosen({1, 1}, {1, 8});
  REQUIRE(chosen);
  CHECK(chosen->is_static);
  CHECK(chosen->subnets == std::vector<SubnetId>{{1, 1}, {1, 2}, {1, 8}});
}

TEST_CASE("map__metrics__each_decides_and_the_next_breaks_ties") {
  // Two ways from 1 to 9: over 2 (fast, not native, slow to answer) or over 3 and 4 (native, quick).
  auto two = on({1, 2}, 100, "a2");
  two.capabilities = 0;
  two.latency_ns = 9'000'000;
  auto three = on({1, 3}, 10, "b3"), four = on({1, 4}, 10, "b4");
  three.latency_ns = four.latency_ns = 1'000'000;
  const auto build = [&](std::vector<Metric> order) {
    return std::make_unique<RouterMap>(
        std::vector<RouterRecord>{router(1, {on({1, 1}, 10, "a"), two, three}), router(2, {three, four}),
                                  router(3, {two, four, on({1, 9}, 10, "z")})},
        std::move(order));
  };
  const auto over = [&](std::vector<Metric> order) {
    return build(std::move(order))->chosen({1, 1}, {1, 9})->subnets.at(1).subnet;
  };
  CHECK(over({Metric::bandwidth}) == 2);  // 100 + 20 + 100 against 100 + 100 + 100 + 100
  CHECK(over({Metric::hops}) == 2);
  CHECK(over({Metric::capabilities}) == 3);  // 1 against 0
  CHECK(over({Metric::latency}) == 3);       // 9 ms against 2 ms
  two.capabilities = 3;
  CHECK(over({Metric::capabilities, Metric::bandwidth}) == 2);  // 0 against 0: the next one decides
  CHECK(over({Metric::capabilities, Metric::latency}) == 3);
}

// A neighbour says what it likes. Sums that had no room left would be equal all over, and a walk downhill would go in circles.
TEST_CASE("map__latencies_beyond_all_reason__cost_no_more_than_can_be_summed_and_the_way_is_found") {
  constexpr uint32_t count = 20;
  std::vector<RouterRecord> records;
  for (uint32_t i = 1; i <= count; ++i) {
    std::vector<DeviceRecord> devices;
    for (const uint32_t subnet : {i, i + 1}) {
      devices.push_back(on({1, subnet}, 10, "r" + std::to_string(i) + "s" + std::to_string(subnet)));
      devices.back().latency_ns = UINT64_MAX;
    }
    records.push_back(router(i, std::move(devices)));
  }
  const RouterMap map(std::move(records), {Metric::latency});
  REQUIRE(map.cost({1, 1}).value[0] == latency_ns_max);  // else what follows never ends
  static_assert(latency_ns_max < UINT64_MAX / (uint64_t{4096} * devices_max));
  const auto chosen = map.chosen({1, 1}, {1, count + 1});
  REQUIRE(chosen);
  CHECK(chosen->subnets.size() == count + 1);
  CHECK(map.next_hops(1, {1, 1}, {1, 1}, {1, count + 1}).size() == 1);
}

TEST_CASE("map__random_networks__dijkstra_agrees_with_the_table_of_all_routes") {
  uint64_t seed = 88172645463325252u;
  const auto random = [&](uint64_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<RouterRecord> records;
    std::vector<uint64_t> rate;
    for (int s = 0; s < 9; ++s) rate.push_back(1 + random(60));
    for (uint64_t id = 1; id <= 8; ++id) {
      RouterRecord record = router(id, {});
      for (uint64_t d = 0; d < 2 + random(2); ++d) {
        const auto subnet = static_cast<uint32_t>(random(9));
        DeviceRecord device = on({1, subnet}, rate[subnet], "r" + std::to_string(id) + "s" + std::to_string(subnet));
        device.transit = subnet != 4;  // one subnet that is only first or last
        if (std::none_of(record.devices.begin(), record.devices.end(), [&](auto& other) { return other.subnet == device.subnet; }))
          record.devices.push_back(device);
      }
      records.push_back(record);
    }
    const auto map = std::make_shared<RouterMap>(records, bandwidth);
    std::vector<Forwarding> memo;
    for (const RouterRecord& record : map->records()) memo.emplace_back(map, record.router);
    for (const SubnetId from : map->subnets()) {
      for (const SubnetId to : map->subnets()) {
        bool cut = true;
        const auto routes = map->routes(from, to, &cut);
        const auto chosen = map->chosen(from, to);
        INFO("round " << round << " " << from.subnet << " to " << to.subnet);
        CHECK_FALSE(cut);
        REQUIRE(chosen.has_value() == !routes.empty());
        if (chosen) CHECK(chosen->cost == routes[0].cost);
        for (const Route& a : routes) {
          for (const Route& b : routes) {
            if (a.subnets.size() >= b.subnets.size()) continue;
            size_t at = 0;
            for (const SubnetId& subnet : b.subnets) at += at < a.subnets.size() && a.subnets[at] == subnet ? 1u : 0u;
            CHECK(at < a.subnets.size());  // no longer route contains a shorter one
          }
        }
        for (size_t r = 0; r < memo.size(); ++r) {
          for (const DeviceRecord& device : map->records()[r].devices) {
            const auto fresh = map->next_hops(map->records()[r].router, from, device.subnet, to);
            const auto& known = memo[r].next_hops(from, device.subnet, to);
            REQUIRE(known.size() == fresh.size());
            for (size_t i = 0; i < fresh.size(); ++i)
              CHECK((known[i].router == fresh[i].router && known[i].device == fresh[i].device && known[i].rank == fresh[i].rank));
          }
        }
      }
    }
  }
}

TEST_CASE("routes__more_than_the_bound__cut_and_said_so") {
  // A ladder of 8 stages with 3 subnets each: far more ways than the table holds.
  std::vector<RouterRecord> records;
  uint64_t id = 0;
  for (uint32_t stage = 0; stage < 7; ++stage) {
    for (uint32_t a = 0; a < 3; ++a) {
      for (uint32_t b = 0; b < 3; ++b) {
        const uint32_t left = stage == 0 ? 1 : stage * 10 + a, right = stage == 6 ? 99 : (stage + 1) * 10 + b;
        records.push_back(
            router(++id, {on({1, left}, 1 + a, "a" + std::to_string(id)), on({1, right}, 1 + b, "b" + std::to_string(id))}));
      }
    }
  }
  const RouterMap map(records, bandwidth);
  bool cut = false;
  const auto routes = map.routes({1, 1}, {1, 99}, &cut);
  CHECK(cut);
  CHECK(routes.size() == RouterMap::routes_max);
  CHECK(map.routes({1, 1}, {1, 10}, &cut).size() == 1);
  CHECK_FALSE(cut);
  for (const auto& [from, to] : {std::pair{SubnetId{1, 77}, SubnetId{1, 1}}, std::pair{SubnetId{1, 1}, SubnetId{1, 77}},
                                 std::pair{SubnetId{1, 1}, SubnetId{1, 1}}}) {
    CHECK(map.routes(from, to, &cut).empty());
    CHECK_FALSE(cut);  // nothing is looked for that cannot be
  }
}

// Two sites of one AS that both are on the public WAN, and on nothing else together: the way between them is not over it.
TEST_CASE("map__wan_devices_of_one_as__are_no_way_within_it") {
  const std::vector<RouterRecord> records = {router(1, {on({3, 1}, 10, "a"), wan_on({3, wan}, 10, "aw")}),
                                             router(2, {on({3, 2}, 10, "b"), wan_on({3, wan}, 10, "bw")}),
                                             router(5, {wan_on({4, wan}, 10, "cw"), on({4, 7}, 10, "c")})};
  const RouterMap map(records, bandwidth);
  for (const auto& [from, to] : {std::pair{SubnetId{3, 1}, SubnetId{3, 2}}, std::pair{SubnetId{3, 2}, SubnetId{3, 1}}}) {
    CHECK(map.next_hops(from.subnet, from, from, to).empty());
    CHECK_FALSE(map.chosen(from, to));
    CHECK(map.routes(from, to).empty());
    CHECK(map.next_hops(from.subnet, from, from, {4, 7}).size() == 1);  // out of the AS it is one
  }
}
