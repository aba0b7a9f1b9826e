// A router's turn has several rounds, and a quick peer answers within it.
#include "routing/transport/routed_transport.h"
#include "tests/unit/routing/routed_world.h"
#include "tests/unit/stream/memory_net.h"
#include "transports/stream/stream_transport.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using cci::EventType;
using std::chrono::microseconds;

namespace {

struct Host {  // in memory: what one sends the other has
  explicit Host(uint64_t seed) : entropy(seed), memory(std::make_shared<cci::MemoryTable>(entropy, counters)) {}
  std::unique_ptr<cci::Endpoint> lower(stream::testing::Hub& hub, const std::string& name) {
    auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{},
                                                               std::make_unique<stream::testing::MemoryNet>(hub, name), counters);
    return std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters);
  }
  void route(std::unique_ptr<cci::Endpoint> below, SubnetId subnet, const std::string& router) {
    RoutedOptions options;
    options.subnet = subnet;
    options.routers = {router};
    options.scheme = "mem";
    auto above = make_routed_transport(options, std::move(below), memory, entropy, counters);
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(above), memory, counters);
  }

  Counters counters;
  sim::SimEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
};

}  // namespace

TEST_CASE("router_clock__an_answer_within_the_turn_has_taken_the_time_that_went_by") {
  stream::testing::Hub hub;
  Host left(1), middle(2), right(3);
  left.route(left.lower(hub, "10.1.0.2:7000"), {1, 1}, "mem://10.1.0.1:7000");
  right.route(right.lower(hub, "10.2.0.2:7000"), {1, 2}, "mem://10.2.0.1:7000");
  std::vector<RouterDevice> devices;
  for (const uint32_t subnet : {1u, 2u}) {
    RouterDevice& device = devices.emplace_back();
    device.name = "d" + std::to_string(subnet);
    device.subnet = {1, subnet};
    device.scheme = "mem";
    device.endpoint = middle.lower(hub, "10." + std::to_string(subnet) + ".0.1:7000");
  }
  auto router = Router::create(test::Site::small(), std::move(devices), middle.memory, middle.entropy, middle.counters);
  REQUIRE(router);
  // No time goes by but where the router looks at the clock (none at all where the clock's grain is coarser than that), and nothing
  // but that makes the destination answer.
  const Duration tick = GENERATE(microseconds(7), microseconds(0));
  Instant now = Instant{} + std::chrono::seconds(1);
  const auto clock = [&] {
    right.endpoint->turn(now);
    while (auto event = right.endpoint->get_event()) {
      if (event->type == EventType::connect_request) CHECK(right.endpoint->accept(*event, 1) == Status::success);
    }
    return now += tick;
  };
  cci::ConnectOptions how;
  how.timeout = std::chrono::seconds(5);
  REQUIRE(left.endpoint->connect(right.endpoint->uri(), how));
  cci::Connection connection;
  for (int i = 0; i < 100 && !connection; ++i) {
    left.endpoint->turn(now);
    while (auto event = left.endpoint->get_event()) {
      if (event->type == EventType::connect) connection = event->connection;
    }
    (*router)->turn(now, clock);
  }
  REQUIRE(connection);
  const auto hops = left.endpoint->hops(connection);
  REQUIRE(hops.size() == 2);
  CHECK(hops[1].round_trip >= std::max<Duration>(tick, ports::round_trip_min));
  CHECK(hops[0].round_trip >= hops[1].round_trip);
}
