// Proved and sealed connections in the simulated world: keys are new each time, and nothing else of a run changes.
#include <catch2/catch.hpp>

#include "core/cci/endpoint.h"
#include "core/cci/memory_table.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/sim/card_transport.h"
#include "transports/sim/random.h"

namespace ccixfer::sim {
namespace {

using namespace std::chrono_literals;

class Process final : public Actor {
 public:
  Process(World& world, Fabric& fabric, const std::string& name, std::shared_ptr<connection::HopTrust> trust)
      : world_(world), node_(world.add_node(name)), entropy_(7) {
    SimNetOptions net;
    net.networks = {{"n", name}};
    net.port = 1;
    auto memory = std::make_shared<cci::MemoryTable>(entropy_, counters_);
    auto transport = make_transport(fabric, node_, net, {}, counters_, std::move(trust));
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters_);
    world.add_actor(node_, this);
  }
  ~Process() override { world_.remove_actor(node_, this); }
  void turn(Instant now) override {
    endpoint->turn(now);
    while (auto event = endpoint->get_event()) {
      if (event->type == cci::EventType::connect_request) static_cast<void>(endpoint->accept(*event, 1));
      if (event->type == cci::EventType::connect) connection = event->connection;
      if (event->type == cci::EventType::receive) ++received;
    }
  }
  [[nodiscard]] Instant next_deadline() const override { return endpoint->next_deadline(); }
  void wake() { world_.wake(node_); }

  std::unique_ptr<cci::Endpoint> endpoint;
  cci::Connection connection;
  size_t received = 0;

 private:
  World& world_;
  NodeId node_;
  Counters counters_;
  SimEntropy entropy_;
};

struct Run {
  Duration took{0};
  uint64_t bytes = 0;
  std::string peer;
};

Run run_once(uint64_t seed) {
  World world(seed);
  Fabric fabric(world);
  const auto of_b = std::make_shared<testing::OwnTrust>();
  Process a(world, fabric, "a", std::make_shared<testing::OwnTrust>()), b(world, fabric, "b", of_b);
  const Instant began = world.now();
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  a.wake();
  REQUIRE(world.run_until([&] { return bool(a.connection); }, after(began, 10s)) == RunEnd::reached);
  CHECK(a.endpoint->peer(a.connection).proved == of_b->name());
  for (int i = 0; i < 20; ++i) {
    REQUIRE(a.endpoint->send(a.connection, std::vector<std::byte>(100u * static_cast<size_t>(i)), 1) == Status::success);
  }
  a.wake();
  REQUIRE(world.run_until([&] { return b.received == 20; }, after(began, 10s)) == RunEnd::reached);
  world.run_for(1s);
  return {world.now() - began, fabric.bytes_delivered(), of_b->name()};
}

TEST_CASE("secured_world__the_same_seed_with_new_identities__the_same_times_and_lengths") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    const Run one = run_once(seed), other = run_once(seed);
    CHECK(one.peer != other.peer);
    CHECK(one.took == other.took);
    CHECK(one.bytes == other.bytes);
  }
}

}  // namespace
}  // namespace ccixfer::sim
