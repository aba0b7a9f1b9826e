// --delete at the destination: what goes, and above all what stays.
#include "app/recv/deletions.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "app/filter/rules.h"
#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv::test {
namespace {

using Names = std::vector<std::string>;

struct Deleting {
  explicit Deleting(DeleteWish wish = {}, uint32_t options = archive_options, uint64_t already = 0, bool keeps_backups = false,
                    const std::optional<SidePlace>& kept = std::nullopt)
      : place(options),
        backups(*place.root->opened(), place.policy, Aside::Backup{kept, kept ? "" : "~"}, "", *place.owner),
        deletions(*place.root->opened(), *place.directories, place.policy, *place.owner, keeps_backups ? &backups : nullptr,
                  std::move(wish), "", kept ? kept->path : "", already) {}

  void has(const std::string& path) {
    const std::filesystem::path whole = place.temporary.path(path);
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << "old";
  }
  [[nodiscard]] bool is_there(const std::string& path) const {
    struct stat stat {};
    return ::lstat(place.temporary.path(path).c_str(), &stat) == 0;
  }
  // What the source has, in its order.
  void listed(const Entry& entry) {
    const Decision decision = place.decide_one(entry);
    deletions.note(entry, decision.path);
  }
  void left(const std::string& path, bool is_whole, const Names& left_out = {}) {
    Entry entry = directory(path);
    entry.type = EntryType::leave;
    entry.is_whole = is_whole;
    entry.left_out = left_out;
    deletions.note(entry, path);
  }
  // All of it; the paths that went, sorted.
  Names run() {
    Names gone;
    for (bool over = false; !over;) {
      DeleteStep step = deletions.step(false);
      REQUIRE_FALSE(step.fatal.has_value());
      for (const Deleted& one : step.deleted) gone.push_back(one.path + (one.is_directory ? "/" : ""));
      failed += step.failed;
      failures.insert(failures.end(), step.failures.begin(), step.failures.end());
      warnings.insert(warnings.end(), step.warnings.begin(), step.warnings.end());
      skipped += step.skipped;
      over = step.over;
    }
    std::sort(gone.begin(), gone.end());
    return gone;
  }

  Place place;
  Backups backups;
  Deletions deletions;
  uint64_t failed = 0, skipped = 0;
  Names failures, warnings;
};

DeleteWish sparing(const char* pattern) {
  DeleteWish wish;
  filter::RulesBuilder rules([](const std::string&) { return Result<std::string>(""); }, false, false);
  REQUIRE(rules.add_pattern(pattern, false).has_value());
  wish.rules = rules.take();
  return wish;
}

// -F: the files .rules of the directories.
DeleteWish asking_directories() {
  DeleteWish wish;
  filter::RulesBuilder rules([](const std::string&) { return Result<std::string>(""); }, false, false);
  REQUIRE(rules.add_filter(": /.rules").has_value());
  wish.rules = rules.take();
  return wish;
}

DeleteWish at_most(uint64_t max) {
  DeleteWish wish;
  wish.max = max;
  return wish;
}

}  // namespace

TEST_CASE("deletions__what_the_source_does_not_have_goes__and_nothing_else") {
  Deleting test;
  for (const char* path : {"kept", "old", "d/kept", "d/old", "gone/a", "gone/b/c"}) test.has(path);
  test.listed(directory(""));
  test.listed(directory("d"));
  test.listed(file("d/kept", 3));
  test.left("d", true);
  test.listed(file("kept", 3));
  test.left("", true);
  CHECK(test.run() == Names{"d/old", "gone/", "gone/a", "gone/b/", "gone/b/c", "old"});
  CHECK(test.is_there("kept"));
  CHECK(test.is_there("d/kept"));
  CHECK(test.is_there(".ccixfer"));
  CHECK_FALSE(test.is_there("gone"));
  CHECK(test.failed == 0);
}

TEST_CASE("deletions__a_directory_that_was_not_listed_in_full__keeps_all_that_it_has") {
  Deleting test;
  for (const char* path : {"old", "d/old", "d/deep/old"}) test.has(path);
  test.listed(directory(""));
  test.listed(directory("d"));
  test.left("d", false);
  test.left("", true);
  CHECK(test.run() == Names{"old"});
  CHECK(test.is_there("d/deep/old"));
}

TEST_CASE("deletions__names_that_the_source_left_out__stay") {
  Deleting test;
  for (const char* path : {"pipe", "old", "unreadable/x"}) test.has(path);
  test.listed(directory(""));
  test.left("", true, {"pipe", "unreadable"});
  CHECK(test.run() == Names{"old"});
  CHECK(test.is_there("unreadable/x"));
}

