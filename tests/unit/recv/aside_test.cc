// --link-dest and --backup: what is linked from older trees, and what is kept of what is replaced.
#include "app/recv/aside.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "app/recv/backups.h"
#include "app/recv/older_trees.h"
#include "app/session/receiver_words.h"
#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint32_t options = archive_options | session::option_itemize;
constexpr const char* label_name = "user.label";
constexpr const char* list_name = "system.posix_acl_access";

struct AsidePlace : Place {
  explicit AsidePlace(uint32_t given = options) : Place(given, "new") {
    std::filesystem::create_directories(temporary.path("new"));
    std::filesystem::create_directories(temporary.path("old/d"));
    std::filesystem::create_directories(temporary.path("older"));
  }
  void link_to(std::vector<std::string> trees) {
    std::vector<SidePlace> places;
    for (const std::string& tree : trees) places.push_back({tree});
    older = std::make_unique<OlderTrees>(*root->opened(), places);
    decider.set_aside(older.get(), backups.get());
  }
  void keep(std::optional<SidePlace> directory, const std::string& suffix) {
    backups = std::make_unique<Backups>(*root->opened(), policy, recv::Aside::Backup{directory, suffix}, "new", *owner, kept);
    decider.set_aside(older.get(), backups.get());
  }
  void put(const std::string& path, const std::string& content, int64_t later_s = 0, mode_t mode = 0644) {
    temporary.write(path, content);
    REQUIRE(::chmod(temporary.path(path).c_str(), mode) == 0);
    const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000 + later_s, 123'456'789}};
    REQUIRE(::utimensat(AT_FDCWD, temporary.path(path).c_str(), times, 0) == 0);
  }
  // An extended attribute, which every file system of ours has.
  void label(const std::string& path, const std::string& value) const {
    REQUIRE(::setxattr(temporary.path(path).c_str(), label_name, value.data(), value.size(), 0) == 0);
  }
  [[nodiscard]] std::string label_of(const std::string& path) const { return attribute(path, label_name); }
  // An access control list (linux/posix_acl_xattr.h) of one user and the owning group, who may do so much.
  void let_user(const std::string& path, char rights) const {
    constexpr std::string_view nobody = "\xff\xff\xff\xff";
    std::string list("\2\0\0\0", 4);
    const auto add = [&list](char tag, char may, std::string_view who) { list.append({tag, 0, may, 0}).append(who); };
    add(1, 7, nobody);
    add(2, rights, std::string_view("\xe8\3\0\0", 4));
    add(4, rights, nobody);
    add(16, rights, nobody);
    add(32, 0, nobody);
    if (::setxattr(temporary.path(path).c_str(), list_name, list.data(), list.size(), 0) != 0) WARN("no access control lists here");
    ::chmod(temporary.path(path).c_str(), static_cast<mode_t>(0700 | rights << 3));
  }
  [[nodiscard]] std::string list_of(const std::string& path) const { return attribute(path, list_name); }
  [[nodiscard]] std::string attribute(const std::string& path, const char* name) const {
    std::string value(64, '\0');
    const ssize_t size = ::getxattr(temporary.path(path).c_str(), name, value.data(), value.size());
    value.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return value;
  }
  [[nodiscard]] bool are_one(const std::string& a, const std::string& b) const { return stat_of(a).st_ino == stat_of(b).st_ino; }
  CommitItem deliver_keeping(const FileTaskRef& task, const std::string& content) {
    std::vector<PackItem> items(1);
    items[0].task = task;
    items[0].content = as_bytes(content);
    stage_pack(*root->opened(), policy, *owner, items);
    std::vector<CommitItem> batch(1);
    batch[0].task = task;
    batch[0].staged = items[0].staged;
    batch[0].size_bytes = content.size();
    commit_batch(*root->opened(), *directories, policy, *owner, batch, backups.get());
    root->opened()->claims.release(task->key, owner);
    return batch[0];
  }
  std::unique_ptr<OlderTrees> older;
  std::unique_ptr<Backups> backups;
  std::shared_ptr<session::KeptNames> kept;  // of earlier sessions
};

