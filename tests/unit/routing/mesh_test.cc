// Many routers: what a change costs in messages, and how long until all know.
#include "tests/unit/routing/torus.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("router_records__mesh_of_100_routers__messages_in_order_of_routers_times_links") {
  Torus torus(10, 3, {});
  REQUIRE(torus.all_know(100, seconds(30)));
  torus.site.world.run_for(seconds(2));
  // A link's opening brings what each side knows, once; later each record crosses each link at most once a direction.
  CHECK(torus.received() <= 4u * torus.count * torus.link_count);
  const uint64_t before = torus.received();
  torus.site.world.run_for(seconds(30));
  const uint64_t refresh = torus.received() - before;
  CHECK(refresh <= 2u * torus.count * torus.link_count);
  CHECK(refresh >= uint64_t{torus.count} * (torus.count - 1));
}

TEST_CASE("router_records__router_lost__all_know_within_three_keepalive_times") {
  fail_one(5, 0);
  fail_one(5, 1);  // no reset tells the neighbours: silence does
}