TEST_CASE("deletions__a_limit__holds_for_all_sessions_together_and_the_rest_is_counted") {
  const uint64_t already = GENERATE(uint64_t{0}, uint64_t{2}, uint64_t{3}, uint64_t{7});
  Deleting test(at_most(3), archive_options, already);
  for (const char* path : {"a", "b", "c", "d/e"}) test.has(path);
  test.listed(directory(""));
  test.left("", true);
  const Names gone = test.run();
  CHECK(gone.size() == (already < 3 ? size_t{3} - already : size_t{0}));
  CHECK(test.skipped > 0);
  size_t there = 0;
  for (const char* path : {"a", "b", "c", "d", "d/e"}) there += test.is_there(path) ? 1u : 0u;
  CHECK(there == 5 - gone.size());
}

TEST_CASE("deletions__what_the_rules_exclude__stays_with_the_directories_that_it_is_in") {
  Deleting test(sparing("*.log"));
  for (const char* path : {"old", "a.log", "d/b.log", "d/old", "e/old"}) test.has(path);
  test.listed(directory(""));
  test.left("", true);
  CHECK(test.run() == Names{"d/old", "e/", "e/old", "old"});
  CHECK(test.is_there("a.log"));
  CHECK(test.is_there("d/b.log"));
}

TEST_CASE("deletions__a_link_to_a_directory__goes_and_not_what_it_leads_to") {
  Deleting test;
  test.has("kept/file");
  std::filesystem::create_directory_symlink(test.place.temporary.path("kept"), test.place.temporary.path("link"));
  test.listed(directory(""));
  test.listed(directory("kept"));
  test.listed(file("kept/file", 3));
  test.left("kept", true);
  test.left("", true);
  CHECK(test.run() == Names{"link"});
  CHECK(test.is_there("kept/file"));
}

TEST_CASE("deletions__a_dry_run__tells_the_same_and_touches_nothing") {
  Deleting test({}, archive_options | session::option_dry_run);
  for (const char* path : {"old", "gone/a"}) test.has(path);
  test.listed(directory(""));
  test.left("", true);
  CHECK(test.run() == Names{"gone/", "gone/a", "old"});
  CHECK(test.is_there("old"));
  CHECK(test.is_there("gone/a"));
}

TEST_CASE("deletions__the_source_is_away__nothing_goes_until_it_is_back") {
  Deleting test;
  for (const char* path : {"kept", "old", "older"}) test.has(path);
  test.listed(directory(""));
  test.listed(file("kept", 3));
  test.left("", true);
  test.place.owner->link_dead.store(true);
  const DeleteStep step = test.deletions.step(false);
  CHECK(step.deleted.empty());
  CHECK_FALSE(step.over);
  CHECK(test.is_there("old"));
  test.place.owner->link_dead.store(false);
  CHECK(test.run() == Names{"old", "older"});
}

TEST_CASE("deletions__room_is_made_for_a_file__not_of_another_file_system_that_is_mounted_there") {
  const bool is_mounted = GENERATE(true, false);
  Deleting test;
  test.has("data/precious");
  if (is_mounted) test.place.files.mounted_inode = test.place.stat_of("data").st_ino;
  test.place.owner->link_dead.store(true);  // what is decided is not asked again
  CHECK(test.deletions.make_room("data") == (is_mounted ? -EBUSY : 0));
  CHECK(test.is_there("data/precious") == is_mounted);
}

TEST_CASE("deletions__a_file_whose_backup_has_no_place__stays_and_that_is_told") {
  Deleting test(sparing("*~"), archive_options, 0, true);
  for (const char* path : {"gone", "gone~/full", "other"}) test.has(path);
  test.listed(directory(""));
  test.left("", true);
  CHECK(test.run() == Names{"other"});
  CHECK(test.is_there("gone"));
  CHECK(test.is_there("other~"));
  CHECK(test.failed == 1);
  REQUIRE(test.failures.size() == 1);
  CHECK(test.failures[0].find("where its backup belongs") != std::string::npos);
}

