// Which groups the process is in.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "core/host/file_system.h"

using namespace ccixfer;

TEST_CASE("own_groups__that_of_the_process_and_its_further_ones__and_no_other") {
  host::PosixFileSystem files;
  CHECK(files.has_group(::getegid()));
  std::vector<gid_t> groups(static_cast<size_t>(::getgroups(0, nullptr)));
  groups.resize(static_cast<size_t>(::getgroups(static_cast<int>(groups.size()), groups.data())));
  for (const gid_t group : groups) CHECK(files.has_group(group));
  CHECK_FALSE(files.has_group(2'147'000'000));
}
