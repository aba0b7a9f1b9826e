// What --relative makes of the sources as they were typed.
#include "app/main/rule_words.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

Result<std::optional<Chosen>> relative(const std::vector<std::string>& sources) {
  SyncOptions sync;
  sync.relative = true;
  return chosen_of(sources, sync, false);
}

}  // namespace

// Where a part before it is a link, what the name leads to and what the text says are two places. rsync refuses the same names.
TEST_CASE("chosen_of__relative_with_dots_that_lead_upwards__is_refused_as_rsync_does") {
  for (const char* source : {"a/../b", "..", "b/..", "../x", "a/./../b", "./../a", "/a/../b", "b/./..", "b/../"}) {
    CAPTURE(source);
    const auto chosen = relative({"c", source});
    REQUIRE_FALSE(chosen);
    CHECK(chosen.error().kind == ErrorKind::usage);
    CHECK(chosen.error().message.find(std::string("--relative: ") + source) == 0);
  }
}

TEST_CASE("chosen_of__relative_with_dots_before_the_cut_or_in_a_name__is_what_is_behind_the_cut") {
  const auto chosen = relative({"a/../b/./c/..d/e..", "a/../b/./..."});
  REQUIRE(chosen);
  REQUIRE(*chosen);
  CHECK((*chosen)->top == "a/../b");
  CHECK((*chosen)->list.allows("c/..d/e..", false));
  CHECK((*chosen)->list.allows("...", false));
}
