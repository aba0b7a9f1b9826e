// Several sources that go into one directory: what each of them sends, and whose attributes it has.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/session/extended.h"
#include "app/session/messages.h"
#include "tests/unit/send/walk_lines.h"

namespace ccixfer::send_test {
namespace {

TEST_CASE("walk__name_that_rules_leave_out_of_an_earlier_source__is_sent_from_a_later_one") {
  const TempDir dir;
  for (const char* name : {"a/x", "a/y", "b/x", "b/y", "c/x"}) dir.file(name, "");
  const std::vector<std::string> sources = {dir.path("a/"), dir.path("b/"), dir.path("c/")};
  const std::string in_b = "# x: in several sources: the first is sent";
  SECTION("by a file of rules in it") {
    dir.file("a/.r", "- x\n");
    CHECK(lines_of(ruled(sources, {": .r", "- .r"})) ==
          Lines{">", "y", "x", "# y: in several sources: the first is sent", in_b, "<"});
  }
  SECTION("by its absolute name") {
    CHECK(lines_of(ruled(sources, {"-/ " + dir.path("a/x")})) ==
          Lines{">", "y", "x", "# y: in several sources: the first is sent", in_b, "<"});
  }
  SECTION("by name, and so from all of them") {
    CHECK(lines_of(ruled(sources, {"- x"})) == Lines{">", "y", "# y: in several sources: the first is sent", "<"});
  }
}

TEST_CASE("walk__one_of_several_sources_is_not_there__the_others_are_listed_and_it_has_failed") {
  const TempDir dir;
  for (const char* name : {"a/x", "b/y"}) dir.file(name, "");
  const std::string gone = dir.path("gone"), lost = dir.path("lost/");
  const std::vector<std::string> sources = {gone, dir.path("a/"), lost, dir.path("b")};
  CHECK(lines_of(of(sources)) == Lines{"! " + gone + ": No such file or directory", ">", "x",
                                       "! " + lost + ": No such file or directory", ">b", "b/y", "<b", "<"});
  Walk nothing(of({gone, lost}));
  WatchedFiles files;
  const auto selected = nothing.select(files);
  REQUIRE_FALSE(selected);
  CHECK(selected.error().kind == ErrorKind::source_selection);
  CHECK(selected.error().message == gone + ": No such file or directory");
}

TEST_CASE("walk__directory_that_rules_leave_out_of_an_earlier_source__is_the_later_ones") {
  const TempDir dir;
  for (const char* name : {"a/d/x", "a/e/x", "b/d/x", "b/d/y", "b/e"}) dir.file(name, "");
  dir.file("a/.r", "- d\n");
  const std::vector<std::string> sources = {dir.path("a/"), dir.path("b/")};
  CHECK(lines_of(ruled(sources, {": .r", "- .r", "- e/"})) == Lines{">", ">d", "d/x", "d/y", "<d", "e", "<"});
}

TEST_CASE("walk__rules_in_directories_of_earlier_sources__hold_below_them_only") {
  const TempDir dir;
  for (const char* name : {"a/s/t/k", "a/s/u/k", "a/k", "b/s/t/k", "b/s/u/k", "b/k"}) dir.file(name, "");
  dir.file("a/s/t/.r", "- k\n");
  CHECK(lines_of(ruled({dir.path("a/"), dir.path("b/")}, {": .r", "- .r"})) ==
        Lines{">", "k", ">s", ">s/t", "<s/t", ">s/u", "s/u/k", "<s/u", "<s", "# k: in several sources: the first is sent", ">s",
              ">s/t", "s/t/k", "<s/t", ">s/u", "# s/u/k: in several sources: the first is sent", "<s/u", "<s", "<"});
}

TEST_CASE("walk__sources_of_one_name_with_rules_in_the_first__send_what_it_leaves_out") {
  const TempDir dir;
  for (const char* name : {"a/s/x", "a/s/y", "b/s/x", "b/s/y", "c/s/x"}) dir.file(name, "");
  dir.file("a/s/.r", "- x\n");
  dir.file("b/s/.r", "+ x\n");
  CHECK(lines_of(ruled({dir.path("a/s"), dir.path("b/s"), dir.path("c/")}, {": .r", "- .r"})) ==
        Lines{">s", "s/y", "<s", ">s", "s/x", "# s/y: in several sources: the first is sent", "<s", ">", ">s",
              "# s/x: in several sources: the first is sent", "<s", "<"});
  // The first of them as a whole, too.
  CHECK(lines_of(ruled({dir.path("a/s"), dir.path("b/s")}, {"-/ " + dir.path("a/s")})) == Lines{">s", "s/.r", "s/x", "s/y", "<s"});
}

TEST_CASE("walk__file_that_rules_leave_out__takes_its_name_from_no_other_source") {
  const TempDir dir;
  for (const char* name : {"a/f", "b/f", "c/f"}) dir.file(name, "");
  CHECK(lines_of(ruled({dir.path("a/f"), dir.path("b/f"), dir.path("c/f")}, {"-/ " + dir.path("a/f")})) ==
        Lines{"f", "# f: named by several sources: the first is sent"});
  CHECK(lines_of(ruled({dir.path("a/f"), dir.path("b/"), dir.path("c/f")}, {"-/ " + dir.path("a/f")})) ==
        Lines{">", "f", "# f: in several sources: the first is sent", "<"});
}

// Its walk reads the same files and tells what is wrong with them.
TEST_CASE("walk__file_of_rules_of_an_earlier_source_goes_wrong__ends_the_walk") {
  const TempDir dir;
  for (const char* name : {"a/s/x", "b/s/x"}) dir.file(name, "");
  dir.file("a/s/.r", "- y\n");
  Walk walk(ruled({dir.path("a/"), dir.path("b/")}, {": .r"}));
  WatchedFiles files;
  REQUIRE(walk.select(files));
  WalkBatch batch;
  walk.step(files, batch, true);
  REQUIRE(batch.wants_root);
  dir.file("a/s/.r", "nonsense\n");
  batch = {};
  walk.step(files, batch, true);
  REQUIRE(batch.error);
  CHECK(batch.error->kind == ErrorKind::usage);
  walk.close(files);
  CHECK(files.open_now == 0);
}

TEST_CASE("walk__rules_of_an_earlier_source_cannot_be_looked_for__ends_the_walk") {
  const TempDir dir;
  for (const char* name : {"a/s/x", "b/s/x", "b/s/y"}) dir.file(name, "");
  dir.file("a/s/.r", "- y\n");
  const int error = GENERATE(-EIO, -ENOENT);
  Walk walk(ruled({dir.path("a/"), dir.path("b/")}, {": .r", "- .r"}));
  WatchedFiles files;
  REQUIRE(walk.select(files));
  WalkBatch batch;
  walk.step(files, batch, true);
  REQUIRE(batch.wants_root);
  bool is_earlier = false;
  files.hook = [&](std::string_view what, std::string_view name) {
    const bool fails = is_earlier && what == "open" && name == "s";
    is_earlier = what == "open" && name == dir.path("a/");
    return fails ? error : 0;
  };
  batch = {};
  walk.step(files, batch, true);
  CHECK(batch.error.has_value() == (error == -EIO));
  if (batch.error) CHECK(batch.error->kind == ErrorKind::file_io);
  walk.close(files);
  CHECK(files.open_now == 0);
}

// An error of one moment is no word on what is there: the file of a later source would take the place of the first one's.
TEST_CASE("walk__earlier_source_cannot_be_looked_at__the_name_fails_and_no_later_file_is_sent") {
  const TempDir dir;
  for (const char* name : {"a/d/f", "b/d/f", "b/d/g", "b/e"}) dir.file(name, "");
  const int error = GENERATE(-EIO, -EMFILE, -ENOMEM, -ESTALE, -EACCES);
  const std::string call = GENERATE("open", "stat_at");
  CAPTURE(error, call);
  Listing listing;
  bool is_second = false;  // the first source is listed
  bool is_earlier = false;
  listing.files.hook = [&](std::string_view what, std::string_view name) {
    // The look at the earlier source, and not the one at the name itself.
    if (what == "open" && name == dir.path("a/")) is_earlier = is_second;
    if (what == "stat_at" && name == "d") is_earlier = false;
    if (!is_earlier || what != call || name != (call == "open" ? "d" : "f")) return 0;
    is_earlier = false;
    return error;
  };
  Walk walk(of({dir.path("a/"), dir.path("b/")}));
  REQUIRE(walk.select(listing.files));
  for (WalkBatch batch; !batch.done;) {
    batch = {};
    walk.step(listing.files, batch, true);
    for (const WalkRecord& record : batch.records) {
      listing.lines.push_back(line_of(batch, record));
      is_second = is_second || listing.lines.back() == "<d";
    }
  }
  walk.close(listing.files);
  CHECK(listing.files.open_now == 0);
  CAPTURE(listing.lines);
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), "d/f") == 1);
  const std::string failed = "! d/f: an earlier source cannot be looked at: " + std::generic_category().message(-error);
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), failed) == 1);
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), "d/g") == (call == "open" ? 0 : 1));
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), "e") == 1);
}

