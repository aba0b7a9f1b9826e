// Fragments that leave a router while they arrive: what it gains, T5 and T13.
#include <algorithm>
#include <cstdio>

#include "tests/sim/deadlock/world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t fragment = 1u << 20;  // four chunks
constexpr uint64_t slow = 10'000'000, fast = 100'000'000;

RouterOptions options_of(RouterMechanisms mechanisms, uint32_t buffers) {
  RouterOptions options;
  options.fragment_bytes = fragment;
  options.memory_bytes = uint64_t{buffers} * fragment;
  options.mechanisms = mechanisms;
  return options;
}

RouterMechanisms without(bool RouterMechanisms::*one) {
  RouterMechanisms mechanisms;
  mechanisms.*one = false;
  return mechanisms;
}

Duration one_fragment(RouterMechanisms mechanisms, bool write) {
  Net net(1);
  net.options = options_of(mechanisms, 8);
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

TEST_CASE("Cut-through: a fragment over three routers takes one transfer and three chunks, not four transfers") {
  const bool write = GENERATE(true, false);
  const Duration cut = one_fragment({}, write);
  const Duration stored = one_fragment(without(&RouterMechanisms::cut_through), write);
  // 1 MiB at 10 MB/s is 105 ms, a chunk of it 26 ms.
  CHECK(cut < milliseconds(105 + 3 * 27 + 10));
  CHECK(stored > milliseconds(4 * 104));
}

namespace {

// One fragment from LAN 1 over r0 and r1 to LAN 3, where nothing is taken; then one from LAN 2 over r0 and r2 to LAN 4. One buffer
// a class.
bool crossing_goes_on(RouterMechanisms mechanisms, bool& cut_through) {
  Net net(2);
  net.options = options_of(mechanisms, classes_max);
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

TEST_CASE("T5 control: with the buffers before kept until the way out has it, the crossing flow stands") {
  bool cut_through = false;
  CHECK_FALSE(crossing_goes_on(without(&RouterMechanisms::absorbs), cut_through));
}

namespace {

// LAN 1 is slow, all else ten times as fast. A flow from LAN 1 and single fragments from LAN 2 share the link 9 from r0 to r1,
// which has one buffer a class. The longest time that one of the single fragments takes.
Duration longest_beside_slow(RouterMechanisms mechanisms, bool with_slow) {
  Net net(3);
  net.set_rate(1, slow);
  for (const uint32_t subnet : {2u, 3u, 9u}) net.set_rate(subnet, fast);
  net.options = options_of(mechanisms, 32);
  net.router({1, 2, 9});
  net.options = options_of(mechanisms, classes_max);
  net.router({9, 3});
  net.settle();
  net.world.run_for(seconds(1));
  App& slow_from = net.app(1);
  App& fast_from = net.app(2);
  App& slow_to = net.app(3);
  App& fast_to = net.app(3);
  Flows flows(net);
  if (with_slow) flows.start(flows.add(slow_from, slow_to, 128u << 20));
  const cci::Event event = net.connect_event(fast_from, fast_to.uri());
  REQUIRE(event.status == Status::success);
  net.world.run_for(seconds(1));
  Duration longest{0};
  for (int i = 0; i < 60; ++i) {
    const size_t flow = flows.add(fast_from, fast_to, event.connection, fragment);
    flows.start(flow);
    REQUIRE(flows.run_until_ended(flow, seconds(5)));
    CHECK(flows[flow].delivered());
    longest = std::max(longest, flows[flow].took_until - flows[flow].began);
    net.world.run_for(milliseconds(7));
  }
  if (with_slow) CHECK_FALSE(flows[0].ended);  // it was there all the time
  return longest;
}

constexpr Duration one_chunk = std::chrono::microseconds(2622 + 500);  // 256 KiB at 100 MB/s, and the grain of the measurement

}  // namespace

TEST_CASE("T13 from a slow link to a fast one: no fragment of the fast link waits longer than a chunk for cut-through") {
  const Duration alone = longest_beside_slow({}, false);
  const Duration stored = longest_beside_slow(without(&RouterMechanisms::cut_through), true);
  const Duration cut = longest_beside_slow({}, true);
  const auto ms = [](Duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  std::printf("a fragment of the fast link takes at most %.1f ms alone, %.1f beside stored, %.1f beside cut-through\n", ms(alone),
              ms(stored), ms(cut));
  CHECK(cut <= stored + one_chunk);
}

TEST_CASE("T13 control: with what leaves at its first byte the fast link waits for the slow one") {
  const Duration stored = longest_beside_slow(without(&RouterMechanisms::cut_through), true);
  CHECK(longest_beside_slow(without(&RouterMechanisms::paced), true) > stored + 4 * one_chunk);
}