struct Kept final : session::KeptNames {
  [[nodiscard]] bool has(std::string_view name) const override { return names.contains(name); }
  void add(std::string_view name) override { names.emplace(name); }
  std::set<std::string, std::less<>> names;
};

}  // namespace

TEST_CASE("aside__beside__relative_to_the_destination_and_never_out_of_the_root") {
  CHECK(beside("a/b", "../c").value() == "a/c");
  CHECK(beside("a/b", "./c//d/").value() == "a/b/c/d");
  CHECK(beside("a/b", "../..").value().empty());
  CHECK(beside("a/b", "/x/../y").value() == "y");
  CHECK(beside("", "c").value() == "c");
  for (const char* wrong : {"../../..", "/..", ".ccixfer", "x/.CCIXFER/y"}) {
    const auto refused = beside("a/b", wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::not_authorised);
  }
  CHECK(beside("a/b", "../../../out").error().message ==
        "../../../out: it leaves the root: name a directory below the receiver's root");
  CHECK(beside("", ".ccixfer/x").error().message == ".ccixfer/x: it is reserved: name a directory below the receiver's root");
  CHECK_FALSE(beside("a", std::string("b\0c", 3)));
  CHECK_FALSE(beside("a", std::string(5000, 'x')));
}

TEST_CASE("aside__below_base__of_a_tree_and_of_one_file") {
  CHECK(below_base("new/d/f", "new", false) == "d/f");
  CHECK(below_base("new", "new", true).empty());
  CHECK(below_base("new/f", "new/f", false) == "f");
  CHECK(below_base("f", "", false) == "f");
}

TEST_CASE("older_trees__a_directory_of_one_lets_nobody_in__its_files_are_sent_and_that_is_told_once") {
  const NotRoot account;
  const mode_t mode = GENERATE(0600u, 0300u, 0u);
  AsidePlace place;
  place.put("old/d/f", "same");
  place.put("old/f", "same");
  REQUIRE(::chmod(place.temporary.path("old/d").c_str(), mode) == 0);
  place.link_to({"old"});
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::unchanged);
  CHECK(place.older->take_warning().empty());
  REQUIRE(place.decide_one(directory("d", 0700)).verdict == Verdict::done);
  CHECK(place.decide_one(file("d/f", 4)).verdict == Verdict::send);
  // One of mode 0300 lets the receiver reach what is in it; but it is opened to be read.
  CHECK(place.older->take_warning().find("d of an older tree") == 0);
  CHECK(place.decide_one(file("d/g", 4)).verdict == Verdict::send);
  CHECK(place.older->take_warning().empty());
  REQUIRE(::chmod(place.temporary.path("old/d").c_str(), 0700) == 0);
}

TEST_CASE("older_trees__an_unchanged_file__is_linked_and_counts_as_unchanged") {
  AsidePlace place;
  place.put("old/f", "same");
  place.link_to({"old"});
  const Decision decision = place.decide_one(file("f", 4));
  CHECK(decision.verdict == Verdict::unchanged);
  CHECK_FALSE(session::is_told(decision.items));
  CHECK(place.are_one("new/f", "old/f"));
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::unchanged);  // and stays linked
  CHECK(place.stat_of("old/f").st_nlink == 2);
}

TEST_CASE("older_trees__other_content_or_attributes__are_sent_and_their_letters_tell_the_difference") {
  AsidePlace place;
  place.put("old/content", "longer");
  place.put("old/mode", "same", 0, 0600);
  place.put("old/time", "same", 9);
  place.link_to({"old"});
  const auto letters = [&](const std::string& name) {
    const Decision decision = place.decide_one(file(name, 4));
    CHECK(decision.verdict == Verdict::send);
    return session::letters_of(decision.items, {decision.type, false, true});
  };
  CHECK(letters("content") == ">f.s.......");
  CHECK(letters("mode") == ">f...p.....");
  CHECK(letters("time") == ">f..t......");
  CHECK(letters("absent") == ">f+++++++++");
  CHECK_FALSE(place.temporary.has("new/mode"));
}

