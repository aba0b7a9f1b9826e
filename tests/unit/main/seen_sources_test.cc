// A source that another file has taken the place of is told once.
#include "app/main/seen_sources.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/host/file_system.h"
#include "tests/unit/recv/faulty_files.h"

using namespace ccixfer;
using namespace ccixfer::program;

TEST_CASE("seen_sources__one_that_another_takes_the_place_of__is_told_once") {
  const recv::test::TemporaryDirectory here;
  host::PosixFileSystem files;
  here.write("moved/f", "");
  here.write("kept/f", "");
  here.write("gone", "");
  SeenSources seen(files, {here.path("moved"), here.path("kept/"), here.path("gone"), here.path("none"), "-"});
  CHECK(seen.replaced().empty());
  std::filesystem::rename(here.path("moved"), here.path("old"));
  here.write("moved/f", "");
  here.write("kept/g", "");
  here.write("none", "");
  std::filesystem::remove(here.path("gone"));
  const auto words = seen.replaced();
  REQUIRE(words.size() == 1);
  CHECK(words[0] ==
        here.path("moved") + ": another one has taken its place since this command began, and cannot be read: run it again");
  CHECK(seen.replaced().empty());
}
