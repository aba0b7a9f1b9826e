// Where two rules of the map meet: each case fails when the second condition is left out.
#include <catch2/catch.hpp>

#include "routing/map/forwarding.h"
#include "routing/map/source_policy.h"

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

constexpr uint64_t gigabit = 1'000'000'000;
constexpr uint32_t wan = 100, wan4 = 104;

DeviceRecord on(SubnetId subnet, const std::string& node) {
  return {subnet, 10 * gigabit, 3, true, false, {}, "tcp://" + node + ":7000", 0};
}
DeviceRecord wan_on(SubnetId subnet, const std::string& node, std::vector<uint32_t> to = {}) {
  return {subnet, 10 * gigabit, 3, false, true, std::move(to), "tcp://" + node + ":7000", 0};
}
RouterRecord router(uint64_t id, std::vector<DeviceRecord> devices) { return {id, 1, false, std::move(devices)}; }
const std::vector<Metric> bandwidth{Metric::bandwidth, Metric::hops};

std::vector<std::byte> encoded(const RouterRecord& record) {
  std::vector<std::byte> bytes;
  REQUIRE(encode_record(record, bytes));
  return bytes;
}

}  // namespace

TEST_CASE("address_of__shm_and_eth__nodes_and_endpoints_within_their_bounds") {
  CHECK(address_of({1, 2}, "shm://box"));
  for (const char* bad : {"shm://", "shm://a:b", "shm://a/b", "shm://[a]"}) CHECK_FALSE(address_of({1, 2}, bad));
  const auto eth = address_of({1, 2}, "eth://00:11:22:33:44:55:7");
  REQUIRE(eth);
  CHECK(eth->node == "00:11:22:33:44:55");
  CHECK(eth->endpoint == "7");
  for (const char* bad : {"eth://00:11:", "eth://00:11:7/8", "eth://00:11:[7]", "eth://:7", "eth://0/1:7"}) {
    INFO(bad);
    CHECK_FALSE(address_of({1, 2}, bad));
  }
  size_t longest = 0;
  for (size_t size = 1; size < 2000 && address_of({1, 2}, "shm://" + std::string(size, 'a')); ++size) longest = size;
  CHECK(longest == 255);
  CHECK(address_of({1, 2}, "eth://" + std::string(longest, 'a') + ":7"));
  CHECK_FALSE(address_of({1, 2}, "eth://" + std::string(longest + 1, 'a') + ":7"));
}

TEST_CASE("wans_join__both_lead_out_of_different_as_speak_the_same_and_serve_one_another") {
  const DeviceRecord three = wan_on({3, wan}, "a");
  const DeviceRecord four = wan_on({4, wan}, "b");
  CHECK(wans_join(three, four));
  CHECK(wans_join(wan_on({3, wan}, "a", {4, 5}), wan_on({4, wan}, "b", {3})));
  CHECK_FALSE(wans_join(wan_on({3, wan}, "a", {5}), wan_on({4, wan}, "b", {3})));
  CHECK_FALSE(wans_join(wan_on({3, wan}, "a", {4}), wan_on({4, wan}, "b", {5})));
  CHECK_FALSE(wans_join(wan_on({3, wan}, "a", {4}), four));  // one is private, the other one is not
  CHECK_FALSE(wans_join(three, wan_on({4, wan}, "b", {3})));
  CHECK_FALSE(wans_join(on({3, 1}, "a"), four));
  CHECK_FALSE(wans_join(three, on({4, 1}, "b")));
  CHECK_FALSE(wans_join(three, wan_on({3, wan4}, "b")));
  for (const char* other : {"ucp", "tcq", "tc", "tcpx", "cp"}) {
    DeviceRecord speaks_otherwise = four;
    speaks_otherwise.uri = std::string(other) + "://b:7000";
    CHECK_FALSE(wans_join(three, speaks_otherwise));
  }
  DeviceRecord other = four;
  other.uri = "eth://b:7000";
  CHECK_FALSE(wans_join(three, other));
}

TEST_CASE("record__as_many_devices_as_there_may_be__round_trips") {
  RouterRecord record = router(1, {});
  for (uint32_t i = 0; i < devices_max; ++i) record.devices.push_back(on({3, i + 1}, "n"));
  const auto bytes = encoded(record);
  CHECK(decode_record(bytes) == record);
}

TEST_CASE("record__an_optional_option_that_nobody_knows__is_not_taken_for_another_one") {
  const RouterRecord record = router(1, {on({1, 2}, "a")});
  for (const size_t size : {4u, 8u}) {
    auto bytes = encoded(record);
    bytes[bytes.size() - 2] = static_cast<std::byte>(4 + size);
    for (const uint8_t b : {uint8_t{0x77}, uint8_t{0}, static_cast<uint8_t>(size), uint8_t{0}}) bytes.push_back(std::byte{b});
    bytes.insert(bytes.end(), size, std::byte{9});
    CHECK(decode_record(bytes) == record);
  }
}

