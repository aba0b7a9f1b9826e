// Owners by name, mapped to numbers of this host.
#include "app/recv/owner_names.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/faulty_files.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {
namespace {

struct Rig {
  test::FaultyFiles files;
  OwnerNames names;
  std::vector<session::Entry> entries{test::file("a", 1), test::file("b", 1)};

  Rig() {
    for (session::Entry& entry : entries) entry.uid = entry.gid = 4'000'000;
    entries[0].user = entries[0].group = "root";
  }
};

TEST_CASE("owner_names__a_name_that_is_known_here__its_number_also_for_later_entries") {
  Rig rig;
  CHECK_FALSE(rig.names.map(rig.files, rig.entries));
  for (const session::Entry& entry : rig.entries) {
    CHECK(entry.uid == 0);
    CHECK(entry.gid == 0);
  }
}

TEST_CASE("owner_names__nobody_has_it_here__keeps_its_number") {
  Rig rig;
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "owner_of_name" ? -ENOENT : 0; };
  CHECK_FALSE(rig.names.map(rig.files, rig.entries));
  CHECK(rig.entries[1].uid == 4'000'000);
  CHECK(rig.entries[1].gid == 4'000'000);
}

TEST_CASE("owner_names__no_room_for_more__each_entry_that_says_the_name_is_mapped") {
  Rig rig;
  OwnerNames names(1);
  session::Entry first = test::file("first", 1);
  first.uid = first.gid = 3'000'000;
  first.user = first.group = "root";
  rig.entries.insert(rig.entries.begin(), first);
  rig.entries[2].user = "root";
  CHECK_FALSE(names.map(rig.files, rig.entries));
  CHECK(rig.entries[0].uid == 0);
  CHECK(rig.entries[1].uid == 0);
  CHECK(rig.entries[1].gid == 0);
  CHECK(rig.entries[2].uid == 0);
  CHECK(rig.entries[2].gid == 4'000'000);  // it is not kept, and this entry does not say it
  std::vector<session::Entry> later = {first};
  later[0].user.clear();
  CHECK_FALSE(names.map(rig.files, later));
  CHECK(later[0].uid == 0);
}

// The number of another host may be anybody's here.
TEST_CASE("owner_names__a_lookup_fails__is_an_error_with_the_name") {
  const bool is_group = GENERATE(false, true);
  Rig rig;
  rig.entries[0].user = is_group ? "" : "some\nbody";
  rig.entries[0].group = is_group ? "project" : "";
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "owner_of_name" ? -EACCES : 0; };
  const auto error = rig.names.map(rig.files, rig.entries);
  REQUIRE(error);
  CHECK(error->kind == ErrorKind::file_io);
  CHECK(error->message.find(is_group ? "the group project: Permission denied" : "the user some%0Abody: Permission denied") !=
        std::string::npos);
}

}  // namespace
}  // namespace ccixfer::recv
