// --one-file-system: which directories another file system is mounted on, and what is listed there.
#include <catch2/catch.hpp>

#include "tests/unit/send/walk_lines.h"

namespace ccixfer::send_test {
namespace {

Lines lines_of(const TempDir& dir, WalkOptions options, const std::vector<std::string>& mounted) {
  options.one_file_system = true;
  Listing listing;
  for (const std::string& place : mounted) listing.files.mount(dir.path(place));
  list(listing, options);
  return listing.lines;
}

TEST_CASE("walk__one_file_system__what_is_mounted_below_is_sent_alone") {
  const TempDir dir;
  for (const char* name : {"t/a/f", "t/m/f", "t/m/d/f", "t/z"}) dir.file(name, "");
  CHECK(lines_of(dir, of({dir.path("t/")}), {"t/m"}) == Lines{">", ">a", "a/f", "<a", ">m", "<m", "z", "<"});
  CHECK(lines_of(dir, of({dir.path("t/")}), {"t", "t/m"}) == Lines{">", ">a", "a/f", "<a", ">m", "<m", "z", "<"});
}

// Directories of one name get the attributes of the first, but each stands where it stands.
TEST_CASE("walk__one_file_system_and_several_sources_on_different_ones__all_are_listed") {
  const TempDir dir;
  for (const char* name : {"a/sub/x", "b/sub/y", "b/sub/d/y", "c/sub/d/z"}) dir.file(name, "");
  const Lines merged = {">",     ">sub", "sub/x", "<sub",   ">sub",    ">sub/d", "sub/d/y", "<sub/d",
                        "sub/y", "<sub", ">sub",  ">sub/d", "sub/d/z", "<sub/d", "<sub",    "<"};
  CHECK(lines_of(dir, of({dir.path("a/"), dir.path("b/"), dir.path("c/")}), {"b"}) == merged);
  CHECK(lines_of(dir, of({dir.path("a/"), dir.path("b/"), dir.path("c/")}), {"a", "c"}) == merged);
  Lines named = merged;
  named.erase(named.begin());
  named.pop_back();
  CHECK(lines_of(dir, of({dir.path("a/sub"), dir.path("b/sub"), dir.path("c/sub")}), {"b/sub"}) == named);
}

}  // namespace
}  // namespace ccixfer::send_test
