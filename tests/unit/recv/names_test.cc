// Paths that users type, and names that are reserved.
#include "app/recv/names.h"

#include <catch2/catch.hpp>

namespace ccixfer::recv {

TEST_CASE("names__typed_paths__made_relative_to_the_root") {
  CHECK(normalise_path("").value().empty());
  CHECK(normalise_path("/").value().empty());
  CHECK(normalise_path("/incoming//run42/./").value() == "incoming/run42");
  CHECK(normalise_path("a").value() == "a");
  CHECK(normalise_path("..a/b..").value() == "..a/b..");
}

TEST_CASE("names__paths_that_leave_the_root__refused") {
  for (const std::string& path :
       {std::string("../x"), std::string("a/../../x"), std::string("a/.."), std::string("/.."), std::string("x\0y", 3),
        std::string(".ccixfer"), std::string("/.ccixfer/ledger.db"), std::string(5000, 'a')}) {
    const auto normal = normalise_path(path);
    REQUIRE_FALSE(normal);
    CHECK(normal.error().kind == ErrorKind::not_authorised);
  }
}

TEST_CASE("names__reserved__staging_and_staged_beside") {
  CHECK(is_reserved_path(".ccixfer"));
  CHECK(is_reserved_path(".ccixfer/x"));
  CHECK(is_reserved_path("a/.ccixfer"));  // of a root below this one
  CHECK(is_reserved_path("a/.ccixfer/ledger.db"));
  CHECK(is_reserved_path(".CCIXfer"));  // the same on a file system that ignores case
  CHECK(is_reserved_path("a/.CciXFER/x"));
  CHECK(is_reserved_path(".Ccixfer.00.PART"));
  CHECK_FALSE(is_reserved_path("ccixfer"));
  CHECK_FALSE(is_reserved_path(".ccixfe"));
  CHECK_FALSE(is_reserved_path(".ccixfer.part"));
  CHECK_FALSE(is_reserved_path("a.ccixfer/b"));
  CHECK_FALSE(is_reserved_path(".ccixferx"));
  CHECK(is_reserved_path("a/" + staged_beside_name(path_key("a/b"))));
  CHECK(staged_name({1, 2}, 3) == "00000000000000020000000000000001-0000000000000003.part");
}

}  // namespace ccixfer::recv