// As their modes and times, of which walk_test.cc tells.
TEST_CASE("walk__directories_of_one_name_in_several_sources__have_the_attributes_of_the_first") {
  const TempDir dir;
  for (const char* name : {"a/x", "b/sub/y", "c/sub/deep/z", "d/sub/deep/z"}) dir.file(name, "");
  const bool is_named = GENERATE(false, true);
  WalkOptions options =
      of({dir.path("a/"), dir.path(is_named ? "b/sub" : "b/"), dir.path(is_named ? "c/sub" : "c/"), dir.path("d/")});
  options.links = GENERATE(true, false);
  options.details.extended = session::option_xattrs;
  WatchedFiles files;
  for (const char* name : {"b/sub", "c/sub", "c/sub/deep", "d/sub", "d/sub/deep"}) {
    ports::FileStat stat;
    REQUIRE(files.stat_at(ports::FileSystem::no_directory, dir.path(name), stat, false) == 0);
    files.remarks[stat.inode] = name;
  }
  Walk walk(options);
  REQUIRE(walk.select(files));
  Lines told;
  for (WalkBatch batch; !batch.done;) {
    batch = {};
    walk.step(files, batch, true);
    for (const WalkRecord& record : batch.records) {
      if (record.type != EntryType::directory || batch.path(record).empty()) continue;
      std::vector<session::ExtendedAttribute> attributes;
      REQUIRE(session::decode_extended(as_bytes(batch.extended(record)), attributes));
      REQUIRE(attributes.size() == 1);
      told.push_back(std::string(batch.path(record)) + " " + attributes.front().value);
    }
  }
  walk.close(files);
  CHECK(told == Lines{"sub b/sub", "sub b/sub", "sub/deep c/sub/deep", "sub b/sub", "sub/deep c/sub/deep"});
  CHECK(files.open_now == 0);
}