TEST_CASE("older_trees__several__the_first_that_is_most_alike") {
  AsidePlace place;
  place.put("old/f", "same", 0, 0600);
  place.put("older/f", "same");
  place.put("old/g", "same");
  place.put("older/g", "same");
  place.link_to({"absent", "old", "older"});
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::unchanged);
  CHECK(place.are_one("new/f", "older/f"));
  CHECK(place.decide_one(file("g", 4)).verdict == Verdict::unchanged);
  CHECK(place.are_one("new/g", "old/g"));
}

// What an ordinary account cannot give does not count: the file would be sent every night.
TEST_CASE("older_trees__a_group_that_cannot_be_given__the_file_is_linked_all_the_same") {
  const NotRoot account;
  const uint32_t mode = GENERATE(0644u, 02755u);
  AsidePlace place;
  place.put("old/f", "same", 0, mode & 0777u);  // as the night before left it
  place.link_to({"old"});
  Entry entry = file("f", 4, mode);
  entry.gid = 12'345;
  CHECK(place.decide_one(entry).verdict == Verdict::unchanged);
  CHECK(place.are_one("new/f", "old/f"));
  const Decision again = place.decide_one(entry);
  CHECK(again.verdict == Verdict::unchanged);
  CHECK_FALSE(session::is_told(again.items));
  CHECK(std::distance(std::filesystem::directory_iterator(place.temporary.path(".ccixfer")), {}) > 0);
  for (const auto& one : std::filesystem::directory_iterator(place.temporary.path(".ccixfer")))
    CHECK(one.path().extension() != temporary_suffix);
}

TEST_CASE("older_trees__a_group_that_can_be_given__counts_as_a_difference") {
  if (::geteuid() != 0) return;
  constexpr gid_t group = 12'345;
  const NotRoot account({group});
  AsidePlace place;
  place.put("old/f", "same");
  place.link_to({"old"});
  Entry entry = file("f", 4);
  entry.gid = group;
  const Decision decision = place.decide_one(entry);
  CHECK(decision.verdict == Verdict::send);
  CHECK(session::letters_of(decision.items, {decision.type, false, true}) == ">f.....g...");
}

TEST_CASE("older_trees__something_stands_there__it_is_replaced_only_by_what_is_the_same") {
  AsidePlace place;
  place.put("old/f", "same");
  place.put("new/f", "another", 5);
  place.put("old/g", "same", 0, 0600);
  place.put("new/g", "another", 5);
  place.link_to({"old"});
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::unchanged);
  CHECK(place.are_one("new/f", "old/f"));
  CHECK(place.decide_one(file("g", 4)).verdict == Verdict::send);
  CHECK(place.temporary.read("new/g") == "another");
}

