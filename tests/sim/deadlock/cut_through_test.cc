// Fragments that leave a router while they arrive: what it gains, T5, and how one ends half-way. Built into unit_routing too, for
// ASan.
#include "tests/sim/deadlock/world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t fragment = 1u << 20;  // four chunks
constexpr uint64_t slow = 10'000'000;

Duration one_fragment(RouterMechanisms mechanisms, bool write) {
  Net net(1);
  net.options = Net::options_of(mechanisms, 8);
  for (const uint32_t subnet : {1u, 2u, 11u, 12u}) net.set_rate(subnet, slow);
  net.router({1, 11});
  net.router({11, 12});
  net.router({12, 2});
  net.settle();
  net.world.run_for(seconds(1));
  Flows flows(net);
  const size_t flow = flows.add(net.app(1), net.app(2), fragment, write);
  flows.start(flow);
  REQUIRE(flows.run_until_ended(flow, seconds(5)));
  CHECK(flows[flow].delivered());
  CHECK(net.buffers_used() == 0);
  return flows[flow].took_until - flows[flow].began;
}

}  // namespace

TEST_CASE("Cut-through: over three routers takes one transfer and three chunks, not four") {
  const bool write = GENERATE(true, false);
  const Duration cut = one_fragment({}, write);
  const Duration stored = one_fragment(Net::without(&RouterMechanisms::cut_through), write);
  // 1 MiB at 10 MB/s is 105 ms, a chunk of it 26 ms.
  CHECK(cut < milliseconds(105 + 3 * 27 + 10));
  CHECK(stored > milliseconds(4 * 104));
}

namespace {

// One fragment from LAN 1 over r0 and r1 to LAN 3, where nothing is taken; then one from LAN 2 over r0 and r2 to LAN 4. One buffer
// a class.
bool crossing_goes_on(RouterMechanisms mechanisms, bool& cut_through) {
  Net net(2);
  net.options = Net::options_of(mechanisms, classes_max);
  for (const uint32_t subnet : {1u, 2u, 3u, 4u, 11u, 12u}) net.set_rate(subnet, slow);
  net.router({1, 2, 11, 12});
  net.router({11, 3});
  net.router({12, 4});
  net.settle();
  net.world.run_for(seconds(1));
  App& from = net.app(1);
  App& crossing_from = net.app(2);
  App& stopped = net.app(3);
  App& crossing_to = net.app(4);
  Flows flows(net);
  const size_t blocked = flows.add(from, stopped, fragment);
  const size_t crossing = flows.add(crossing_from, crossing_to, fragment);
  net.fabric.cut("n3", "10.3.0.103");
  flows.start(blocked);
  cut_through = false;
  for (int step = 0; step < 200; ++step) {  // it leaves r0 before it has arrived there
    net.world.run_for(milliseconds(1));
    const auto pulled = net.routers[0]->counters.get(Counter::routed_fragments);
    cut_through = cut_through || (pulled == 0 && net.routers[1]->router->fragments_in_use() > 0);
  }
  CHECK(net.routers[0]->counters.get(Counter::routed_fragments) == 1);
  CHECK(net.routers[1]->counters.get(Counter::routed_fragments) == 1);
  flows.start(crossing);
  const bool went_on = flows.run_until_ended(crossing, seconds(5));
  CHECK_FALSE(flows[blocked].ended);
  if (went_on) CHECK(flows[crossing].delivered());
  net.fabric.join("n3", "10.3.0.103");
  CHECK(flows.run());
  CHECK(flows.all_delivered());
  CHECK(net.buffers_used() == 0);
  return went_on;
}

}  // namespace

TEST_CASE("T5 cut-through with a blocked way out: a crossing flow goes on") {
  bool cut_through = false;
  CHECK(crossing_goes_on({}, cut_through));
  CHECK(cut_through);
}

TEST_CASE("T5 control: if buffers are kept until the way out has it, the other flow stands") {
  bool cut_through = false;
  RouterMechanisms mechanisms = Net::without(&RouterMechanisms::absorbs);
  mechanisms.progress = false;  // else the blocked one is cut off
  CHECK_FALSE(crossing_goes_on(mechanisms, cut_through));
}

