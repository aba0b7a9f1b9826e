// Staged files that nobody wants are removed together.
#include "app/recv/discards.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

TEST_CASE("discards__names_of_a_turn__are_removed_together_by_one_job") {
  test::JobRig rig;
  std::vector<std::vector<std::string>> removed;
  Discards discards(rig.jobs, [&](const std::vector<std::string>& names) { removed.push_back(names); });
  discards.turn();
  CHECK(rig.jobs.running() == 0);
  discards.add("a");
  discards.add("b");
  CHECK_FALSE(discards.empty());
  discards.turn();
  CHECK(discards.empty());
  CHECK(rig.jobs.running() == 1);
  rig.pool.reap();
  CHECK(removed == std::vector<std::vector<std::string>>{{"a", "b"}});
}

}  // namespace
}  // namespace ccixfer::recv
