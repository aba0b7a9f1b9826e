// Lists of names: what is sent of a name that is a link, and what is told of one that is below no directory.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/send/walk_lines.h"

namespace ccixfer::send_test {
namespace {

struct Tree {
  Tree() {
    dir.file("t/d/e/g", "");
    dir.file("t/d/f", "");
    dir.file("t/f", "");
    std::filesystem::create_symlink("d", dir.path("t/link"));
    std::filesystem::create_symlink("d/f", dir.path("t/lf"));
    std::filesystem::create_symlink("nowhere", dir.path("t/dang"));
  }
  [[nodiscard]] WalkOptions of_names(const std::vector<std::string>& names, bool whole = false) const {
    WalkOptions options = of({dir.path("t/")});
    options.list = filter::PathList(whole);
    for (const std::string& name : names) options.list->add(name);
    options.list->close();
    return options;
  }
  [[nodiscard]] Lines names(const std::vector<std::string>& names) const { return lines_of(of_names(names)); }
  [[nodiscard]] Lines trees(const std::vector<std::string>& names) const { return lines_of(of_names(names, true)); }
  const TempDir dir;
};

const Lines bare_link = {"link -> d"};

// What is expected here is what rsync -a sends for the same names.
TEST_CASE("walk__listed_link_with_a_slash__is_the_directory_that_it_leads_to") {
  const Tree tree;
  CHECK(tree.trees({"link/"}) == Lines{">link", ">link/e", "link/e/g", "<link/e", "link/f", "<link"});
  CHECK(tree.names({"link/"}) == Lines{">link", ">link/e", "<link/e", "link/f", "<link"});
  CHECK(tree.trees({"link"}) == bare_link);
  CHECK(tree.names({"link"}) == bare_link);
  for (const bool whole : {false, true}) {
    CHECK(lines_of(tree.of_names({"lf/"}, whole)) == Lines{"lf -> d/f"});
    CHECK(lines_of(tree.of_names({"dang/"}, whole)) == Lines{"dang -> nowhere"});
  }
}

TEST_CASE("walk__listed_link_with_a_name_below_it__is_a_directory_on_the_way") {
  const Tree tree;
  for (const bool whole : {false, true}) {
    CHECK(lines_of(tree.of_names({"link", "link/f"}, whole)) == Lines{">link", "link/f", "<link"});
    CHECK(lines_of(tree.of_names({"link/f"}, whole)) == Lines{">link", "link/f", "<link"});
  }
  CHECK(tree.names({"link", "link/e/"}) == Lines{">link", ">link/e", "link/e/g", "<link/e", "<link"});
}

// As to rsync, which looks at what is given and lists nothing on the way.
TEST_CASE("walk__directory_that_lets_nobody_list_it__leads_to_names_that_are_given") {
  const Tree tree;
  for (const bool whole : {false, true}) {
    Listing listing;
    listing.files.unlisted = {".", tree.dir.path("t/"), "d"};
    list(listing, tree.of_names({"d/e/g", "f"}, whole));
    CHECK(listing.lines == Lines{">d", ">d/e", "d/e/g", "<d/e", "<d", "f"});
  }
  Listing listed;
  listed.files.unlisted = {"d"};
  list(listed, tree.of_names({"d/"}));
  CHECK(listed.lines == Lines{">d", "! d: Permission denied", "<d"});
}

TEST_CASE("walk__served_directory_and_a_listed_link__it_is_not_followed") {
  const Tree tree;
  WatchedFiles files;
  ports::OpenFlags flags;
  flags.directory = true;
  const int served = files.open(ports::FileSystem::no_directory, tree.dir.path("t"), flags, 0);
  REQUIRE(served >= 0);
  WalkOptions options = tree.of_names({"link/", "link/f"});
  options.sources = {""};
  options.served_root = served;
  CHECK(lines_of(options) == Lines{"link -> d", "! link/f: Not a directory"});
  files.close(served);
}

// As rsync does it: names that are given below it are not what the rule excludes.
TEST_CASE("walk__listed_directory_that_rules_exclude__is_on_the_way_to_names_below_it") {
  const Tree tree;
  tree.dir.file("t/core/a/g", "");
  tree.dir.file("t/core/h", "");
  const auto sent = [&](const std::vector<std::string>& names, const std::string& rule) {
    WalkOptions options = tree.of_names(names);
    options.rules = rules_of({rule});
    return lines_of(options);
  };
  const Lines way = {">core", ">core/a", "core/a/g", "<core/a", "<core"};
  for (const std::string rule : {"- core", "- /core", "- core/"}) {
    CHECK(sent({"core", "core/a/g"}, rule) == way);
    CHECK(sent({"core/", "core/a/g"}, rule) == way);
    CHECK(sent({"core/a/g"}, rule) == way);
    CHECK(sent({"core", "core/a/"}, rule) == way);
    CHECK(sent({"core", "core/a"}, rule) == Lines{">core", ">core/a", "<core/a", "<core"});
    CHECK(sent({"core/"}, rule).empty());
  }
  CHECK(sent({"f", "f/x"}, "- f") == Lines{"! f/x: Not a directory"});
}

TEST_CASE("walk__names_below_what_is_no_directory__are_told_each") {
  const Tree tree;
  const std::string why = ": Not a directory";
  for (const bool whole : {false, true}) {
    CHECK(lines_of(tree.of_names({"f", "f/x", "f/y/z"}, whole)) == Lines{"f", "! f/x" + why, "! f/y/z" + why});
    CHECK(lines_of(tree.of_names({"f/x", "f/y/z"}, whole)) == Lines{"! f/x" + why, "! f/y/z" + why});
    CHECK(lines_of(tree.of_names({"lf", "lf/x"}, whole)) == Lines{"lf -> d/f", "! lf/x" + why});
    CHECK(lines_of(tree.of_names({"dang", "dang/x"}, whole)) == Lines{"dang -> nowhere", "! dang/x" + why});
  }
  CHECK(tree.names({"d/", "d/f/x"}) == Lines{">d", ">d/e", "<d/e", "! d/f/x" + why, "<d"});
}

// So what failed, asked for again, is what was asked for.
TEST_CASE("walk__names_below_what_is_not_there__are_told_each_and_no_directory_in_their_place") {
  const Tree tree;
  const std::string why = ": No such file or directory";
  for (const bool whole : {false, true}) {
    CHECK(lines_of(tree.of_names({"n/a", "n/b/c", "f"}, whole)) == Lines{"f", "! n/a" + why, "! n/b/c" + why});
    CHECK(lines_of(tree.of_names({"d/n/a", "d/n/b"}, whole)) == Lines{">d", "! d/n/a" + why, "! d/n/b" + why, "<d"});
    CHECK(lines_of(tree.of_names({"dang/x"}, whole)) == Lines{"! dang/x" + why});
    CHECK(lines_of(tree.of_names({"n", "n/a"}, whole)) == Lines{"! n" + why, "! n/a" + why});
  }
  CHECK(tree.names({"d/", "d/n/a", "d/n/b"}) == Lines{">d", ">d/e", "<d/e", "d/f", "! d/n/a" + why, "! d/n/b" + why, "<d"});
}

TEST_CASE("walk__names_below_what_cannot_be_opened__are_told_each") {
  const Tree tree;
  const std::string why = ": Permission denied";
  const auto listed = [&](const std::vector<std::string>& names, bool whole) {
    Listing listing;
    listing.files.hook = [](std::string_view call, std::string_view name) { return call == "open" && name == "d" ? -EACCES : 0; };
    list(listing, tree.of_names(names, whole));
    return listing.lines;
  };
  for (const bool whole : {false, true}) {
    CHECK(listed({"d/a", "d/e/g", "f"}, whole) == Lines{">d", "<d", "! d/a" + why, "! d/e/g" + why, "f"});
    CHECK(listed({"d/", "d/e/g"}, whole) == Lines{">d", "! d" + why, "<d", "! d/e/g" + why});
  }
}

TEST_CASE("walk__names_below_a_source_that_cannot_be_opened__are_told_each_and_no_source_in_their_place") {
  const Tree tree;
  const std::string why = ": Permission denied";
  const auto listed = [&](const std::vector<std::string>& names, bool whole) {
    Listing listing;
    listing.files.hook = [](std::string_view call, std::string_view name) { return call == "open" && name == "." ? -EACCES : 0; };
    list(listing, tree.of_names(names, whole));
    return listing.lines;
  };
  for (const bool whole : {false, true}) CHECK(listed({"d/a", "f"}, whole) == Lines{"! d/a" + why, "! f" + why});
  CHECK(listed({".", "d/a"}, true) == Lines{"! " + tree.dir.path("t/") + why, "! d/a" + why});
}

// Beyond the levels that are held open a directory is opened again.
TEST_CASE("walk__directory_of_listed_names_cannot_be_opened_again__they_are_told_each") {
  const Tree tree;
  std::string deep = "a";
  for (size_t i = 0; i < send::walk_descriptors_max; ++i) deep += "/b";
  tree.dir.file("t/" + deep + "/first", "");
  Listing listing;
  int opened = 0;
  listing.files.hook = [&](std::string_view call, std::string_view name) {
    return call == "open" && name == "a" && ++opened > 1 ? -EIO : 0;
  };
  list(listing, tree.of_names({deep + "/first", "a/x", "a/y/z", "f"}));
  const Lines last(listing.lines.end() - 4, listing.lines.end());
  CHECK(last == Lines{"<a", "! a/x: Input/output error", "! a/y/z: Input/output error", "f"});
  CHECK(std::count_if(listing.lines.begin(), listing.lines.end(), [](const std::string& line) { return line.starts_with("!"); }) ==
        2);
}

TEST_CASE("walk__many_names_below_what_is_no_directory__go_into_batches_as_all_does") {
  const Tree tree;
  std::vector<std::string> names;
  for (int i = 0; i < 3000; ++i) names.push_back("f/" + std::to_string(i));
  WalkOptions options = tree.of_names(names);
  options.batch_entries_max = 10;
  CHECK(lines_of(options).size() == 3000);  // list() looks at the size of each batch
}

}  // namespace
}  // namespace ccixfer::send_test
