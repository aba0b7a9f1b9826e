// Freedom from deadlock, by the tests of rvma-and-itb.md part 5, each beside what happens without the mechanism that it is about.
// A deadlock is fragments that no longer move, and the cycle of buffers that wait for one another. tests/README.md has the table.
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

TEST_CASE("T1 a ring of four, all clockwise over three routers, one buffer a class: delivered") {
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

// The reserved buffers are the overflow tier: with a pool that is no larger than them, nothing is left to share.
TEST_CASE("T6 no shared buffers, an overflow of one a class, sixteen flows a router: delivered") {
  Net net(1);
  net.pool_of_one();
  net.ring();
  Flows flows(net);
  fill_ring(net, flows, 16, 1u << 20);
  check_delivered(net, flows);
}

TEST_CASE("T6 control: an overflow of as many buffers without classes only moves the deadlock") {
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

TEST_CASE("T10 the map changes while fragments are in flight: all of old and new routes is delivered") {
  Net net(GENERATE(1u, 2u, 3u));
  net.pool_of_one();
  net.ring();
  Flows flows(net);
  turn_the_ring(net, flows);
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
