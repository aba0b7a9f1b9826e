// What --relative makes of the sources as they were typed, and files of rules above them.
#include "app/main/rule_words.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/host/file_system.h"
#include "tests/unit/host/temp_dir.h"

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

// What is to be left out would be sent, or deleted.
TEST_CASE("add_rules_above__file_of_rules_that_cannot_be_read__is_told_by_its_directory") {
  const testing::TempDir dir;
  std::filesystem::create_directories(dir.path() + "/par/src");
  const auto read = [&] {
    filter::Rules rules = *read_rules({{RuleWord::Kind::filter_files, ""}}, {}, false);
    host::PosixFileSystem files;
    const auto added = add_rules_above(files, rules, (dir.path() + "/par/src").substr(1));
    return added ? std::to_string(rules.above.size()) : added.error().message;
  };
  CHECK(read() == "0");
  std::ofstream(dir.path() + "/par/.rsync-filter") << "- *.secret";
  CHECK(read() == "1");
  std::ofstream(dir.path() + "/par/.rsync-filter") << std::string((1u << 20) + 1, '#');
  CHECK(read() == "in " + dir.path() + "/par: cannot read the filter file: .rsync-filter: it has more than 1 MiB");
}

TEST_CASE("chosen_of__relative_with_dots_before_the_cut_or_in_a_name__is_what_is_behind_the_cut") {
  const auto chosen = relative({"a/../b/./c/..d/e..", "a/../b/./..."});
  REQUIRE(chosen);
  REQUIRE(*chosen);
  CHECK((*chosen)->top == "a/../b");
  CHECK((*chosen)->list.allows("c/..d/e..", false));
  CHECK((*chosen)->list.allows("...", false));
}