// Else the older night's file would change with it.
TEST_CASE("older_trees__what_was_linked_gets_other_attributes__the_older_one_keeps_its_own") {
  AsidePlace place;
  place.put("old/f", "same");
  REQUIRE(::symlink("there", place.temporary.path("old/l").c_str()) == 0);
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("old/l").c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
  place.link_to({"old"});
  REQUIRE(place.decide_one(file("f", 4)).verdict == Verdict::unchanged);
  REQUIRE(place.decide_one(link("l", "there")).verdict == Verdict::done);
  REQUIRE(place.are_one("new/f", "old/f"));
  REQUIRE(place.are_one("new/l", "old/l"));
  const Decision decision = place.decide_one(file("f", 4, 0600));
  CHECK(decision.verdict == Verdict::send);
  CHECK(place.deliver_keeping(decision.task, "same").outcome == CommitOutcome::ok);
  CHECK((place.stat_of("new/f").st_mode & 0777) == 0600);
  CHECK((place.stat_of("old/f").st_mode & 0777) == 0644);
  Entry later = link("l", "there");
  later.mtime.seconds += 5;
  CHECK(place.decide_one(later).verdict == Verdict::done);
  CHECK(place.stat_of("new/l").st_mtim.tv_sec == 1'000'000'005);
  CHECK(place.stat_of("old/l").st_mtim.tv_sec == 1'000'000'000);
}

TEST_CASE("older_trees__a_pipe_that_was_linked_gets_other_attributes__the_older_one_keeps_its_own") {
  AsidePlace place(options | session::option_specials);
  REQUIRE(::mkfifo(place.temporary.path("old/p").c_str(), 0600) == 0);
  REQUIRE(::chmod(place.temporary.path("old/p").c_str(), 0644) == 0);
  std::filesystem::create_hard_link(place.temporary.path("old/p"), place.temporary.path("new/p"));
  place.link_to({"old"});
  Entry pipe = file("p", 0, 0640);
  pipe.type = EntryType::special;
  pipe.special = ports::SpecialKind::fifo;
  CHECK(place.decide_one(pipe).verdict == Verdict::done);
  CHECK((place.stat_of("new/p").st_mode & 0777) == 0640);
  CHECK((place.stat_of("old/p").st_mode & 0777) == 0644);
}

TEST_CASE("older_trees__links_and_directories__as_rsync_has_them") {
  AsidePlace place;
  REQUIRE(::symlink("there", place.temporary.path("old/l").c_str()) == 0);
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("old/l").c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("old/d").c_str(), times, 0) == 0);
  REQUIRE(::chmod(place.temporary.path("old/d").c_str(), 0755) == 0);
  place.link_to({"old"});
  CHECK(place.decide_one(link("l", "there")).verdict == Verdict::done);
  CHECK(place.are_one("new/l", "old/l"));
  CHECK_FALSE(session::is_told(place.decide_one(directory("d")).items));  // it is made, and is no news
  CHECK(place.temporary.has("new/d"));
  const Decision other = place.decide_one(link("d/l", "elsewhere"));
  CHECK(session::letters_of(other.items, {other.type, false, true}) == "cL+++++++++");
}

TEST_CASE("older_trees__dry_run__says_the_same_and_links_nothing") {
  AsidePlace place(options | session::option_dry_run);
  place.put("old/f", "same");
  place.put("old/d/f", "same");
  place.link_to({"old"});
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::unchanged);
  CHECK(place.decide_one(file("d/f", 4)).verdict == Verdict::unchanged);  // in a directory that would be made
  const Decision other = place.decide_one(file("d/f", 5));
  CHECK(other.verdict == Verdict::send);
  CHECK(session::letters_of(other.items, {other.type, false, true}) == ">f.s.......");
  CHECK_FALSE(place.temporary.has("new/f"));
}

TEST_CASE("older_trees__hard_links_are_refused__the_file_is_sent") {
  AsidePlace place;
  place.put("old/f", "same");
  place.link_to({"old"});
  place.files.hook = [](std::string_view call, std::string_view) { return call == "link_at" ? -EPERM : 0; };
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::send);
  place.files.hook = nullptr;
}

TEST_CASE("older_trees__a_link_leads_out_of_the_tree__is_not_followed") {
  AsidePlace place;
  place.put("older/f", "same");
  std::filesystem::remove(place.temporary.path("old/d"));
  REQUIRE(::symlink("../older", place.temporary.path("old/d").c_str()) == 0);
  std::filesystem::create_directory(place.temporary.path("new/d"));
  place.link_to({"old"});
  CHECK(place.decide_one(file("d/f", 4)).verdict == Verdict::send);
}

