// Routers on networks whose cards check keys: the pool is registered once with each device, and never a fragment of it.
#include "tests/unit/routing/routed_world.h"
#include "transports/sim/card_transport.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

namespace {

// Every process has room for one region on each of its cards.
sim::LinkOptions one_region() {
  sim::LinkOptions link;
  link.card = {.regions_max = 1};
  return link;
}

}  // namespace

TEST_CASE("routed_cards__room_for_one_region_each__is_enough_for_any_number_of_fragments") {
  Site site(1, one_region());
  site.chain(2);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const bool write = GENERATE(true, false);
  std::vector<std::byte> local = pattern(1u << 20, 1), remote = pattern(1u << 20, 2);
  const std::vector<std::byte> expected = write ? local : remote;
  cci::RmaOptions rma;
  rma.write = write;
  rma.local = site.left->memory->register_region(local, cci::access_read_parts);
  rma.remote.handle = site.right->memory->register_region(remote, write ? cci::access_write : cci::access_read);
  rma.length_bytes = local.size();
  REQUIRE(rma.local.kind == ports::HandleKind::region);
  REQUIRE(rma.remote.handle.kind == ports::HandleKind::region);
  for (int i = 0; i < 3; ++i) CHECK(site.rma(*site.left, connection, rma) == Status::success);
  CHECK((write ? remote : local) == expected);
  CHECK(site.world.violations() == std::vector<std::string>{});
}

// Its parts are registered one by one then, and with a card that takes no more none of them is.
TEST_CASE("routed_cards__a_source_not_meant_for_peers__needs_room_for_its_fragments") {
  Site site(1, one_region());
  site.chain(1);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  std::vector<std::byte> local = pattern(1u << 20, 1), remote(1u << 20);
  cci::RmaOptions rma;
  rma.local = site.left->memory->register_region(local, 0);
  rma.remote.handle = site.right->memory->register_region(remote, cci::access_write);
  rma.length_bytes = local.size();
  CHECK(site.rma(*site.left, connection, rma) == Status::no_memory);
  CHECK(site.world.violations() == std::vector<std::string>{});
}

TEST_CASE("router_create__a_card_that_does_not_take_the_pool__usage_says_so") {
  sim::World world(1);
  sim::LinkOptions link;
  link.card = {.regions_max = 1, .bytes_max = 100};
  sim::Fabric fabric(world, link);
  Counters counters;
  sim::SimEntropy entropy(1);
  const sim::NodeId node = world.add_node("r");
  const auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  std::vector<RouterDevice> devices;
  for (const uint32_t subnet : {1u, 2u}) {
    RouterDevice device;
    device.name = "d" + std::to_string(subnet);
    device.subnet = {1, subnet};
    device.scheme = "sim";
    sim::SimNetOptions net;
    net.networks = {{device.name, "10.0.0.1"}};
    net.port = 7000;
    device.endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, sim::make_transport(fabric, node, net, {}, counters),
                                                      memory, counters);
    devices.push_back(std::move(device));
  }
  const auto made = Router::create(Site::small(), std::move(devices), memory, entropy, counters);
  REQUIRE_FALSE(made);
  CHECK(made.error().kind == ErrorKind::usage);
  CHECK(made.error().message.find("locked memory") != std::string::npos);
}