TEST_CASE("forwarding__a_source_on_a_wan__is_not_answered_as_others_of_its_as") {
  const auto map = std::make_shared<const RouterMap>(
      std::vector<RouterRecord>{router(1, {on({3, 1}, "a"), on({3, 2}, "b"), wan_on({3, wan}, "c"), wan_on({3, wan4}, "d")})},
      bandwidth);
  Forwarding forwarding(map, 1);
  CHECK(forwarding.next_hops({3, 2}, {3, 1}, {3, wan4}).size() == 1);
  CHECK(forwarding.next_hops({3, wan}, {3, 1}, {3, wan4}).empty());
  CHECK(forwarding.next_hops({3, 2}, {3, 1}, {3, wan4}).size() == 1);
}

// A static route is of its own pair, and a source that asks on its own subnet is not one that only comes through there.
TEST_CASE("forwarding__with_static_routes__each_source_has_its_own_answer") {
  const std::vector<RouterRecord> records{router(1, {on({3, 1}, "a"), on({3, 2}, "b"), on({3, 3}, "c")}),
                                          router(2, {on({3, 2}, "d"), on({3, 9}, "e")}),
                                          router(3, {on({3, 3}, "f"), on({3, 9}, "g")})};
  const auto map = std::make_shared<const RouterMap>(records, bandwidth,
                                                     std::vector<StaticRoute>{{{3, 5}, {3, 9}, {{3, 5}, {3, 1}, {3, 2}, {3, 9}}},
                                                                              {{3, 6}, {3, 9}, {{3, 6}, {3, 1}, {3, 3}, {3, 9}}}});
  Forwarding forwarding(map, 1);
  const auto answers = [&](SubnetId source, SubnetId in) {
    const std::vector<NextHop> expected = map->next_hops(1, source, in, {3, 9});
    const std::vector<NextHop>& got = forwarding.next_hops(source, in, {3, 9});
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].router == expected[i].router);
      CHECK(got[i].rank == expected[i].rank);
    }
    return got.empty() ? 0 : got[0].router;
  };
  for (int again = 0; again < 2; ++again) {
    CHECK(answers({3, 5}, {3, 1}) == 2);
    CHECK(answers({3, 6}, {3, 1}) == 3);
  }
  CHECK(forwarding.answers() == 2);
}

TEST_CASE("forwarding__without_static_routes__sources_of_an_as_share_an_answer") {
  const auto map = std::make_shared<const RouterMap>(
      std::vector<RouterRecord>{router(1, {on({3, 1}, "a"), on({3, 2}, "b"), wan_on({3, wan}, "w")})}, bandwidth);
  Forwarding forwarding(map, 1);
  for (const uint32_t subnet : {5u, 6u, 7u}) CHECK(forwarding.next_hops({3, subnet}, {3, 1}, {3, 2}).size() == 1);
  CHECK(forwarding.answers() == 1);
  static_cast<void>(forwarding.next_hops({3, 1}, {3, 1}, {3, 2}));  // begins there
  CHECK(forwarding.answers() == 2);
  static_cast<void>(forwarding.next_hops({4, 5}, {3, 1}, {3, 2}));  // another AS
  CHECK(forwarding.answers() == 3);
  static_cast<void>(forwarding.next_hops({3, wan}, {3, 1}, {3, 2}));
  CHECK(forwarding.answers() == 4);
  static_cast<void>(forwarding.next_hops({3, 8}, {3, 1}, {3, 2}));
  CHECK(forwarding.answers() == 4);
}

TEST_CASE("map__routers_that_disagree_about_a_subnet__the_dearer_one_counts_whoever_says_it") {
  DeviceRecord slow = on({3, 1}, "s");
  slow.rate_bits_per_s = gigabit;
  const uint64_t dear = bandwidth_metric(gigabit, 3);
  CHECK(RouterMap({router(1, {slow}), router(2, {on({3, 1}, "f")})}, bandwidth).cost({3, 1}).value[0] == dear);
  CHECK(RouterMap({router(1, {on({3, 1}, "f")}), router(2, {slow})}, bandwidth).cost({3, 1}).value[0] == dear);
}

