// How many buffers a connection has of a router whose one network is slow to answer and whose other one is not.
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;

TEST_CASE("router_window__one_of_its_networks_is_long__as_many_buffers_as_keep_it_busy") {
  const std::string long_one = GENERATE("lan1", "lan2", "none");
  const bool write = GENERATE(true, false);
  CAPTURE(long_one, write);
  sim::LinkOptions links;
  links.delay_min = links.delay_max = std::chrono::microseconds(10);
  links.window_bytes = 16u << 20;
  Site site(1, links);
  links.delay_min = links.delay_max = milliseconds(20);
  if (long_one != "none") site.fabric.set_link(long_one, links);
  site.options.memory_bytes = 512u * (64u << 10);
  site.add_router("r", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"lan2", "10.0.0.1", {1, 2}, {}}});
  const std::vector<std::string> routers{"sim://10.0.0.1:7000"};
  site.left = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.2", SubnetId{1, 1}, routers);
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 2}, routers);
  site.settle();
  const cci::Connection connection = site.connect(*site.left, *site.right);
  auto data = pattern(24u << 20, 1);
  std::vector<std::byte> target(data.size());
  App& owner = write ? *site.left : *site.right;
  App& getter = write ? *site.right : *site.left;
  cci::RmaOptions rma;
  rma.write = write;
  const auto source = owner.memory->register_region(Bytes(data));
  const auto sink = getter.memory->register_region(MutableBytes(target), cci::access_write);
  rma.local = write ? source : sink;
  rma.remote.handle = write ? sink : source;
  rma.length_bytes = data.size();
  REQUIRE(site.left->endpoint->rma(connection, rma) == Status::success);
  site.left->wake();
  uint32_t most = 0;
  REQUIRE(site.run([&] {
    most = std::max(most, site.routers[0]->router->fragments_in_use());
    return site.left->count(EventType::send) > 0;
  }));
  CHECK((target == data));
  if (long_one == "none") {
    CHECK(most <= 16);
  } else {
    CHECK(most >= 60);  // an end has 64 under way
  }
}
