// Nodes with routing endpoints and routers in a simulated world, for tests. A chain "1 router" is app - lan1 - r1 - lan2 - app.
#pragma once
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/routing/routed_nodes.h"

namespace ccixfer::routing::test {

struct Site {
  explicit Site(uint64_t seed = 1, sim::LinkOptions links = {}) : world(seed), fabric(world, links) {}
  sim::World world;
  sim::Fabric fabric;
  std::vector<std::unique_ptr<RouterNode>> routers;
  std::unique_ptr<App> left, right;
  RouterOptions options = small();

  static RouterOptions small();  // 64 KiB fragments, 16 of them
  // `count` routers in a row between left (subnet 1:1, client of router 1) and right (subnet 1:2). `lent`: the fragments of each,
  // with memory for as many as `options` has; empty: all are as `options` says.
  void chain(size_t count, const std::vector<uint32_t>& lent = {});
  // left - w - (n in parallel) - right: the parallel ones join subnets 1:9 and 1:2.
  void parallel(size_t count);
  void add_router(const std::string& name, std::vector<DeviceSpec> devices);
  void kill(size_t router);  // as by SIGKILL
  void restart(size_t router, sim::NodeId node, std::vector<DeviceSpec> devices);
  bool run(const std::function<bool()>& done, Duration at_most = std::chrono::seconds(60));
  void settle();  // until every router is ready
  // Connects left to right and checks it.
  cci::Connection connect(App& from, const App& to, Duration timeout = std::chrono::seconds(30));
  // The status with which a connect ends.
  cci::Event connect_event(App& from, const std::string& uri, Duration timeout = std::chrono::seconds(30));
  Status send(App& from, cci::Connection connection, std::string_view text);
  Status rma(App& from, cci::Connection connection, cci::RmaOptions rma);
};

std::vector<std::byte> pattern(size_t bytes, uint64_t seed);

}  // namespace ccixfer::routing::test