// Who fixed the route has looked at it: a router on it that is no nearer than we are is a fallback too.
TEST_CASE("map__static_route__also_to_routers_that_lead_on_by_a_longer_way") {
  const std::vector<RouterRecord> records{
      router(1, {on({3, 1}, "a"), on({3, 2}, "b")}), router(2, {on({3, 2}, "c"), on({3, 9}, "d")}),
      router(5, {on({3, 2}, "e"), on({3, 4}, "f")}), router(6, {on({3, 4}, "g"), on({3, 5}, "h")}),
      router(7, {on({3, 5}, "i"), on({3, 9}, "j")})};
  const auto free_hops = RouterMap(records, bandwidth).next_hops(1, {3, 1}, {3, 1}, {3, 9});
  REQUIRE(free_hops.size() == 1);
  CHECK(free_hops[0].router == 2);
  const RouterMap fixed(records, bandwidth, {{{3, 1}, {3, 9}, {{3, 1}, {3, 2}}}});
  const auto hops = fixed.next_hops(1, {3, 1}, {3, 1}, {3, 9});
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].router == 2);
  CHECK(hops[0].rank == 0);
  CHECK(hops[1].router == 5);
  CHECK(hops[1].rank == 1);
}

TEST_CASE("map__what_came_over_a_wan__does_not_leave_over_another_one_of_the_same_as") {
  const RouterMap map({router(1, {on({3, 1}, "a"), wan_on({3, wan}, "b"), wan_on({3, wan4}, "c", {4})}),
                       router(2, {wan_on({4, wan4}, "d", {3}), on({4, 7}, "e")})},
                      bandwidth);
  CHECK(map.next_hops(1, {5, 1}, {3, wan}, {3, wan4}).empty());
  const auto last = map.next_hops(1, {3, 1}, {3, 1}, {3, wan4});
  REQUIRE(last.size() == 1);
  CHECK(last[0].last);
  CHECK(last[0].router == 0);
  CHECK(last[0].rank == 0);
  CHECK(map.routes({3, 1}, {4, 7}).size() == 1);
  CHECK_FALSE(map.chosen({3, wan}, {4, 7}));
  CHECK_FALSE(map.chosen({3, wan}, {3, wan4}));
  CHECK(map.chosen({3, 1}, {4, wan4}));
}

TEST_CASE("map__a_wan_between_two_routers_of_one_as__joins_no_subnets_of_that_as") {
  const RouterMap map({router(1, {on({3, 1}, "a"), wan_on({3, wan}, "b")}), router(2, {on({3, 2}, "c"), wan_on({3, wan}, "d")})},
                      bandwidth);
  CHECK(map.next_hops(1, {3, 1}, {3, 1}, {3, 2}).empty());
  CHECK_FALSE(map.chosen({3, 1}, {3, 2}));
  CHECK(map.routes({3, 1}, {3, 2}).empty());
  CHECK(map.next_hops(1, {3, 1}, {3, 1}, {3, wan}).size() == 1);  // on it somebody may be
}

TEST_CASE("map__static_route_to_a_subnet_from_which_nothing_leads_on__is_no_route") {
  const std::vector<RouterRecord> records{router(1, {on({3, 1}, "a"), on({3, 2}, "b")}), router(2, {on({3, 9}, "c")})};
  const RouterMap map(records, bandwidth, {{{3, 1}, {3, 9}, {{3, 1}, {3, 2}}}});
  CHECK_FALSE(map.chosen({3, 1}, {3, 9}));
  const auto direct = map.chosen({3, 1}, {3, 2});
  REQUIRE(direct);
  CHECK(direct->subnets == std::vector<SubnetId>{{3, 1}, {3, 2}});
}

TEST_CASE("map__static_routes__each_for_its_own_pair_and_with_its_cost") {
  const std::vector<RouterRecord> records{router(1, {on({3, 1}, "a"), on({3, 2}, "b"), on({3, 3}, "c")}),
                                          router(2, {on({3, 3}, "d"), on({3, 2}, "e")})};
  const RouterMap map(records, bandwidth,
                      {{{3, 1}, {3, 3}, {}},
                       {{3, 1}, {3, 2}, {{3, 2}, {3, 1}}},
                       {{3, 2}, {3, 1}, {{3, 2}, {3, 1}}},
                       {{3, 1}, {3, 3}, {{3, 1}, {3, 2}, {3, 3}}}});
  const auto fixed = map.chosen({3, 1}, {3, 3});
  REQUIRE(fixed);
  CHECK(fixed->is_static);
  CHECK(fixed->subnets == std::vector<SubnetId>{{3, 1}, {3, 2}, {3, 3}});
  CHECK(fixed->cost == map.cost({3, 1}) + map.cost({3, 2}) + map.cost({3, 3}));
  const auto free = map.chosen({3, 1}, {3, 2});  // its static route does not begin where it should
  REQUIRE(free);
  CHECK_FALSE(free->is_static);
  CHECK(free->subnets == std::vector<SubnetId>{{3, 1}, {3, 2}});
}

TEST_CASE("metrics__every_name__and_no_other_nor_one_twice") {
  const auto all = parse_metrics({"latency", "hops", "capabilities", "bandwidth"});
  REQUIRE(all);
  CHECK(*all == std::vector<Metric>{Metric::latency, Metric::hops, Metric::capabilities, Metric::bandwidth});
  CHECK_FALSE(parse_metrics({"hops", "hops"}));
  CHECK_FALSE(parse_metrics({"price"}));
  CHECK_FALSE(parse_metrics({}));
}

