// What connections may have in flight on a router's device when their ends answer nothing.
#include <catch2/catch.hpp>

#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* router_uri = "sim://10.0.0.1:7000";

// A router whose devices may have 128 operations in flight, in place of 65,536.
struct Crowd {
  Crowd() {
    RouterOptions options;
    options.fragment_bytes = 64u << 10;
    options.memory_bytes = 16u * (64u << 10);
    std::vector<DeviceSpec> devices{{"left", "10.0.0.1", {1, 1}, {}}, {"right", "10.9.0.1", {1, 9}, {}}};
    for (DeviceSpec& device : devices) device.send_operations_max = 128;
    node = std::make_unique<RouterNode>(world, fabric, "router", std::move(devices), options);
    world.run_for(milliseconds(20));
  }
  // A connection from one to the other through the router; each speaks on it from now on.
  bool open(RawPeer& from, RawPeer& to, const std::string& address) {
    to.accepts = true;
    from.received.clear(), to.received.clear();
    if (!from.connect(router_uri, ports::Role::hop)) return false;
    from.say(RawPeer::usual_request("cci://1:9:" + address + ":7000"));
    if (!from.run([&] { return to.last(MessageKind::connect_request).has_value(); }, seconds(2))) return false;
    to.say(ConnectReply{Status::success, {}, 1392, 1u << 20, {}, 0});
    return from.run([&] { return from.last(MessageKind::connect_reply).has_value(); }, seconds(2)) &&
           from.say_plain(MessageKind::connect_ack) == Status::success;
  }

  sim::World world{7};
  sim::Fabric fabric{world, {}};
  std::unique_ptr<RouterNode> node;
};

}  // namespace

TEST_CASE("router_crowd__ends_that_answer_nothing__others_connect_and_speak") {
  Crowd crowd;
  RawPeer greedy(crowd.world, crowd.fabric, "left", "10.0.0.66"), still(crowd.world, crowd.fabric, "right", "10.9.0.10");
  RawPeer from(crowd.world, crowd.fabric, "left", "10.0.0.67"), to(crowd.world, crowd.fabric, "right", "10.9.0.11");
  std::vector<cci::Connection> connections;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(crowd.open(greedy, still, "10.9.0.10"));
    greedy.say_plain(MessageKind::end_to_end_keepalive);
    connections.push_back(greedy.connection);
  }
  crowd.world.run_for(milliseconds(50));
  still.freeze(true);
  for (const cci::Connection connection : connections) {
    greedy.connection = connection;
    for (int i = 0; i < 100; ++i) greedy.say_plain(MessageKind::keepalive);
  }
  crowd.world.run_for(seconds(1));
  CHECK(crowd.node->router->connections_open() == 20);
  REQUIRE(crowd.open(from, to, "10.9.0.11"));
  for (size_t i = 0; i < 50; ++i) REQUIRE(from.say_plain(MessageKind::keepalive) == Status::success);
  const auto heard = [&] {
    return std::count_if(to.received.begin(), to.received.end(),
                         [](const auto& message) { return kind_of(Bytes(message)) == MessageKind::keepalive; });
  };
  CHECK(from.run([&] { return heard() == 50; }, seconds(2)));
}
