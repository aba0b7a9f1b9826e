// Verdicts and commits that other tests pass by: what stands there already, what a dry run says of it, and what fails on the way.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr timespec entry_times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 123'456'789}};

Entry as_leave(Entry entry) {
  entry.type = EntryType::leave;
  return entry;
}

}  // namespace

TEST_CASE("entries__link_with_another_target__replaced_and_the_same_one_stays") {
  Place place;
  CHECK(place.decide_one(link("l", "old")).verdict == Verdict::done);
  const auto inode = place.stat_of("l").st_ino;
  CHECK(place.decide_one(link("l", "old")).verdict == Verdict::done);
  CHECK(place.stat_of("l").st_ino == inode);
  CHECK(place.decide_one(link("l", "new")).verdict == Verdict::done);
  CHECK(std::filesystem::read_symlink(place.temporary.path("l")) == "new");
  CHECK(place.stat_of("l").st_mtim.tv_nsec == 123'456'789);
  CHECK(std::distance(std::filesystem::directory_iterator(place.temporary.path()), {}) == 2);  // and .ccixfer
}

// A link has a size and a time too: those of its target's name.
TEST_CASE("entries__link_with_the_size_and_time_of_the_file__is_not_that_file") {
  const bool by_content = GENERATE(false, true);
  Place place(archive_options | (by_content ? uint32_t{session::option_checksum} : 0));
  REQUIRE(::symlink("abc", place.temporary.path("f").c_str()) == 0);
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("f").c_str(), entry_times, AT_SYMLINK_NOFOLLOW) == 0);
  const Decision decision = place.decide_one(file("f", 3));
  REQUIRE(decision.verdict == Verdict::send);
  CHECK(place.deliver(decision.task, "xyz").outcome == CommitOutcome::ok);
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(place.temporary.path("f"))));
}

// What stands there already is looked for where something can stand: not in a directory that this run has just made.
TEST_CASE("entries__files_of_a_new_directory__are_not_looked_for") {
  const std::string how = GENERATE("new", "there", "made by another meanwhile", "left");
  CAPTURE(how);
  FaultyFiles files;
  Place place(archive_options, "", &files);
  size_t looks = 0;
  files.hook = [&](std::string_view call, std::string_view name) {
    if (call == "stat_at" && name == "f") ++looks;
    if (call != "mkdir_at" || how != "made by another meanwhile") return 0;
    std::filesystem::create_directory(place.temporary.path("d"));
    return -EEXIST;
  };
  if (how == "there") std::filesystem::create_directory(place.temporary.path("d"));
  REQUIRE(place.decide_one(directory("d")).verdict != Verdict::failed);
  if (how == "left") CHECK(place.decide_one(as_leave(directory("d"))).leave.has_value());
  place.temporary.write("d/f", "abc");
  ::chmod(place.temporary.path("d/f").c_str(), 0644);
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("d/f").c_str(), entry_times, AT_SYMLINK_NOFOLLOW) == 0);
  const Decision decision = place.decide_one(file("d/f", 3));
  if (how != "new") {
    CHECK(looks == 1);
    CHECK(decision.verdict == Verdict::unchanged);
    return;
  }
  CHECK(looks == 0);
  REQUIRE(decision.verdict == Verdict::send);
  CHECK(place.deliver(decision.task, "xyz").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("d/f") == "xyz");
}

TEST_CASE("entries__dry_run_over_what_is_there__tells_what_would_change_and_changes_nothing") {
  Place place(archive_options | session::option_dry_run);
  place.temporary.write("f", "abc");
  ::chmod(place.temporary.path("f").c_str(), 0644);
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("f").c_str(), entry_times, 0) == 0);
  std::filesystem::create_directory(place.temporary.path("d"));
  ::chmod(place.temporary.path("d").c_str(), 0755);
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("d").c_str(), entry_times, 0) == 0);
  REQUIRE(::symlink("abc", place.temporary.path("l").c_str()) == 0);
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("l").c_str(), entry_times, AT_SYMLINK_NOFOLLOW) == 0);
  SECTION("nothing") {
    CHECK(place.decide_one(file("f", 3)).verdict == Verdict::unchanged);
    CHECK(place.decide_one(directory("d")).verdict == Verdict::done);
    CHECK(place.decide_one(link("l", "abc")).verdict == Verdict::done);
  }
  SECTION("modes") {
    CHECK(place.decide_one(file("f", 3, 0600)).verdict == Verdict::change);
    CHECK(place.decide_one(directory("d", 0700)).verdict == Verdict::change);
  }
  SECTION("times") {
    Entry later = directory("d");
    ++later.mtime.seconds;
    CHECK(place.decide_one(later).verdict == Verdict::change);
    later = link("l", "abc");
    ++later.mtime.seconds;
    CHECK(place.decide_one(later).verdict == Verdict::change);
    later = file("f", 3);
    ++later.mtime.seconds;
    CHECK(place.decide_one(later).verdict == Verdict::send);
  }
  SECTION("owners") {
    Entry other = file("f", 3);
    ++other.gid;
    CHECK(place.decide_one(other).verdict == Verdict::change);
    other = directory("d");
    ++other.gid;
    CHECK(place.decide_one(other).verdict == Verdict::change);
  }
  SECTION("the root itself") {
    ::chmod(place.temporary.path().c_str(), 0755);
    REQUIRE(::utimensat(AT_FDCWD, place.temporary.path().c_str(), entry_times, 0) == 0);
    CHECK(place.decide_one(directory("")).verdict == Verdict::done);
    CHECK(place.decide_one(directory("", 0700)).verdict == Verdict::change);
  }
  SECTION("another target, another type") {
    CHECK(place.decide_one(link("l", "abd")).verdict == Verdict::make);
    CHECK(place.decide_one(link("f", "abd")).verdict == Verdict::make);
    CHECK(place.decide_one(directory("f")).verdict == Verdict::make);
  }
  CHECK((place.stat_of("f").st_mode & 07777u) == 0644);
  CHECK((place.stat_of("d").st_mode & 07777u) == 0755);
  CHECK(std::filesystem::read_symlink(place.temporary.path("l")) == "abc");
}