TEST_CASE("deletions__no_room_for_a_backup__the_session_ends_for_want_of_space_and_the_file_stays") {
  const int error = GENERATE(ENOSPC, EDQUOT);
  const bool makes_room = GENERATE(true, false);
  Deleting test({}, archive_options, 0, true);
  for (const char* path : {"d/gone", "d/other"}) test.has(path);
  test.listed(directory(""));
  test.left("", true);
  test.place.files.hook = [error](std::string_view call, std::string_view) {
    return call == "link_at" || call == "rename_at" ? -error : 0;
  };
  if (makes_room) {
    CHECK(test.deletions.make_room("d") == -error);
  } else {
    const DeleteStep step = test.deletions.step(false);
    REQUIRE(step.fatal.has_value());
    CHECK(step.fatal->kind == ErrorKind::no_space);
    CHECK(step.deleted.empty());
  }
  test.place.files.hook = nullptr;
  CHECK(test.is_there("d/gone"));
  CHECK(test.is_there("d/other"));
}

TEST_CASE("deletions__no_room_for_a_backup_of_what_makes_room__the_session_ends_for_want_of_space") {
  const EntryType type = GENERATE(EntryType::file, EntryType::symlink, EntryType::special);
  const bool is_linked = type == EntryType::file && GENERATE(true, false);
  Deleting test({}, archive_options | session::option_specials | session::option_hard_links, 0, true);
  test.place.policy.devices = true;
  test.has("d/gone");
  test.place.decider.set_aside(nullptr, &test.backups);
  test.place.decider.set_deletions(&test.deletions);
  Entry entry = type == EntryType::symlink ? link("d", "there") : file("d", 3);
  entry.type = type;
  entry.special = ports::SpecialKind::fifo;
  entry.is_linked = is_linked;
  if (is_linked) {
    entry.linked_to = "first";
    test.place.decide_one(file("first", 3));
  }
  test.place.files.hook = [](std::string_view call, std::string_view name) {
    return (call == "link_at" || call == "rename_at") && name == "gone~" ? -ENOSPC : 0;
  };
  const DecidedEntries decided = test.place.decide({entry});
  test.place.files.hook = nullptr;
  REQUIRE(decided.fatal.has_value());
  CHECK(decided.fatal->kind == ErrorKind::no_space);
  CHECK(test.is_there("d/gone"));
}

// What the run before had kept is in a directory with that mode, too.
TEST_CASE("deletions__in_read_only_directories_with_a_backup_directory__all_is_kept_and_the_modes_are_as_before") {
  const NotRoot account;
  const bool were_kept_before = GENERATE(true, false);
  const bool has_spared = GENERATE(true, false);
  Deleting test(sparing("*.log"), archive_options, 0, true, SidePlace{"kept"});
  for (const char* path : {"d/old", "d/in/old", "d/gone/old"}) test.has(path);
  if (has_spared) test.has("d/gone/a.log");
  if (were_kept_before) test.has("kept/d/before");
  test.listed(directory(""));
  test.listed(directory("d"));
  test.listed(directory("d/in"));
  test.left("d/in", true);
  test.left("d", true);
  test.left("", true);
  std::vector<std::string> read_only{"d/gone", "d/in", "d"};
  if (were_kept_before) read_only.emplace_back("kept/d");
  for (const std::string& path : read_only) REQUIRE(::chmod(test.place.temporary.path(path).c_str(), 0555) == 0);
  const Names gone = test.run();
  CHECK(gone == (has_spared ? Names{"d/gone/old", "d/in/old", "d/old"} : Names{"d/gone/", "d/gone/old", "d/in/old", "d/old"}));
  CHECK(test.failed == 0);
  for (const char* path : {"kept/d/old", "kept/d/in/old", "kept/d/gone/old"}) CHECK(test.is_there(path));
  for (const char* path : {"d", "d/in", "d/gone", "kept/d", "kept/d/in", "kept/d/gone"}) {
    INFO(path);
    if (path == std::string("d/gone") && !has_spared) continue;
    CHECK((test.place.stat_of(path).st_mode & 07777u) == 0555u);
  }
  for (const char* path : {"d", "kept/d", "d/in", "d/gone", "kept/d/in", "kept/d/gone"})
    ::chmod(test.place.temporary.path(path).c_str(), 0755);
}

TEST_CASE("deletions__a_name_without_room_for_the_suffix_of_backups__stays_and_a_dry_run_says_so") {
  for (const uint32_t mode : {0u, uint32_t{session::option_dry_run}}) {
    Deleting test({}, archive_options | mode, 0, true);
    const std::string longest(255, 'n');
    for (const std::string& path : {longest, longest.substr(1), longest.substr(1) + "~"}) test.has(path);
    test.listed(directory(""));
    test.left("", true);
    CHECK(test.run() == Names{longest.substr(1), longest.substr(1) + "~"});
    CHECK(test.is_there(longest));
    CHECK(test.failed == 1);
    CHECK(test.failures.size() == 1);
  }
}