TEST_CASE("map__private_wan_that_names_one_side__serves_what_goes_to_and_comes_from_it") {
  const RouterMap map(
      {router(1, {on({3, 1}, "a"), wan_on({3, wan}, "b", {4})}), router(2, {wan_on({4, wan}, "c", {3}), on({4, 7}, "d")})},
      bandwidth);
  CHECK(map.chosen({3, 1}, {4, 7}));
  CHECK(map.chosen({4, 7}, {3, 1}));
  CHECK(map.next_hops(2, {4, 7}, {4, 7}, {3, 1}).size() == 1);
  CHECK(map.next_hops(1, {5, 1}, {3, 1}, {4, 7}).empty());  // nothing passes through AS 3
}

TEST_CASE("record__more_of_its_own_as_than_may_be_named__is_not_encoded") {
  std::vector<std::byte> bytes;
  CHECK(encode_record(router(1, {wan_on({3, wan}, "a", std::vector<uint32_t>(wan_to_max, 4))}), bytes));
  CHECK_FALSE(encode_record(router(1, {wan_on({3, wan}, "a", std::vector<uint32_t>(wan_to_max + 1, 4))}), bytes));
}

TEST_CASE("map__routes__over_eight_routers_and_not_over_nine") {
  std::vector<RouterRecord> line;
  for (uint32_t i = 1; i <= 9; ++i) line.push_back(router(i, {on({3, i}, "a"), on({3, i + 1}, "b")}));
  const RouterMap map(line, bandwidth);
  REQUIRE(map.routes({3, 1}, {3, 9}).size() == 1);
  CHECK(map.routes({3, 1}, {3, 9})[0].subnets.size() == 9);
  CHECK(map.routes({3, 1}, {3, 10}).empty());
  CHECK(map.routes({3, 2}, {3, 10}).size() == 1);
}

TEST_CASE("claim__over_a_wan__from_outside_into_the_as_only") {
  const RouterMap map({router(1, {on({3, 1}, "a"), wan_on({3, wan}, "b"), wan_on({3, wan4}, "c", {4})})}, bandwidth);
  const DeviceRecord& open = map.records()[0].devices[1];
  const DeviceRecord& for_four = map.records()[0].devices[2];
  const auto status = [&](const DeviceRecord& in, SubnetId source, uint8_t crossed, SubnetId to) {
    return check_claim({source, crossed, to}, in, 1, map).status;
  };
  CHECK(status(open, {3, wan}, 0, {3, 1}) == Status::success);  // a host of that very subnet
  CHECK(status(open, {3, wan}, 1, {3, 1}) == Status::success);
  CHECK(status(open, {3, 1}, 1, {3, 1}) == Status::refused);  // ours: it is behind us, not there
  CHECK(status(open, {7, 1}, 1, {3, 1}) == Status::success);
  CHECK(status(open, {7, 1}, 1, {8, 1}) == Status::refused);  // nothing leaves again
  CHECK(status(open, {3, wan}, 0, {8, 1}) == Status::refused);
  CHECK(status(open, {7, 1}, 0, {3, 1}) == Status::refused);  // no router was crossed
  CHECK(status(for_four, {4, 1}, 1, {3, 1}) == Status::success);
  CHECK(status(for_four, {7, 1}, 1, {3, 1}) == Status::refused);
}

TEST_CASE("claim__from_inside__what_some_border_router_can_have_let_in") {
  const RouterMap map({router(1, {on({3, 1}, "a"), on({3, 2}, "b")}), router(2, {on({3, 1}, "c"), wan_on({3, wan4}, "d", {4})})},
                      bandwidth);
  const auto status = [&](size_t device, SubnetId source, uint8_t crossed, SubnetId to) {
    return check_claim({source, crossed, to}, map.records()[0].devices[device], 1, map).status;
  };
  CHECK(status(0, {3, 1}, 0, {3, 2}) == Status::success);
  CHECK(status(0, {3, 2}, 1, {3, 2}) == Status::success);
  CHECK(status(1, {3, 1}, 1, {3, 2}) == Status::no_route);  // nobody but us is on subnet 2
  CHECK(status(0, {4, 1}, 2, {3, 2}) == Status::success);
  CHECK(status(0, {5, 1}, 2, {3, 2}) == Status::no_route);  // no WAN serves AS 5
  CHECK(status(0, {4, 1}, 2, {5, 2}) == Status::refused);   // nothing passes through
  CHECK(status(0, {3, wan4}, 1, {3, 2}) == Status::success);
  CHECK(status(0, {3, wan4}, 1, {5, 2}) == Status::refused);  // the WAN leads into the AS only
}
