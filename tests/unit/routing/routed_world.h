// Nodes with routing endpoints and routers in a simulated world, for tests. A chain "1 router" is app - lan1 - r1 - lan2 - app.
#pragma once
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cci/endpoint.h"
#include "routing/router/router.h"
#include "routing/session/routed_transport.h"
#include "transports/sim/random.h"
#include "transports/sim/sim_net.h"
#include "transports/sim/world.h"

namespace ccixfer::routing::test {

// A process with one routing endpoint. Accepts every request unless told otherwise; keeps its events.
class App final : public sim::Actor {
 public:
  enum class Answer { accept, reject, none };
  App(sim::World& world, sim::Fabric& fabric, const std::string& network, const std::string& address, SubnetId subnet,
      std::vector<std::string> routers, uint32_t receive_buffers = 1024, uint32_t lower_receive_buffers = 1024);
  ~App() override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return endpoint ? endpoint->next_deadline() : never; }
  [[nodiscard]] std::string uri() const { return endpoint->uri(); }
  // The first event of a type; then forgotten.
  std::optional<cci::Event> take(cci::EventType type);
  [[nodiscard]] size_t count(cci::EventType type) const;
  void wake() { world.wake(node); }

  sim::World& world;
  sim::NodeId node;
  Counters counters;
  sim::SimEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
  Answer answer = Answer::accept;
  cci::Connection accepted;
  std::vector<cci::Event> events;
};

struct DeviceSpec {
  std::string network, address;
  SubnetId subnet;
  std::vector<std::string> peers;
  bool wan = false;
  std::vector<uint32_t> wan_to = {};
  uint64_t rate_bits_per_s = 10'000'000'000;
};

class RouterNode final : public sim::Actor {
 public:
  RouterNode(sim::World& world, sim::Fabric& fabric, const std::string& name, std::vector<DeviceSpec> devices,
             RouterOptions options, std::optional<sim::NodeId> restarted = {});
  ~RouterNode() override;
  void turn(Instant now) override { router->turn(now); }
  [[nodiscard]] Instant next_deadline() const override { return router->next_deadline(); }

  sim::World& world;
  sim::NodeId node;
  Counters counters;
  sim::SimEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<Router> router;
};

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