TEST_CASE("walk__first_of_several_directories_cannot_be_opened_for_its_attributes__fails") {
  const TempDir dir;
  for (const char* name : {"a/s/x", "b/s/y"}) dir.file(name, "");
  WalkOptions options = of({dir.path("a/"), dir.path("b/")});
  options.details.extended = session::option_acls;
  Walk walk(options);
  WatchedFiles files;
  bool is_earlier = false;
  int looks = 0;
  files.hook = [&](std::string_view what, std::string_view name) {
    const bool fails = is_earlier && what == "open" && name == "s";
    is_earlier = what == "open" && name == dir.path("a/");
    looks += fails ? 1 : 0;
    return fails ? -EIO : 0;
  };
  REQUIRE(walk.select(files));
  Lines lines;
  for (WalkBatch batch; !batch.done;) {
    batch = {};
    walk.step(files, batch, true);
    for (const WalkRecord& record : batch.records) lines.push_back(line_of(batch, record));
  }
  walk.close(files);
  CHECK(looks > 0);
  CHECK(std::count(lines.begin(), lines.end(), "! s: its extended attributes cannot be read: Input/output error") == 1);
}

TEST_CASE("walk__served_link_with_a_slash_behind__is_the_directory_where_that_may_be_served") {
  const TempDir dir;
  for (const char* name : {"served/pub/d/x", "served/pub/e/f/y", "served/other/z", "outside/secret"}) dir.file(name, "");
  const auto link = [&](const char* name, const std::string& target) {
    std::filesystem::create_symlink(target, dir.path("served/pub/" + std::string(name)));
  };
  link("to-d", "d");
  link("again", "./to-d/");
  link("inner", "../pub/e/f");
  link("through", "around/f");
  link("around", "e");
  link("other", "../other");
  link("peeps", "../other/../pub/d");
  link("up", ".");
  link("loop", "loop");
  link("absolute", dir.path("served/pub/d"));
  link("out", "../../outside");
  link("file", "d/x");
  link("nowhere", "none");
  const int served = ::open(dir.path("served").c_str(), O_RDONLY | O_DIRECTORY);
  const bool links = GENERATE(true, false);
  const auto served_as = [&](const std::string& name, const std::string& granted) -> Lines {
    WalkOptions options = of({"pub/" + name});
    options.served_root = served;
    options.links = links;
    if (!granted.empty())
      options.may_be_served = [granted](std::string_view path) { return path == granted || path.starts_with(granted + "/"); };
    WatchedFiles files;
    if (auto selected = Walk(options).select(files); !selected) return {std::string(error_row(selected.error().kind).name)};
    return lines_of(options);
  };
  const Lines d{">", "x", "<"}, y{">", "y", "<"}, refused{"not_authorised"};
  for (const char* granted : {"", "pub"}) {
    for (const char* name : {"to-d/", "again/", "to-d/."}) CHECK(served_as(name, granted) == d);
    for (const char* name : {"inner/", "through/"}) CHECK(served_as(name, granted) == y);
    for (const char* name : {"loop/", "absolute/", "out/"}) CHECK(served_as(name, granted) == refused);
  }
  CHECK(served_as("other/", "") == Lines{">", "z", "<"});
  CHECK(served_as("peeps/", "") == d);
  for (const char* name : {"other/", "peeps/"}) CHECK(served_as(name, "pub") == refused);  // nor is it told what is there
  CHECK(served_as("to-d/", "pub/to-d") == refused);
  CHECK(served_as("up/", "pub/up") == refused);
  const Lines no_directory{"source_selection"};
  CHECK(served_as("to-d", "") == (links ? Lines{" -> d"} : no_directory));
  CHECK(served_as("file/", "") == (links ? Lines{" -> d/x"} : no_directory));
  CHECK(served_as("nowhere/", "") == (links ? Lines{" -> none"} : no_directory));
  ::close(served);
}

}  // namespace
}  // namespace ccixfer::send_test
