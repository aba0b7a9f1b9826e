// Names and numbers of users and groups, also once the account files are out of reach.
#include "core/host/accounts.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/host/temp_dir.h"

using namespace ccixfer;

TEST_CASE("accounts__root__by_name_and_by_number") {
  for (const bool is_group : {false, true}) {
    std::string name;
    uint32_t id = 7;
    REQUIRE(host::name_of_account(is_group, 0, name) == 0);
    CHECK(name == "root");
    CHECK(host::id_of_account(is_group, "root", id) == 0);
    CHECK(id == 0);
    CHECK(host::id_of_account(is_group, "no such account", id) == -ENOENT);
    CHECK(id == 0);
    CHECK(host::name_of_account(is_group, 2'147'000'000, name) == -ENOENT);
  }
}

// A group of many members needs room for all their names.
TEST_CASE("accounts__more_than_fits__is_asked_for_again_with_more_room") {
  std::vector<size_t> rooms;
  const auto needs = [&rooms](size_t bytes) {
    return [&rooms, bytes](std::vector<char>& room) {
      rooms.push_back(room.size());
      return room.size() < bytes ? ERANGE : 0;
    };
  };
  CHECK(host::look_up_with_room(needs(1)) == 0);
  CHECK(rooms.size() == 1);
  rooms.clear();
  CHECK(host::look_up_with_room(needs(1u << 20)) == 0);
  CHECK(rooms.back() >= 1u << 20);
  CHECK(rooms.size() > 2);
  rooms.clear();
  CHECK(host::look_up_with_room(needs(~size_t{0})) == ERANGE);
  CHECK(rooms.back() == host::account_bytes_max);
  CHECK(host::look_up_with_room([](std::vector<char>&) { return EIO; }) == EIO);
}

TEST_CASE("accounts__remembered__by_name_and_number_as_the_files_had_them") {
  const testing::TempDir dir;
  const std::string users = dir.path() + "/passwd", groups = dir.path() + "/group";
  std::ofstream(users)
      << "root:x:0:0:root:/root:/bin/bash\nbad line\nsome:x:not a number:0::\nann:x:1001:100:Ann:/home/ann:/bin/sh\n";
  std::ofstream(groups) << "wheel:x:10:ann,root\nempty:x:11:\ncut:x:12\ntoo:x:99999999999:\n";
  host::remember_accounts(users.c_str(), groups.c_str());
  uint32_t id = 7;
  std::string name;
  CHECK(host::remembered_id(false, "ann", id) == 0);
  CHECK(id == 1001);
  CHECK(host::remembered_id(true, "wheel", id) == 0);
  CHECK(id == 10);
  CHECK(host::remembered_name(true, 11, name) == 0);
  CHECK(name == "empty");
  CHECK(host::remembered_name(false, 0, name) == 0);
  CHECK(name == "root");
  for (const char* none : {"wheel", "some", "bad line", ""}) CHECK(host::remembered_id(false, none, id) == -ENOENT);
  for (const char* none : {"ann", "cut", "too"}) CHECK(host::remembered_id(true, none, id) == -ENOENT);
  CHECK(host::remembered_name(true, 12, name) == -ENOENT);
  CHECK(id == 10);
  CHECK(name == "root");
  host::remember_accounts("/nowhere", "/nowhere");
  CHECK(host::remembered_id(false, "ann", id) == -ENOENT);
}
