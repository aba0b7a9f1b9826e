// What a router says when it forgets another one: of one that fell silent, and not of one that said that it goes.
#include <catch2/catch.hpp>

#include "core/base/log.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;

TEST_CASE("router_records__forgotten__said_once_of_each_that_fell_silent_not_of_withdrawn") {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::info);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });  // also when a check fails
  sim::World world{4};
  sim::Fabric fabric{world, {}};
  RouterOptions options;
  options.fragment_bytes = 64u << 10;
  options.memory_bytes = 16u * (64u << 10);
  RouterNode node(world, fabric, "router", {{"lan", "10.0.0.1", {1, 1}, {}}, {"lan2", "10.0.0.1", {1, 2}, {}}}, options);
  RawPeer peer(world, fabric, "lan", "10.0.0.66");
  world.run_for(milliseconds(20));
  REQUIRE(peer.greet("sim://10.0.0.1:7000", 66, {1, 1}));
  const auto record_of_router = [](uint64_t id, uint64_t instance, bool withdrawn) {
    RouterRecord record{id, instance, withdrawn, {}};
    if (!withdrawn) record.devices.push_back({{1, 50}, 1'000'000'000, 0, true, false, {}, "sim://10.0.0.66:7000", 0});
    return record;
  };
  REQUIRE(peer.tell(record_of_router(0x50, 1, false)));
  REQUIRE(peer.tell(record_of_router(0x51, 1, false)));
  REQUIRE(peer.tell(record_of_router(0x51, 2, true)));
  lines.clear();
  world.run_for(3 * options.record_lifetime);
  std::vector<std::string> forgotten;
  for (const std::string& line : lines) {
    if (line.find("not heard of") != std::string::npos) forgotten.push_back(line);
  }
  CHECK(forgotten == std::vector<std::string>{"routing: router 0000000000000050 not heard of any more"});
}
