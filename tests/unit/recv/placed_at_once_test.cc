// Links, devices and further names are placed when they are decided, under another name first. Two sessions that place the same one
// would share that name.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/recv/older_trees.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using namespace test;
using session::Verdict;

namespace {

Entry fifo(const std::string& path) {
  Entry entry = file(path, 0);
  entry.type = EntryType::special;
  entry.special = ports::SpecialKind::fifo;
  return entry;
}

struct TwoSessions : Place {
  TwoSessions() : Place(archive_options | session::option_specials) {}
  bool others_take() {
    const bool taken = root->opened()->claims.take(path_key("x"), other);
    if (taken) root->opened()->claims.release(path_key("x"), other);
    return taken;
  }
  std::shared_ptr<Owner> other = std::make_shared<Owner>();
};

}  // namespace

TEST_CASE("placed_at_once__another_session_is_at_it__one_is_told_and_what_stands_there_stays") {
  const Entry entry = GENERATE(link("x", "mine"), fifo("x"));
  TwoSessions test;
  REQUIRE(::symlink("theirs", test.temporary.path("x").c_str()) == 0);
  REQUIRE(test.root->opened()->claims.take(path_key("x"), test.other));
  const Decision refused = test.decide_one(entry);
  CHECK(refused.verdict == Verdict::failed);
  CHECK(refused.error_number == EBUSY);
  CHECK(std::filesystem::read_symlink(test.temporary.path("x")) == "theirs");
  test.root->opened()->claims.release(path_key("x"), test.other);
  CHECK(test.decide_one(entry).verdict == Verdict::done);
}

TEST_CASE("placed_at_once__while_it_is_placed__no_other_session_gets_the_path") {
  const Entry entry = GENERATE(link("x", "mine"), fifo("x"));
  TwoSessions test;
  size_t calls = 0;
  test.files.hook = [&](std::string_view call, std::string_view name) {
    if (call != "rename_at" || name != "x") return 0;
    ++calls;
    CHECK_FALSE(test.others_take());
    return 0;
  };
  CHECK(test.decide({entry, file("y", 1)}).decisions.at(0).verdict == Verdict::done);
  test.files.hook = nullptr;
  CHECK(calls == 1);
  CHECK(test.others_take());  // and then it is free
}

TEST_CASE("placed_at_once__what_is_there_already__is_nobodys_to_keep") {
  TwoSessions test;
  REQUIRE(test.decide_one(link("x", "same")).verdict == Verdict::done);
  REQUIRE(test.root->opened()->claims.take(path_key("x"), test.other));
  CHECK(test.decide_one(link("x", "same")).verdict == Verdict::done);
}

TEST_CASE("placed_at_once__a_file_of_an_older_tree_whose_path_is_anothers__is_not_linked") {
  TwoSessions test;
  test.temporary.write("old/x", "same");
  OlderTrees older(*test.root->opened(), {{"old"}});
  test.decider.set_aside(&older, nullptr);
  Entry entry = file("x", 4);
  const struct stat stat = test.stat_of("old/x");
  entry.mtime = {stat.st_mtim.tv_sec, static_cast<uint32_t>(stat.st_mtim.tv_nsec)};
  REQUIRE(test.root->opened()->claims.take(path_key("x"), test.other));
  const Decision refused = test.decide_one(entry);
  CHECK(refused.verdict == Verdict::failed);
  CHECK(refused.error_number == EBUSY);
  CHECK_FALSE(test.temporary.has("x"));
  test.root->opened()->claims.release(path_key("x"), test.other);
  CHECK(test.decide_one(entry).verdict == Verdict::unchanged);
}

}  // namespace ccixfer::recv
