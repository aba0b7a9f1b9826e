// A router that serves who was there first, as the tests of fairness have it to compare with: it must serve them all the same.
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;

TEST_CASE("router_without_turns__more_fragments_than_buffers__all_of_it_arrives") {
  Site site;
  site.options.mechanisms.turns = false;
  site.chain(1);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto source = pattern(4u << 20, 1);
  std::vector<std::byte> target(source.size());
  cci::RmaOptions write;
  write.local = site.left->memory->register_region(Bytes(source));
  write.remote.handle = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  write.length_bytes = source.size();
  REQUIRE(site.rma(*site.left, connection, write) == Status::success);
  CHECK(target == source);
}
