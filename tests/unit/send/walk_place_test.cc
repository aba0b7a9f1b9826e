// Where the files stand that another process of a team has listed.
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <span>

#include "app/send/reader.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using send::Walk;
using send::WalkOptions;

WalkOptions of(std::vector<std::string> sources) {
  WalkOptions options;
  options.sources = std::move(sources);
  options.directory = options.sources.size() > 1;
  return options;
}

TEST_CASE("walk__listed_by_another__a_file_is_looked_for_in_each_source_that_may_have_it") {
  const TempDir dir;
  dir.file("one/x", "1");
  dir.file("two/one/x", "2");
  dir.file("two/y", "2");
  dir.file("y", "3");
  Walk walk(of({dir.path("one"), dir.path("two/"), dir.path("y")}));
  WatchedFiles files;
  REQUIRE(walk.select(files));
  REQUIRE(walk.open_roots(files));
  const auto content = [&](const std::string& path) {
    const int fd = send::open_place(files, walk.place(0, path)).fd;
    std::string text(1, ' ');
    if (fd < 0) return fmt::format("{}", fd);
    CHECK(files.pread(fd, std::as_writable_bytes(std::span(text)), 0) == 1);
    files.close(fd);
    return text;
  };
  CHECK(content("one/x") == "1");
  CHECK(walk.place(0, "one/x").others.size() == 1);
  dir.file("two/one/z", "2");
  CHECK(content("one/z") == "2");
  CHECK(content("y") == "2");
  REQUIRE(::unlink(dir.path("two/y").c_str()) == 0);
  CHECK(content("y") == "3");
  CHECK(walk.place(0, "y").others.size() == 1);
  CHECK(walk.place(0, "yy").others.empty());  // of two/ only
  walk.close(files);
  Walk files_only(of({dir.path("y"), dir.path("one/x")}));
  REQUIRE(files_only.select(files));
  REQUIRE(files_only.open_roots(files));
  CHECK(files_only.place(0, "x").name == dir.path("one/x"));
  CHECK(files_only.place(0, "y/x").name.empty());  // what another process names is no file of theirs
  CHECK(send::open_place(files, files_only.place(0, "z")).fd == -ENOENT);
  files_only.close(files);
  CHECK(files.open_now == 0);
}

// What was listed is a file, and a link that stands there by now is none of it.
TEST_CASE("walk__links_are_kept__no_link_in_the_place_of_a_listed_file_is_followed") {
  const TempDir dir;
  dir.file("d/f", "1");
  dir.file("secret", "2");
  std::filesystem::create_symlink("d", dir.path("l"));
  WatchedFiles files;
  const auto opens = [&](WalkOptions options, const std::string& path) {
    Walk walk(std::move(options));
    REQUIRE(walk.select(files));
    REQUIRE(walk.open_roots(files));
    std::filesystem::remove(dir.path("d/f"));
    std::filesystem::create_symlink("../secret", dir.path("d/f"));
    const int fd = send::open_place(files, walk.place(0, path)).fd;
    if (fd >= 0) files.close(fd);
    walk.close(files);
    std::filesystem::remove(dir.path("d/f"));
    dir.file("d/f", "1");
    CHECK(files.open_now == 0);
    return fd < 0 ? fd : 0;
  };
  for (const bool links : {true, false}) {
    CAPTURE(links);
    const int led = links ? -ELOOP : 0;
    WalkOptions tree = of({dir.path("d/")});
    tree.links = links;
    CHECK(opens(tree, "f") == led);
    WalkOptions listed = of({dir.path("")});
    listed.links = links;
    listed.list = filter::PathList();
    CHECK(opens(listed, "d/f") == led);
    CHECK(opens(listed, "l/f") == led);
    WalkOptions file = of({dir.path("d/f")});
    file.links = links;
    CHECK(opens(file, "") == led);
  }
}

}  // namespace
}  // namespace ccixfer::send_test