TEST_CASE("backups__a_name_without_room_for_the_suffix__a_dry_run_says_that_it_fails") {
  const std::string longest(255, 'n');
  for (const uint32_t mode : {0u, uint32_t{session::option_dry_run}}) {
    AsidePlace place(options | mode);
    place.put("new/" + longest, "old", 5);
    place.put("new/f", "old", 5);
    place.put("new/" + longest.substr(1), "old", 5);
    place.keep(std::nullopt, "~");
    if (mode == 0) {
      const Decision decision = place.decide_one(file(longest, 4));
      CHECK(place.deliver_keeping(decision.task, "anew").error_number == ENAMETOOLONG);
    } else {
      for (const Entry& entry : {file(longest, 4), link(longest, "x")}) {
        const Decision decision = place.decide_one(entry);
        CHECK(decision.verdict == Verdict::failed);
        CHECK(decision.error_number == ENAMETOOLONG);
      }
      CHECK(place.decide_one(file(longest.substr(1), 4)).verdict == Verdict::send);
      CHECK(place.decide_one(file(longest.substr(2), 4)).verdict == Verdict::send);
      CHECK(place.decide_one(file("f", 4)).verdict == Verdict::send);
    }
  }
}

TEST_CASE("backups__a_file_is_replaced__the_old_one_stays_under_the_backups_name") {
  AsidePlace place;
  place.put("new/f", "old", 5, 0600);
  place.keep(std::nullopt, "~");
  const ino_t before = place.stat_of("new/f").st_ino;
  const Decision decision = place.decide_one(file("f", 4));
  REQUIRE(decision.verdict == Verdict::send);
  CHECK_FALSE(place.temporary.has("new/f~"));  // not before the content is there
  CHECK(place.deliver_keeping(decision.task, "anew").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("new/f") == "anew");
  CHECK(place.temporary.read("new/f~") == "old");
  CHECK(place.stat_of("new/f~").st_ino == before);
  CHECK(place.stat_of("new/f~").st_nlink == 1);
  // A second time in one transfer, as in another session of it: what is replaced is its own.
  const Decision again = place.decide_one(file("f", 5));
  CHECK(place.deliver_keeping(again.task, "again").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("new/f~") == "old");
  // In another one: only the last backup is kept.
  place.keep(std::nullopt, "~");
  const Decision later = place.decide_one(file("f", 6));
  CHECK(place.deliver_keeping(later.task, "later!").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("new/f~") == "again");
}

TEST_CASE("backups__what_makes_room__is_kept_unless_it_is_a_backup") {
  AsidePlace place;
  place.put("new/f", "old");
  place.put("new/g~", "old");
  place.put("new/l", "old");
  place.keep(std::nullopt, "~");
  CHECK(place.decide_one(directory("f")).verdict == Verdict::done);
  CHECK(place.temporary.read("new/f~") == "old");
  CHECK(place.decide_one(directory("g~")).verdict == Verdict::done);
  CHECK_FALSE(place.temporary.has("new/g~~"));
  CHECK(place.decide_one(link("l", "x")).verdict == Verdict::done);
  CHECK(place.temporary.read("new/l~") == "old");
}

// Else a power cut could keep the removal and lose the link.
TEST_CASE("backups__what_makes_room__has_one_name_at_any_moment") {
  AsidePlace place;
  place.put("new/f", "old");
  place.put("new/g", "old");
  const auto inode_of = [&](const char* path) {
    struct stat found {};
    REQUIRE(::stat(place.temporary.path(path).c_str(), &found) == 0);
    return found.st_ino;
  };
  const ino_t before = inode_of("new/f");
  place.keep(SidePlace{"old"}, "");
  std::vector<std::string> calls;
  place.files.hook = [&](std::string_view call, std::string_view name) {
    const bool refused = name == "g" && (call == "rename_at" || call == "link_at");  // another file system
    if (call != "open" && (name == "f" || name == "g")) calls.emplace_back(std::string(call) + " " + std::string(name));
    if (call == "fsync") calls.emplace_back(call);
    return refused ? -EXDEV : 0;
  };
  CHECK(place.decide_one(directory("f")).verdict == Verdict::done);
  CHECK(std::count(calls.begin(), calls.end(), "rename_at f") == 1);
  CHECK(std::count(calls.begin(), calls.end(), "link_at f") == 0);
  CHECK(inode_of("old/f") == before);
  calls.clear();
  CHECK(place.decide_one(directory("g")).verdict == Verdict::done);
  CHECK(place.temporary.read("old/g") == "old");
  // The copy, and then its name, are durable before the file goes: what is removed last is it.
  CHECK(std::count(calls.begin(), calls.end(), "fsync") == 2);
  place.files.hook = nullptr;
}

