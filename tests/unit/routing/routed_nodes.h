// The nodes of a routed network in a simulated world: a process with a routing endpoint, and a router. They assert nothing of a
// test framework, so that the fuzz targets have them too.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cci/endpoint.h"
#include "core/cci/memory_table.h"
#include "routing/router/router.h"
#include "routing/transport/routed_transport.h"
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
  std::string uri = {};  // of a worker that follows: that of the router's device
  uint32_t send_operations_max = cci::EndpointOptions{}.send_operations_max;
};

class RouterNode final : public sim::Actor {
 public:
  RouterNode(sim::World& world, sim::Fabric& fabric, const std::string& name, std::vector<DeviceSpec> devices,
             RouterOptions options, std::optional<sim::NodeId> restarted = {}, const ports::TransportOptions& below = {});
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

}  // namespace ccixfer::routing::test
