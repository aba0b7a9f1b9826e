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

WalkOptions listed(const TempDir& dir, const std::vector<std::string>& names, bool whole) {
  WalkOptions options = of({dir.path("t/")});
  options.list = filter::PathList(whole);
  for (const std::string& name : names) options.list->add(name);
  options.list->close();
  return options;
}

TEST_CASE("walk__one_file_system__what_is_mounted_below_is_sent_alone") {
  const TempDir dir;
  for (const char* name : {"t/a/f", "t/m/f", "t/m/d/f", "t/z"}) dir.file(name, "");
  CHECK(lines_of(dir, of({dir.path("t/")}), {"t/m"}) == Lines{">", ">a", "a/f", "<a", ">m", "<m", "z", "<"});
  CHECK(lines_of(dir, of({dir.path("t/")}), {"t", "t/m"}) == Lines{">", ">a", "a/f", "<a", ">m", "<m", "z", "<"});
}

// As with rsync each name that is given has a file system of its own, whatever stands on the way to it.
TEST_CASE("walk__one_file_system_and_a_list__each_name_has_its_own") {
  const TempDir dir;
  for (const char* name : {"t/a/f", "t/m/x/f", "t/m/x/d/f", "t/m/x/n/f"}) dir.file(name, "");
  const std::vector<std::string> mounted = {"t/m", "t/m/x/n"};
  const Lines x = {">m", ">m/x", ">m/x/d", "m/x/d/f", "<m/x/d", "m/x/f", ">m/x/n", "<m/x/n", "<m/x", "<m"};
  CHECK(lines_of(dir, listed(dir, {"m/x"}, true), mounted) == x);
  CHECK(lines_of(dir, listed(dir, {"m"}, true), mounted) == x);
  CHECK(lines_of(dir, listed(dir, {"m/x/n", "m/x/f"}, true), mounted) ==
        Lines{">m", ">m/x", "m/x/f", ">m/x/n", "m/x/n/f", "<m/x/n", "<m/x", "<m"});
  CHECK(lines_of(dir, listed(dir, {"m/x/"}, false), mounted) ==
        Lines{">m", ">m/x", ">m/x/d", "<m/x/d", "m/x/f", ">m/x/n", "<m/x/n", "<m/x", "<m"});
  CHECK(lines_of(dir, listed(dir, {"m/x/", "m/x/n/f"}, false), mounted) ==
        Lines{">m", ">m/x", ">m/x/d", "<m/x/d", "m/x/f", ">m/x/n", "m/x/n/f", "<m/x/n", "<m/x", "<m"});
}

TEST_CASE("walk__one_file_system_and_a_name_below_a_mount_of_another_name__comes_too") {
  const TempDir dir;
  for (const char* name : {"t/a/f", "t/a/n/g", "t/a/n/k/f", "t/a/n/l/f"}) dir.file(name, "");
  CHECK(lines_of(dir, listed(dir, {"a", "a/n/k"}, true), {"t/a/n"}) ==
        Lines{">a", "a/f", ">a/n", ">a/n/k", "a/n/k/f", "<a/n/k", "<a/n", "<a"});
  CHECK(lines_of(dir, listed(dir, {".", "a/n/l", "a/n/g"}, true), {"t/a/n"}) ==
        Lines{">", ">a", "a/f", ">a/n", "a/n/g", ">a/n/l", "a/n/l/f", "<a/n/l", "<a/n", "<a", "<"});
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

TEST_CASE("walk__one_file_system_and_a_mount_in_an_earlier_source__later_ones_send_what_it_hides") {
  const TempDir dir;
  for (const char* name : {"a/sub/x", "a/sub/d/x", "b/sub/x", "b/sub/d/x", "c/sub/x"}) dir.file(name, "");
  const std::string in_b = "# sub/x: in several sources: the first is sent";
  const Lines of_b = {">sub", ">sub/d", "sub/d/x", "<sub/d", "sub/x", "<sub", ">sub", in_b, "<sub", "<"};
  Lines expected = {">", ">sub", "<sub"};
  expected.insert(expected.end(), of_b.begin(), of_b.end());
  CHECK(lines_of(dir, of({dir.path("a/"), dir.path("b/"), dir.path("c/")}), {"a/sub"}) == expected);
  // But one that is given is listed.
  CHECK(lines_of(dir, of({dir.path("a/sub"), dir.path("c/sub")}), {"a/sub"}) ==
        Lines{">sub", ">sub/d", "sub/d/x", "<sub/d", "sub/x", "<sub", ">sub", in_b, "<sub"});
}

}  // namespace
}  // namespace ccixfer::send_test