TEST_CASE("backups__in_a_directory__with_the_directories_they_come_from") {
  AsidePlace place(options | session::option_acls);
  place.put("new/f", "old");
  std::filesystem::create_directory(place.temporary.path("new/d"));
  place.put("new/d/f", "old");
  REQUIRE(::chmod(place.temporary.path("new/d").c_str(), 0710) == 0);
  place.let_user("new/d", 1);
  const std::string before = place.list_of("new/d");
  place.keep(SidePlace{"kept/deep"}, "");
  CHECK(place.deliver_keeping(place.decide_one(file("f", 4)).task, "anew").outcome == CommitOutcome::ok);
  const DecidedEntries decided = place.decide({directory("d", 0750), file("d/f", 4)});
  CHECK(place.deliver_keeping(decided.decisions[1].task, "anew").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("kept/deep/f") == "old");
  CHECK(place.temporary.read("kept/deep/d/f") == "old");
  CHECK((place.stat_of("kept/deep/d").st_mode & 0777) == 0710);
  CHECK(place.list_of("kept/deep/d") == before);
  place.let_user("new/d", 5);
  const HeldFile left(place.files, place.files.open(place.root->opened()->fd, "new/d", {.directory = true}, 0));
  place.backups->left("new/d", left.fd(), {0750, ::getuid(), ::getgid()});
  CHECK((place.stat_of("kept/deep/d").st_mode & 0777) == 0750);
  CHECK(place.list_of("kept/deep/d") == place.list_of("new/d"));
  CHECK(place.temporary.read("new/d/f") == "anew");
}

