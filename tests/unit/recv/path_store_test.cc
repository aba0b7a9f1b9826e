// The paths that a session remembers, in memory and beyond it.
#include "app/recv/path_store.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/sim_disk_rig.h"

namespace ccixfer::recv {

using namespace test;

namespace {

std::string path_of(int number) { return "directory/" + std::to_string(number); }

}  // namespace

TEST_CASE("path_set__more_than_a_run__has_what_was_added_and_nothing_else") {
  SimDiskRig rig;
  const auto opened = rig.root->opened();
  PathSet set(*opened, 1000);
  for (int number = 0; number < 5500; ++number) set.add(path_of(number));
  for (int number = 0; number < 5500; ++number) REQUIRE(set.contains(path_of(number)));
  for (int number = 5500; number < 20000; ++number) REQUIRE_FALSE(set.contains(path_of(number)));
}

TEST_CASE("path_set__a_disk_that_is_full__keeps_all_in_memory") {
  SimDiskRig rig;
  rig.files.set_hook([](std::string_view call, std::string_view) { return call == "pwrite" ? -ENOSPC : 0; });
  const auto opened = rig.root->opened();
  PathSet set(*opened, 100);
  for (int number = 0; number < 1000; ++number) set.add(path_of(number));
  for (int number = 0; number < 1000; ++number) REQUIRE(set.contains(path_of(number)));
  CHECK_FALSE(set.contains(path_of(1000)));
}

TEST_CASE("path_log__more_than_fits__comes_back_in_order") {
  SimDiskRig rig;
  const auto opened = rig.root->opened();
  PathLog log(*opened, 100);
  log.add("");
  for (int number = 0; number < 1000; ++number) log.add(path_of(number));
  std::string path = "x";
  REQUIRE(log.next(path));
  CHECK(path.empty());
  for (int number = 0; number < 1000; ++number) {
    REQUIRE(log.next(path));
    REQUIRE(path == path_of(number));
  }
  CHECK_FALSE(log.next(path));
  CHECK_FALSE(log.failed());
}

}  // namespace ccixfer::recv
