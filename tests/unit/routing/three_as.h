// Three AS in a simulated world, for the tests of what routers believe of one another.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

namespace ccixfer::routing::test {

inline constexpr uint32_t wan = 100;

// AS3: r4 (3:3, 3:1) - r1 (3:1, WAN); AS4: r5 (WAN, 4:7); AS5: r6 (WAN, 5:1). r5 and r6 know r1 only.
inline void three_as(Site& site) {
  site.add_router("r4", {{"hpc", "10.3.0.1", {3, 3}, {}}, {"lan", "10.1.0.4", {3, 1}, {"sim://10.1.0.1:7000"}}});
  site.add_router("r1", {{"lan", "10.1.0.1", {3, 1}, {}}, {"wan", "192.0.2.3", {3, wan}, {}, true}});
  site.add_router("r5", {{"wan", "192.0.2.4", {4, wan}, {"sim://192.0.2.3:7000"}, true}, {"far", "10.0.0.1", {4, 7}, {}}});
  site.add_router("r6", {{"wan", "192.0.2.5", {5, wan}, {"sim://192.0.2.3:7000"}, true}, {"third", "10.0.0.1", {5, 1}, {}}});
  site.left = std::make_unique<App>(site.world, site.fabric, "hpc", "10.3.0.2", SubnetId{3, 3},
                                    std::vector<std::string>{"sim://10.3.0.1:7000"});
  site.right = std::make_unique<App>(site.world, site.fabric, "far", "10.0.0.2", SubnetId{4, 7},
                                     std::vector<std::string>{"sim://10.0.0.1:7000"});
  site.settle();
  site.world.run_for(std::chrono::seconds(3));
}

inline std::vector<RouterRecord> ask(RawPeer& peer, const std::string& uri) {
  auto records = peer.ask(uri);
  REQUIRE(records);
  return *records;
}

// A router of AS 9 as its own record has it: one WAN device.
inline RouterRecord border(uint64_t id, uint64_t instance, uint32_t as = 9) {
  RouterRecord record{id, instance, false, {}};
  record.devices.push_back({{as, wan}, 10'000'000'000, 0, true, true, {}, "sim://192.0.2.9:7000", 0});
  return record;
}

}  // namespace ccixfer::routing::test
