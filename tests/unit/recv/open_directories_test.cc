// Directories of a walk that were begun and left.
#include "app/recv/open_directories.h"

#include <catch2/catch.hpp>

namespace ccixfer::recv {
namespace {

void enter(OpenDirectories& open, const std::string& path, uint64_t index) {
  OpenDirectories::Directory directory;
  directory.path = path;
  directory.index = index;
  open.enter(std::move(directory));
}

TEST_CASE("open_directories__directories_of_a_walk__are_left_once_with_their_attributes") {
  OpenDirectories open;
  enter(open, "", 1);
  enter(open, "a", 2);
  enter(open, "a/b", 3);
  CHECK(open.leave("a/b")->index == 3);
  CHECK_FALSE(open.leave("a/b"));
  CHECK(open.leave("a")->index == 2);
  CHECK(open.leave("")->index == 1);
  CHECK_FALSE(open.leave(""));
}

TEST_CASE("open_directories__directory_beside_one_that_was_not_left__closes_that_one") {
  OpenDirectories open;
  enter(open, "a", 1);
  enter(open, "a/b", 2);
  enter(open, "ab", 3);  // its name only begins like the other's
  CHECK_FALSE(open.leave("a/b"));
  CHECK_FALSE(open.leave("a"));
  CHECK(open.leave("ab")->index == 3);
  enter(open, "c", 4);
  enter(open, "c/d", 5);
  CHECK(open.leave("c")->index == 4);
  CHECK_FALSE(open.leave("c/d"));
}

TEST_CASE("open_directories__directory_made_in_its_place__is_new_while_the_walk_is_there") {
  OpenDirectories open;
  CHECK_FALSE(open.is_new("a"));
  open.enter({"a", 1, {}, true, false, 0, true});
  CHECK(open.is_new("a"));
  CHECK_FALSE(open.is_new(""));
  open.enter({"a/b", 2, {}, true, false, 0, false});  // another had made it
  CHECK_FALSE(open.is_new("a/b"));
  CHECK_FALSE(open.is_new("a"));
  CHECK(open.leave("a/b"));
  CHECK(open.is_new("a"));
}

}  // namespace
}  // namespace ccixfer::recv