TEST_CASE("backups__no_hard_links__it_is_copied_with_its_attributes") {
  AsidePlace place(options | session::option_xattrs);
  place.put("new/f", "old", 5, 0640);
  place.label("new/f", "before");
  REQUIRE(::symlink("there", place.temporary.path("new/l").c_str()) == 0);
  place.keep(std::nullopt, "~");
  place.files.hook = [](std::string_view call, std::string_view) { return call == "link_at" ? -EPERM : 0; };
  CHECK(place.deliver_keeping(place.decide_one(file("f", 4)).task, "anew").outcome == CommitOutcome::ok);
  CHECK(place.decide_one(link("l", "elsewhere")).verdict == Verdict::done);
  place.files.hook = nullptr;
  CHECK(place.temporary.read("new/f~") == "old");
  CHECK((place.stat_of("new/f~").st_mode & 0777) == 0640);
  CHECK(place.stat_of("new/f~").st_mtim.tv_sec == 1'000'000'005);
  CHECK(place.label_of("new/f~") == "before");
  CHECK(std::filesystem::read_symlink(place.temporary.path("new/l~")) == "there");
}

TEST_CASE("backups__it_cannot_be_kept__the_old_file_stays") {
  AsidePlace place;
  place.put("new/f", "old");
  std::filesystem::create_directories(place.temporary.path("new/f~/full"));
  place.keep(std::nullopt, "~");
  const CommitItem item = place.deliver_keeping(place.decide_one(file("f", 4)).task, "anew");
  CHECK(item.outcome == CommitOutcome::failed);
  CHECK(item.error_number == session::errno_of_no_backup);
  CHECK(place.temporary.read("new/f") == "old");
  CHECK(place.temporary.has("new/f~/full"));
}

// What stands in the way is the directory of the backup's name, and not the link itself.
// Where a directory with content stands in the backup's place, beside the file or in the backup directory.
TEST_CASE("backups__a_backup_has_no_place__a_dry_run_says_that_it_fails") {
  const bool in_directory = GENERATE(false, true);
  AsidePlace place(options | session::option_dry_run);
  place.put("new/f", "before");
  place.put("new/g", "before");
  place.put(in_directory ? "kept/f/x" : "new/f~/x", "content");
  std::filesystem::create_directories(place.temporary.path(in_directory ? "kept/g" : "new/g~"));
  place.keep(in_directory ? std::optional(SidePlace{"kept"}) : std::nullopt, in_directory ? "" : "~");
  for (const Entry& entry : {file("f", 4), link("f", "elsewhere"), directory("f")}) {
    const Decision decision = place.decide_one(entry);
    CHECK(decision.verdict == Verdict::failed);
    CHECK(decision.error_number == session::errno_of_no_backup);
  }
  CHECK(place.decide_one(file("g", 4)).verdict == Verdict::send);  // an empty one goes
  CHECK(place.decide_one(link("g", "elsewhere")).verdict == Verdict::make);
  CHECK(place.decide_one(directory("g")).verdict == Verdict::make);
}

TEST_CASE("backups__a_link_whose_backup_has_no_place__the_old_one_stays_and_the_reason_is_true") {
  AsidePlace place;
  REQUIRE(::symlink("there", place.temporary.path("new/l").c_str()) == 0);
  std::filesystem::create_directories(place.temporary.path("new/l~/full"));
  place.keep(std::nullopt, "~");
  const Decision decision = place.decide_one(link("l", "elsewhere"));
  CHECK(decision.verdict == Verdict::failed);
  CHECK(decision.error_number == session::errno_of_no_backup);
  CHECK(std::filesystem::read_symlink(place.temporary.path("new/l")) == "there");
}

TEST_CASE("backups__nothing_stands_there_or_a_directory__nothing_is_kept") {
  AsidePlace place;
  std::filesystem::create_directory(place.temporary.path("new/empty"));
  place.keep(std::nullopt, "~");
  CHECK(place.deliver_keeping(place.decide_one(file("f", 4)).task, "anew").outcome == CommitOutcome::ok);
  CHECK(place.deliver_keeping(place.decide_one(file("empty", 4)).task, "anew").outcome == CommitOutcome::ok);
  CHECK_FALSE(place.temporary.has("new/f~"));
  CHECK_FALSE(place.temporary.has("new/empty~"));
}

// rsync writes the backup over what it has just delivered.
TEST_CASE("backups__the_source_has_a_file_of_the_backups_name__that_and_all_that_was_there_is_kept") {
  const bool is_later_first = GENERATE(true, false);
  const bool is_in_another_session = GENERATE(true, false);
  AsidePlace place;
  place.kept = std::make_shared<Kept>();
  place.put("new/f", "old f", 5);
  place.put("new/f~", "old f~", 5);
  place.keep(std::nullopt, "~");
  const DecidedEntries decided = place.decide({file("f", 6), file("f~", 7)});
  const auto deliver = [&](size_t which) {
    const Decision& decision = decided.decisions[which];
    CHECK(place.deliver_keeping(decision.task, which == 0 ? "anew f" : "anew f~").outcome == CommitOutcome::ok);
  };
  deliver(is_later_first ? 1 : 0);
  if (is_in_another_session) place.keep(std::nullopt, "~");
  deliver(is_later_first ? 0 : 1);
  CHECK(place.temporary.read("new/f") == "anew f");
  CHECK(place.temporary.read("new/f~") == "anew f~");
  CHECK(place.temporary.read(is_later_first ? "new/f~~~" : "new/f~~") == "old f");
  CHECK(place.temporary.read(is_later_first ? "new/f~~" : "new/f~~~") == "old f~");
}

TEST_CASE("backups__the_source_has_what_is_there_under_the_backups_name__it_stays") {
  AsidePlace place;
  place.put("new/f", "old f", 5);
  place.put("new/f~", "same");
  place.keep(std::nullopt, "~");
  const DecidedEntries decided = place.decide({file("f", 6), file("f~", 4)});
  REQUIRE(decided.decisions[1].verdict == Verdict::unchanged);
  CHECK(place.deliver_keeping(decided.decisions[0].task, "anew f").outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("new/f~") == "same");
  CHECK(place.temporary.read("new/f~~") == "old f");
}

TEST_CASE("backups__the_source_has_a_file_of_that_name_in_the_backup_directory__it_and_the_old_one_stay") {
  AsidePlace place;
  std::filesystem::create_directories(place.temporary.path("new/kept"));
  place.put("new/f", "old f", 5);
  place.put("new/kept/f", "same");
  place.keep(SidePlace{"new/kept"}, "");
  const DecidedEntries decided = place.decide({file("f", 6), directory("kept"), file("kept/f", 4)});
  const CommitItem item = place.deliver_keeping(decided.decisions[0].task, "anew f");
  CHECK(item.outcome == CommitOutcome::failed);
  CHECK(item.error_number == session::errno_of_no_backup);
  CHECK(place.temporary.read("new/f") == "old f");
  CHECK(place.temporary.read("new/kept/f") == "same");
}

TEST_CASE("backups__the_source_has_the_backups_name_in_the_backup_directory__a_dry_run_says_that_it_fails") {
  AsidePlace place(options | session::option_dry_run);
  std::filesystem::create_directories(place.temporary.path("new/kept"));
  place.put("new/z", "old z", 5);
  place.put("new/kept/z", "same");
  place.keep(SidePlace{"new/kept"}, "");
  const DecidedEntries decided = place.decide({directory("kept"), file("kept/z", 4), file("z", 6)});
  CHECK(decided.decisions[1].verdict == Verdict::unchanged);
  CHECK(decided.decisions[2].verdict == Verdict::failed);
  CHECK(decided.decisions[2].error_number == session::errno_of_no_backup);
}

// As a run of the day before left it.
TEST_CASE("backups__a_directory_of_them_is_read_only__it_takes_the_backup_and_is_read_only_again") {
  const NotRoot account;
  const mode_t mode = GENERATE(0555u, 0311u);
  AsidePlace place;
  std::filesystem::create_directories(place.temporary.path("new/d/e"));
  std::filesystem::create_directories(place.temporary.path("kept/d"));
  for (const char* path : {"new/d/f", "new/d/e/f"}) place.put(path, "old", 5);
  REQUIRE(::chmod(place.temporary.path("kept/d").c_str(), mode) == 0);
  REQUIRE(::chmod(place.temporary.path("kept").c_str(), 0555) == 0);
  place.keep(SidePlace{"kept"}, "");
  const DecidedEntries decided = place.decide({directory("d"), file("d/f", 4), directory("d/e"), file("d/e/f", 4)});
  CHECK(place.deliver_keeping(decided.decisions[1].task, "anew").outcome == CommitOutcome::ok);
  CHECK(place.deliver_keeping(decided.decisions[3].task, "anew").outcome == CommitOutcome::ok);
  for (const char* path : {"kept", "kept/d"}) {
    CHECK((place.stat_of(path).st_mode & 0777) == (path == std::string("kept") ? 0555 : mode));
    REQUIRE(::chmod(place.temporary.path(path).c_str(), 0755) == 0);
  }
  CHECK(place.temporary.read("kept/d/f") == "old");
  CHECK(place.temporary.read("kept/d/e/f") == "old");
}

}  // namespace ccixfer::recv