TEST_CASE("entries__directory_that_cannot_be_looked_at__fails_and_others_go_on") {
  FaultyFiles files;
  Place place(archive_options, "", &files);
  const bool there = GENERATE(false, true);
  if (there) std::filesystem::create_directory(place.temporary.path("d"));
  files.hook = [](std::string_view call, std::string_view name) {
    return call != "mkdir_at" && name == "d" && call != "stat_at" ? -EACCES : 0;
  };
  CHECK(place.decide_one(directory("d")).error_number == EACCES);
  CHECK(place.decide_one(directory("e")).verdict == Verdict::done);
  files.hook = nullptr;
}

TEST_CASE("entries__leave_of_a_directory_that_failed__nothing_of_ours") {
  Place place;
  place.temporary.write("other", "x");
  CHECK_FALSE(place.decide_one(as_leave(directory("other"))).leave.has_value());
  CHECK(place.decide_one(directory("d")).verdict == Verdict::done);
  CHECK_FALSE(place.decide_one(as_leave(directory("e"))).leave.has_value());
  CHECK(place.decide_one(as_leave(directory("d"))).leave.has_value());
}

// A file of a pack that does not get its name comes again whole, if at all.
TEST_CASE("commit__file_of_a_pack_that_fails__nothing_of_it_stays_staged") {
  Place place;
  ::mkdir(place.temporary.path("d").c_str(), 0755);
  const Decision decision = place.decide_one(file("d", 1));
  place.temporary.write("d/precious", "x");
  const CommitItem item = place.deliver(decision.task, "y");
  CHECK(item.outcome == CommitOutcome::failed);
  REQUIRE_FALSE(item.staged.empty());
  CHECK_FALSE(place.temporary.has(".ccixfer/" + item.staged));
}

// Where syncfs does not tell of what was lost, every directory on the way to the file is synced by itself, up to the root.
TEST_CASE("commit__syncfs_does_not_tell__each_directory_on_the_way_is_synced") {
  FaultyFiles files;
  Place place(archive_options, "", &files);
  place.root->opened()->syncfs_tells = false;
  const auto decided = place.decide({directory("a"), directory("a/b"), file("a/b/f", 1)});
  REQUIRE(decided.decisions.size() == 3);
  bool renamed = false;
  int after_rename = 0;
  int failing = 0;  // which of those that come after the rename
  files.hook = [&](std::string_view call, std::string_view) {
    renamed = renamed || call == "rename_at";
    return call == "fsync" && renamed && ++after_rename == failing ? -EIO : 0;
  };
  SECTION("all are") {
    CHECK(place.deliver(decided.decisions[2].task, "x").outcome == CommitOutcome::ok);
    CHECK(after_rename == 3);
  }
  SECTION("one fails: the name may be lost") {
    failing = GENERATE(1, 2, 3);
    CHECK(place.deliver(decided.decisions[2].task, "x").outcome == CommitOutcome::failed);
  }
  files.hook = nullptr;
}

// A file of a pack with a promise of what is in it.
TEST_CASE("packs__content_is_not_what_the_entry_promised__it_is_told_and_not_staged") {
  Place place;
  Entry entry = file("f", 3);
  entry.has_digest = true;
  entry.digest = session::file_digest({xxh3_128(as_bytes("abc"))});
  const Decision decision = place.decide_one(entry);
  std::vector<PackItem> items(2);
  for (PackItem& item : items) item.task = decision.task;
  items[0].content = as_bytes("abd");
  items[1].content = as_bytes("abc");
  stage_pack(*place.root->opened(), place.policy, *place.owner, items);
  CHECK(items[0].digest_differs);
  CHECK(items[0].staged.empty());
  CHECK_FALSE(items[1].digest_differs);
  CHECK_FALSE(items[1].staged.empty());
}

TEST_CASE("root__partial_file_and_nothing_delivered__the_ledger_outlives_the_process") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const Ledger::File partial{path_key("f"), 5};
  {
    const auto root = Root::open(files, temporary.path()).value();
    temporary.write(".ccixfer/" + staged_name(partial.key, partial.version), "x");
    REQUIRE(root->opened()->ledger->add({{partial, "f", {{0, {1, 2}}}}}));
  }
  const auto root = Root::open(files, temporary.path()).value();
  CHECK(root->opened()->ledger->all().value() == std::vector<Ledger::File>{partial});
}

}  // namespace ccixfer::recv