namespace {

// left (LAN 1) - r0 - 11 - r1 - 12 - r2 - right (LAN 2), all slow: a fragment is under way for 100 ms.
struct Chain {
  Net net{4};
  App* left = nullptr;
  App* right = nullptr;
  Chain() {
    net.options = Net::options_of({}, 12);
    for (const uint32_t subnet : {1u, 2u, 11u, 12u}) net.set_rate(subnet, slow);
    net.router({1, 11});
    net.router({11, 12});
    net.router({12, 2});
    net.settle();
    net.world.run_for(seconds(1));
    left = &net.app(1);
    right = &net.app(2);
  }
  [[nodiscard]] bool leaving_early(size_t router) { return net.routers[router]->router->fragments_leaving_early() > 0; }
  // The connection still carries what it should, and no router has a buffer out.
  void check_lives(Flows& flows, cci::Connection connection, bool write) {
    net.world.run_for(seconds(1));
    CHECK(net.buffers_used() == 0);
    const size_t next = flows.add(*left, *right, connection, 2 * fragment, write);
    flows.start(next);
    REQUIRE(flows.run_until_ended(next, seconds(10)));
    CHECK(flows[next].delivered());
    CHECK(net.buffers_used() == 0);
  }
};

}  // namespace

TEST_CASE("Cut-through: memory withdrawn half-way fails the read and nothing else") {
  Chain chain;
  Flows flows(chain.net);
  const size_t flow = flows.add(*chain.left, *chain.right, 4 * fragment, false);
  flows.start(flow);
  REQUIRE(chain.net.run([&] { return chain.leaving_early(2) && chain.leaving_early(1) && chain.leaving_early(0); }));
  CHECK(chain.right->memory->deregister_region(flows[flow].remote) != Status::rma_handle);
  REQUIRE(flows.run_until_ended(flow, seconds(5)));
  CHECK(flows[flow].status == Status::rma_handle);
  chain.check_lives(flows, flows[flow].connection, false);
}

TEST_CASE("Cut-through: a put refused while it arrives ends at once and harms nobody") {
  Chain chain;
  REQUIRE(chain.right->endpoint->mailboxes().open(7, {.key = 1}) == Status::success);  // no buffer is posted
  Flows flows(chain.net);
  const size_t flow = flows.add(*chain.left, *chain.right, 4 * fragment);
  flows[flow].remote = {};
  flows[flow].remote.kind = ports::HandleKind::mailbox;
  flows[flow].remote.number = 7;
  flows[flow].remote.key = 1;
  flows.start(flow);
  REQUIRE(chain.net.run([&] { return chain.leaving_early(2); }));
  REQUIRE(flows.run_until_ended(flow, seconds(5)));
  CHECK(flows[flow].status == Status::mailbox_empty);
  chain.check_lives(flows, flows[flow].connection, true);
}

TEST_CASE("Cut-through: if a router dies, the write that it fed ends and buffers come back") {
  Chain chain;
  Flows flows(chain.net);
  const size_t flow = flows.add(*chain.left, *chain.right, 4 * fragment);
  flows.start(flow);
  REQUIRE(chain.net.run([&] { return chain.leaving_early(2) && chain.leaving_early(1); }));
  chain.net.kill(1);
  chain.net.world.run_for(seconds(1));
  CHECK(chain.net.buffers_used() == 0);
  REQUIRE(flows.run_until_ended(flow, seconds(5)));
  CHECK(flows[flow].status == Status::disconnected);
}

// Its target cannot acknowledge anything any more, and need not: it has never heard of the write.
TEST_CASE("Cut-through: if a connection closes, a write waiting for its chunk ends at once") {
  Net net(5);
  net.options = Net::options_of({}, 12);
  for (const uint32_t subnet : {1u, 2u}) net.set_rate(subnet, 1'000'000);  // a chunk takes a quarter of a second
  net.router({1, 2});
  net.settle();
  App& left = net.app(1);
  App& right = net.app(2);
  Router& router = *net.routers[0]->router;
  Flows flows(net);
  const size_t flow = flows.add(left, right, fragment);
  router.drain();
  net.world.wake(net.routers[0]->node);
  net.world.run_for(drain_timeout - milliseconds(100));
  net.fabric.cut("n2", "10.2.0.102");
  flows.start(flow);
  net.world.run_for(milliseconds(90));
  REQUIRE(router.fragments_leaving_early() == 1);
  REQUIRE(router.connections_open() == 1);
  REQUIRE(flows.run_until_ended(flow, seconds(1)));
  CHECK(flows[flow].status == Status::disconnected);
  net.world.run_for(seconds(1));
  CHECK(router.fragments_in_use() == 0);
}