// Another process takes the name of the backup again and again, where nothing can be renamed to it.
TEST_CASE("deletions__the_name_of_the_backup_is_taken_each_time__the_file_stays_and_that_is_told") {
  Deleting test({}, archive_options, 0, true);
  test.has("gone");
  test.listed(directory(""));
  test.left("", true);
  test.place.files.hook = [](std::string_view call, std::string_view name) {
    if (call == "rename_at") return -EXDEV;
    return call == "link_at" ? -EEXIST : call == "unlink_at" && name == "gone~" ? 1 : 0;
  };
  CHECK(test.run().empty());
  test.place.files.hook = nullptr;
  CHECK(test.is_there("gone"));
  CHECK(test.failed == 1);
}

TEST_CASE("deletions__case_is_ignored__the_spelling_that_was_there_before_stays") {
  Deleting test;
  test.place.root->opened()->ignores_case = true;
  for (const char* path : {"README", "B\xc3\x84", "old"}) test.has(path);
  test.listed(directory(""));
  test.listed(file("Readme", 3));
  test.listed(file("b\xc3\xa4", 3));
  test.left("", true);
  CHECK(test.run() == Names{"old"});
}

// What the rules of the directory above say of it is not known.
TEST_CASE("deletions__rules_that_may_not_be_read__what_they_hold_for_stays_and_all_else_goes") {
  const NotRoot account;
  Deleting test(asking_directories());
  for (const char* path : {"shut/in/old", "z/old"}) test.has(path);
  for (const char* path : {"", "shut", "shut/in", "z"}) test.listed(directory(path));
  for (const char* path : {"shut/in", "z", ""}) test.left(path, true);
  test.left("shut", false);
  const std::string shut = test.place.temporary.path("shut");
  REQUIRE(::chmod(shut.c_str(), 0311) == 0);
  CHECK(test.run() == Names{"z/old"});
  CHECK(test.failed == 1);
  REQUIRE(::chmod(shut.c_str(), 0755) == 0);
  CHECK(test.is_there("shut/in/old"));
}

// What is left of it has the mode that it had.
TEST_CASE("deletions__a_directory_that_goes_is_locked__what_is_in_it_goes_but_for_what_the_rules_spare") {
  const NotRoot account;
  const mode_t mode = GENERATE(0600u, 0300u, 0u);
  const bool has_spared = GENERATE(true, false);
  Deleting test(sparing("*.log"));
  test.has("gone/old");
  if (has_spared) test.has("gone/a.log");
  test.listed(directory(""));
  test.left("", true);
  REQUIRE(::chmod(test.place.temporary.path("gone").c_str(), mode) == 0);
  CHECK(test.run() == (has_spared ? Names{"gone/old"} : Names{"gone/", "gone/old"}));
  CHECK(test.failed == 0);
  if (!has_spared) return;
  CHECK((test.place.stat_of("gone").st_mode & 07777u) == mode);
  REQUIRE(::chmod(test.place.temporary.path("gone").c_str(), 0700) == 0);
  CHECK(test.is_there("gone/a.log"));
}

TEST_CASE("deletions__a_dry_run_meets_locked_directories__it_says_so_and_nothing_failed") {
  const NotRoot account;
  const mode_t mode = GENERATE(0600u, 0300u, 0u);
  Deleting test({}, archive_options | session::option_dry_run);
  for (const char* path : {"d/in/old", "gone/old", "old"}) test.has(path);
  for (const char* path : {"d", "gone"}) REQUIRE(::chmod(test.place.temporary.path(path).c_str(), mode) == 0);
  for (const char* path : {"", "d", "d/in"}) test.listed(directory(path));
  for (const char* path : {"d/in", "d", ""}) test.left(path, true);
  const bool is_reached = mode == 0300;  // what is in it, by its name
  CHECK(test.run() == (is_reached ? Names{"d/in/old", "old"} : Names{"old"}));
  CHECK(test.failed == 0);
  CHECK(test.warnings.size() == (is_reached ? 2 : 3));
  for (const char* path : {"d", "gone"}) {
    CHECK((test.place.stat_of(path).st_mode & 07777u) == mode);
    REQUIRE(::chmod(test.place.temporary.path(path).c_str(), 0700) == 0);
  }
}

}  // namespace ccixfer::recv::test
