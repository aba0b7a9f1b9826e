// Buffers that a network still refers to.
#include "routing/router/lent_buffers.h"

#include <catch2/catch.hpp>
#include <set>

using namespace ccixfer;
using namespace ccixfer::routing;

TEST_CASE("lent_buffers__a_network_refers_to_one__it_comes_back_later_others_at_once") {
  FragmentPool pool(4096, 16 * 4096);
  std::set<uint64_t> in_use = {7};
  LentBuffers lent(pool, [&](const ports::Handle& handle) { return in_use.contains(handle.number); });
  ports::Handle region;
  lent.give(1, pool.take(1, 0), region);
  CHECK(pool.used() == 0);
  region.number = 7;
  lent.give(1, pool.take(1, 0), region);
  CHECK(pool.used() == 1);
  CHECK_FALSE(lent.return_free());
  CHECK(pool.used() == 1);
  in_use.clear();
  CHECK(lent.return_free());
  CHECK(pool.used() == 0);
  CHECK_FALSE(lent.return_free());
}
