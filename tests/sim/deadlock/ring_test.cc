// Freedom from deadlock, each case beside what happens without the mechanism that it is about.
// A deadlock is fragments that no longer move, and the cycle of buffers that wait for one another. README.md has the list.
#include <cstdio>

#include "tests/sim/deadlock/world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// All four at once, clockwise, each to the one opposite.
void fill_ring(Net& net, Flows& flows, size_t flows_each, size_t bytes) {
  for (uint32_t i = 0; i < Net::ring_size; ++i) {
    for (size_t k = 0; k < flows_each; ++k) {
      const size_t flow = flows.add(*net.apps[i], *net.apps[(i + 2) % Net::ring_size], bytes);
      CHECK(net.apps[i]->endpoint->hops(flows[flow].connection).size() == 4);
    }
  }
  flows.start_all();
}

void check_stuck(Net& net, Flows& flows) {
  CHECK_FALSE(flows.run());
  const std::string cycle = net.cycle();
  std::printf("deadlock, as it must be: %s\n", cycle.c_str());
  CHECK(cycle != "");
}

void check_delivered(Net& net, Flows& flows) {
  const bool ended = flows.run();
  INFO("a cycle: " << net.cycle());
  CHECK(ended);
  CHECK(flows.all_delivered());
  CHECK(net.buffers_used() == 0);
}

}  // namespace

TEST_CASE("T1 a ring of four, clockwise over three routers, one buffer a class: delivered") {
  const uint64_t seed = GENERATE(1u, 2u, 3u);
  const auto classes = static_cast<uint8_t>(GENERATE(8, 3));
  Net net(seed);
  net.pool_of_one(classes);
  net.ring();
  Flows flows(net);
  fill_ring(net, flows, 1, 4u << 20);
  check_delivered(net, flows);
}

TEST_CASE("T1 control: with a class less than the routes need the ring deadlocks") {
  const auto classes = static_cast<uint8_t>(GENERATE(1, 2));
  Net net(1);
  net.pool_of_one(classes);
  net.ring();
  Flows flows(net);
  fill_ring(net, flows, classes == 1 ? 1 : 4, 4u << 20);
  check_stuck(net, flows);
}

namespace {

// left - r0 - r1 - right, each sends to the other.
void swap_pairwise(Net& net, Flows& flows) {
  net.router({1, 9});
  net.router({9, 2});
  net.settle();
  net.world.run_for(seconds(1));
  App& left = net.app(1);
  App& right = net.app(2);
  flows.add(left, right, 4u << 20);
  flows.add(right, left, 4u << 20);
  flows.start_all();
}

}  // namespace

TEST_CASE("T2 two swap through two routers, one buffer a class: delivered") {
  Net net(GENERATE(1u, 2u, 3u));
  net.pool_of_one();
  Flows flows(net);
  swap_pairwise(net, flows);
  check_delivered(net, flows);
}

TEST_CASE("T2 control: without classes the swap deadlocks") {
  Net net(1);
  net.pool_of_one(1);
  Flows flows(net);
  swap_pairwise(net, flows);
  check_stuck(net, flows);
}

namespace {

// Six routers, memory for four fragments in each, and every LAN sends clockwise over five of them.
void fill_ring_of_six(Net& net, Flows& flows, uint8_t classes) {
  constexpr uint32_t size = 6, steps = 4;
  const auto lan = [](uint32_t i) { return 1 + i % size; };
  const auto arc = [](uint32_t i) { return 11 + i % size; };  // between router i and router i + 1
  net.options.mechanisms.classes = classes;
  net.options.memory_bytes = 4u * net.options.fragment_bytes;
  for (uint32_t i = 0; i < size; ++i) {
    StaticRoute route{{1, lan(i)}, {1, lan(i + steps)}, {{1, lan(i)}}};
    for (uint32_t k = 0; k < steps; ++k) route.via.push_back({1, arc(i + k)});
    net.options.static_routes.push_back(std::move(route));
  }
  for (uint32_t i = 0; i < size; ++i) net.router({lan(i), arc(i), arc(i + size - 1)});
  net.settle();
  net.world.run_for(seconds(1));
  for (uint32_t i = 0; i < size; ++i) static_cast<void>(net.app(lan(i)));
  for (uint32_t i = 0; i < size; ++i) {
    for (int k = 0; k < 4; ++k) {
      const size_t flow = flows.add(*net.apps[i], *net.apps[(i + steps) % size], 4u << 20);
      CHECK(net.apps[i]->endpoint->hops(flows[flow].connection).size() == steps + 2);
    }
  }
  flows.start_all();
}

}  // namespace

TEST_CASE("T1 memory for four fragments, five routers: eight shorter ones are delivered") {
  Net net(GENERATE(1u, 2u, 3u));
  Flows flows(net);
  fill_ring_of_six(net, flows, classes_max);
  check_delivered(net, flows);
}

TEST_CASE("T1 control: four whole fragments, the last class taken by any further, deadlock") {
  Net net(1);
  Flows flows(net);
  fill_ring_of_six(net, flows, 4);
  check_stuck(net, flows);
}

