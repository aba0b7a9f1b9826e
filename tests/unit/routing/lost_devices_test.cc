// A router that loses one of its subnets: its record goes on without it, the others' routes move away at once and come back.
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Duration flooding = milliseconds(100);  // a record over a few links of half a millisecond

// left - w - (e0, e1) - right. Of router 1, that is e0, the host says what becomes of a device.
struct Lossy : Site {
  Lossy() {
    parallel(2);
    world.run_for(seconds(1));
  }
  void say(const std::string& device, bool works) {
    routers[1]->router->set_works(device, works);
    world.wake(routers[1]->node);
  }
  void lose(const std::string& device, const std::string& address) {
    fabric.cut(device, address);
    say(device, false);
  }
  [[nodiscard]] uint64_t asked(size_t router) const {  // connects that came to it, whatever became of them
    const Counters& counters = routers[router]->counters;
    return counters.get(Counter::routed_connections) + counters.get(Counter::connections_refused);
  }
  [[nodiscard]] uint64_t heard() const { return routers[0]->counters.get(Counter::records_received); }
};

}  // namespace

TEST_CASE("router_lost_device__its_subnet_is_withdrawn__routes_move_within_flooding_time") {
  Lossy site;
  site.lose("lan2", "10.0.0.101");
  site.world.run_for(device_lost_after + flooding);
  CHECK(site.routers[0]->router->routers_known() == 3);  // the router is still there, and known
  const uint64_t before = site.asked(1);
  for (int i = 0; i < 8; ++i) site.connect(*site.left, *site.right);
  CHECK(site.asked(1) == before);
  // A client whose only router it is: back over its own subnet, to the router that still has the other one.
  App client(site.world, site.fabric, "mid", "10.9.0.77", {1, 9}, {"sim://10.9.0.2:7000"});
  const Instant begun = site.world.now();
  site.connect(client, *site.right);
  CHECK(site.world.now() - begun < milliseconds(500));
  CHECK(site.asked(1) == before + 1);
}

TEST_CASE("router_lost_device__works_again__its_subnet_comes_back") {
  Lossy site;
  site.lose("lan2", "10.0.0.101");
  site.world.run_for(seconds(30));
  site.fabric.join("lan2", "10.0.0.101");
  site.say("lan2", true);
  site.world.run_for(device_back_after - seconds(1));
  const uint64_t before = site.asked(1);
  for (int i = 0; i < 8; ++i) site.connect(*site.left, *site.right);
  CHECK(site.asked(1) == before);
  site.world.run_for(seconds(1) + flooding);
  for (int i = 0; i < 8; ++i) site.connect(*site.left, *site.right);
  CHECK(site.asked(1) == before + 4);  // equals take turns again
}

TEST_CASE("router_lost_device__the_first_of_its_devices__the_rest_is_used_as_itself") {
  Lossy site;
  site.lose("mid", "10.9.0.2");
  site.world.run_for(device_lost_after + flooding);
  App client(site.world, site.fabric, "lan2", "10.0.0.77", {1, 2}, {"sim://10.0.0.101:7000"});
  CHECK(site.connect_event(client, site.left->uri()).status == Status::success);
}

TEST_CASE("router_lost_device__short_break__nothing_is_told") {
  Lossy site;
  const uint64_t before = site.heard();
  for (int i = 0; i < 5; ++i) {
    site.say("lan2", false);
    site.world.run_for(device_lost_after - milliseconds(10));
    site.say("lan2", true);
    site.world.run_for(milliseconds(500));
  }
  CHECK(site.heard() == before);
}

TEST_CASE("router_lost_device__flaps__is_told_once_and_stays_away") {
  Lossy site;
  const uint64_t before = site.heard();
  for (int i = 0; i < 4; ++i) {
    site.say("lan2", false);
    site.world.run_for(device_lost_after + milliseconds(10));
    site.say("lan2", true);
    site.world.run_for(device_back_after - milliseconds(10));
  }
  // From e0 itself, and once more by way of e1.
  CHECK(site.heard() - before >= 1);
  CHECK(site.heard() - before <= 2);
}

TEST_CASE("router_lost_device__all_of_them__withdrawn_and_back_again") {
  Lossy site;
  site.say("lan2", false);
  site.say("mid", false);
  site.world.run_for(device_lost_after + flooding);
  CHECK(site.routers[0]->router->routers_known() == 2);
  site.say("lan2", true);
  site.say("mid", true);
  site.world.run_for(device_back_after + flooding);
  CHECK(site.routers[0]->router->routers_known() == 3);
}
