// Figures for people: `unit_map "[bench]"` of a release build. Never part of a test run.
#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>

#include "routing/map/forwarding.h"

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

// 1,000 subnets and 300 routers of 5 devices, in a ring of routers with chords: everything reaches everything.
std::vector<RouterRecord> large() {
  constexpr uint32_t routers = 300;
  std::vector<RouterRecord> records;
  for (uint32_t r = 0; r < routers; ++r) {
    RouterRecord record{r + 1, 1, false, {}};
    const auto add = [&](uint32_t subnet) {
      for (const DeviceRecord& device : record.devices) {
        if (device.subnet.subnet == subnet) return;
      }
      record.devices.push_back({{1, subnet},
                                (1 + subnet * 7 % 90) * 1'000'000'000ull,
                                3,
                                true,
                                false,
                                {},
                                "tcp://10.1." + std::to_string(subnet % 250) + "." + std::to_string(r % 250) + ":7000",
                                0});
    };
    add(r);
    add((r + 1) % routers);
    add((r * 37 + 11) % routers);
    add(300 + (r * 7) % 700);
    add(300 + (r * 7 + 3) % 700);
    for (uint32_t i = 0; i < 3; ++i) add(300 + (r * 3 + i) % 700);
    records.push_back(std::move(record));
  }
  return records;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("map__of_1000_subnets_and_300_routers__figures", "[.bench]") {
  const auto records = large();
  auto start = std::chrono::steady_clock::now();
  const auto map = std::make_shared<RouterMap>(records, std::vector<Metric>{Metric::bandwidth, Metric::hops});
  const double built_s = seconds_since(start);
  const std::vector<SubnetId> all = map->subnets();
  Forwarding forwarding(map, 1);
  const SubnetId in = map->records()[0].devices[0].subnet;
  start = std::chrono::steady_clock::now();
  size_t reachable = 0;
  for (const SubnetId to : all) reachable += forwarding.next_hops(in, in, to).empty() ? 0u : 1u;
  const double all_s = seconds_since(start);
  constexpr size_t lookups = 2'000'000;
  start = std::chrono::steady_clock::now();
  size_t sum = 0;
  for (size_t i = 0; i < lookups; ++i) sum += forwarding.next_hops(in, in, all.at(i * 7919 % all.size())).size();
  const double lookup_s = seconds_since(start) / lookups;
  CHECK(sum > 0);
  CHECK(reachable == all.size());
  std::cout << all.size() << " subnets, 300 routers: map " << built_s * 1e3 << " ms, every destination of a router " << all_s * 1e3
            << " ms, a lookup " << lookup_s * 1e9 << " ns\n";
}
