// The splice pipes that a router keeps for bytes that need not come into its memory.
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

namespace {

struct Passing {
  Passing() {
    set_room(1u << 20);
    site.chain(1);
    connection = site.connect(*site.left, *site.right);
    source = site.left->memory->register_region(Bytes(data));
    sink = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  }
  // Of the splice pipes that are made from now on.
  void set_room(uint32_t bytes) {
    sim::LinkOptions links;
    links.splice_pipe_bytes = bytes;
    for (const char* network : {"lan1", "lan2"}) site.fabric.set_link(network, links);
  }
  // One fragment; how many of its bytes did not come into the router's memory.
  uint64_t passed() {
    const uint64_t before = site.routers[0]->counters.get(Counter::routed_bytes_passed);
    cci::RmaOptions write;
    write.local = source;
    write.remote.handle = sink;
    write.length_bytes = data.size();
    CHECK(site.rma(*site.left, connection, write) == Status::success);
    CHECK((target == data));
    std::fill(target.begin(), target.end(), std::byte{});
    return site.routers[0]->counters.get(Counter::routed_bytes_passed) - before;
  }

  Site site{3};
  cci::Connection connection;
  std::vector<std::byte> data = pattern(64u << 10, 5), target = std::vector<std::byte>(64u << 10);
  ports::Handle source, sink;
};

}  // namespace

TEST_CASE("router_splice_pipes__one_fragment_after_the_other__all_use_the_first_ones") {
  const bool is_wide = GENERATE(true, false);
  Passing met;
  met.set_room(is_wide ? 1u << 20 : 100);
  CHECK((met.passed() > met.data.size() / 2) == is_wide);
  met.set_room(is_wide ? 100 : 1u << 20);  // of another one
  for (int i = 0; i < 5; ++i) CHECK((met.passed() > met.data.size() / 2) == is_wide);
}