// The reserved buffers are the overflow tier: with a pool that is no larger than them, nothing is left to share.
TEST_CASE("T6 no shared buffers, an overflow of one a class, sixteen flows: delivered") {
  Net net(1);
  net.pool_of_one();
  net.ring();
  Flows flows(net);
  fill_ring(net, flows, 16, 1u << 20);
  check_delivered(net, flows);
}

TEST_CASE("T6 control: an overflow without classes only moves the deadlock") {
  Net net(1);
  net.pool_of_one(1);
  net.options.memory_bytes = 8u * net.options.fragment_bytes;
  net.ring();
  Flows flows(net);
  fill_ring(net, flows, 16, 1u << 20);
  check_stuck(net, flows);
}

namespace {

// Clockwise traffic is under way when every router's map changes; from then on new connections go the other way round.
void turn_the_ring(Net& net, Flows& flows) {
  fill_ring(net, flows, 2, 2u << 20);
  net.world.run_for(milliseconds(2));
  REQUIRE(flows.ended() == 0);
  RouterOptions anew = net.options;
  anew.static_routes = net.ring_routes(false);
  for (size_t r = 0; r < net.routers.size(); ++r) {
    REQUIRE(net.routers[r]->router->reconfigure(anew, net.settings(r)));
    net.world.wake(net.routers[r]->node);
  }
  for (uint32_t i = 0; i < Net::ring_size; ++i) {
    for (size_t k = 0; k < 2; ++k) {
      const size_t flow = flows.add(*net.apps[i], *net.apps[(i + 2) % Net::ring_size], 2u << 20);
      const auto hops = net.apps[i]->endpoint->hops(flows[flow].connection);
      REQUIRE(hops.size() == 4);
      CHECK(hops[1].subnet == 11 + (i + Net::ring_size - 1) % Net::ring_size);
      flows.start(flow);
    }
  }
}

}  // namespace

TEST_CASE("T10 the map changes with fragments in flight: old and new routes deliver") {
  Net net(GENERATE(1u, 2u, 3u));
  net.pool_of_one();
  net.ring();
  Flows flows(net);
  turn_the_ring(net, flows);
  check_delivered(net, flows);
}

// In the middle of a change each router has a part of the routes that sends LAN 1's traffic for LAN 3 on clockwise, past its end:
// r0 -> r1 -> r2 -> r3 -> r0. A request that goes round ends at the ninth router, and leaves nothing behind at those before.
TEST_CASE("T10 routers disagree and a connect goes in a circle: it ends, the rest arrives") {
  Net net(GENERATE(1u, 2u, 3u));
  net.pool_of_one();
  net.ring();
  Flows flows(net);
  fill_ring(net, flows, 2, 2u << 20);
  net.world.run_for(milliseconds(2));
  REQUIRE(flows.ended() == 0);
  const auto lan = [](uint32_t i) { return SubnetId{1, 1 + i}; };
  const auto arc = [](uint32_t i) { return SubnetId{1, 11 + i % Net::ring_size}; };
  const auto reconfigure = [&](uint32_t router, std::vector<StaticRoute> routes) {
    RouterOptions anew = net.options;
    anew.static_routes = std::move(routes);
    REQUIRE(net.routers[router]->router->reconfigure(anew, net.settings(router)));
    net.world.wake(net.routers[router]->node);
  };
  const auto carried = [&] {
    std::vector<size_t> all;
    for (const auto& router : net.routers) all.push_back(router->router->connections_open());
    return all;
  };
  const std::vector<size_t> before = carried();
  for (uint32_t i = 0; i < Net::ring_size; ++i)
    reconfigure(
        i, {{lan(0), lan(2), {i == 0 ? lan(0) : arc(i - 1), arc(i)}}, {lan(0), lan(2), {arc(i + Net::ring_size - 1), arc(i)}}});
  const auto refused = [&](size_t router) { return net.routers[router]->counters.get(Counter::connections_refused); };
  const uint64_t refused_before = refused(0);
  const Instant began = net.world.now();
  const cci::Event circled = net.connect_event(*net.apps[0], net.apps[2]->uri());
  CHECK(circled.status == Status::no_route);
  CHECK(circled.reason.find("more than eight routers") != std::string::npos);
  CHECK(net.world.now() - began < seconds(1));
  CHECK(refused(0) - refused_before == 3);  // it came by at the first, the fifth and the ninth router
  for (uint32_t i = 0; i < Net::ring_size; ++i) reconfigure(i, net.ring_routes(false));
  const size_t after = flows.add(*net.apps[0], *net.apps[2], 2u << 20);
  CHECK(net.apps[0]->endpoint->hops(flows[after].connection)[1].subnet == arc(3).subnet);
  std::vector<size_t> expected = before;
  for (const size_t on_its_way : {0u, 3u, 2u}) ++expected[on_its_way];
  CHECK(carried() == expected);
  flows.start(after);
  check_delivered(net, flows);
}

TEST_CASE("T10 control: without classes old and new routes deadlock") {
  Net net(1);
  net.pool_of_one(1);
  net.options.memory_bytes = 4u * net.options.fragment_bytes;
  net.ring();
  Flows flows(net);
  turn_the_ring(net, flows);
  check_stuck(net, flows);
}
