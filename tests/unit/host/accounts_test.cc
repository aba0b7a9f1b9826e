#include "core/host/accounts.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

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
