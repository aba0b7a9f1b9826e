// T13: the paper assumes that all links are equally fast (ITB, footnote 2). Ours are not.
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

// LAN 1 is slow, all else ten times as fast. A flow from LAN 1 and single fragments from LAN 2 share the link 9 from r0 to r1,
// which has one buffer a class. The longest time that one of the single fragments takes.
Duration longest_beside_slow(RouterMechanisms mechanisms, bool with_slow) {
  Net net(3);
  net.set_rate(1, slow);
  for (const uint32_t subnet : {2u, 3u, 9u}) net.set_rate(subnet, fast);
  net.options = Net::options_of(mechanisms, 32);
  net.router({1, 2, 9});
  net.options = Net::options_of(mechanisms, classes_max);
  net.router({9, 3});
  net.settle();
  net.world.run_for(seconds(1));
  App& slow_from = net.app(1);
  App& fast_from = net.app(2);
  App& slow_to = net.app(3);
  App& fast_to = net.app(3);
  Flows flows(net);
  if (with_slow) flows.start(flows.add(slow_from, slow_to, 192u << 20));
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

constexpr Duration one_chunk = std::chrono::microseconds(2662 + 500);  // 260 KiB at 100 MB/s, and the grain of the measurement

}  // namespace

TEST_CASE("T13 slow link to fast link: no fragment there waits longer than a chunk") {
  const Duration alone = longest_beside_slow({}, false);
  const Duration stored = longest_beside_slow(Net::without(&RouterMechanisms::cut_through), true);
  const Duration cut = longest_beside_slow({}, true);
  const auto ms = [](Duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  std::printf("a fragment of the fast link takes at most %.1f ms alone, %.1f beside stored, %.1f beside cut-through\n", ms(alone),
              ms(stored), ms(cut));
  CHECK(cut <= stored + one_chunk);
}

TEST_CASE("T13 control: sending at the first byte, the fast link waits for the slow one") {
  const Duration stored = longest_beside_slow(Net::without(&RouterMechanisms::cut_through), true);
  CHECK(longest_beside_slow(Net::without(&RouterMechanisms::paced), true) > stored + 4 * one_chunk);
}
