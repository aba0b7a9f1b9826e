// Files, links and directories that stand there already: what of them is looked at, what is given to them, and what a dry run says.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/recv/leaves.h"
#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint32_t somebody = 1000;
constexpr timespec entry_times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 123'456'789}};
using Given = std::vector<std::string>;

// A place whose process is said to be root, or somebody else. What is given to files is noted and not done.
struct As : Place {
  As(uint32_t uid, uint32_t options)
      : Place(options), other(*root->opened(), *directories, {options, 022, uid, uid}, "", owner, linked) {
    ::umask(::umask(022));
    temporary.write("f", "abc");
    ::chmod(temporary.path("f").c_str(), 0644);
    ::utimensat(AT_FDCWD, temporary.path("f").c_str(), entry_times, 0);
    REQUIRE(::symlink("abc", temporary.path("l").c_str()) == 0);
    REQUIRE(::utimensat(AT_FDCWD, temporary.path("l").c_str(), entry_times, AT_SYMLINK_NOFOLLOW) == 0);
    std::filesystem::create_directory(temporary.path("d"));
    ::chmod(temporary.path("d").c_str(), 0755);
    REQUIRE(::utimensat(AT_FDCWD, temporary.path("d").c_str(), entry_times, 0) == 0);
    files.hook = [this](std::string_view call, std::string_view) {
      if (!call.starts_with("set_")) return 0;
      const auto at = failing.find(std::string(call));
      return at != failing.end() ? -at->second : 1;
    };
  }
  ~As() { files.hook = nullptr; }
  Decision look(const Entry& entry) {
    files.given.clear();
    DecidedEntries decided = other.decide({entry}, next_index++);
    REQUIRE_FALSE(decided.fatal.has_value());
    return std::move(decided.decisions.at(0));
  }
  Verdict verdict(const Entry& entry) { return look(entry).verdict; }

  EntryDecider other;
  std::map<std::string, int> failing;
};

Entry with_digest(Entry entry, const std::string& content) {
  entry.has_digest = true;
  entry.digest = session::file_digest({xxh3_128(as_bytes(content))});
  return entry;
}
Entry owned(Entry entry, uint32_t uid, uint32_t gid) {
  entry.uid = uid;
  entry.gid = gid;
  return entry;
}
Entry later(Entry entry) {
  ++entry.mtime.seconds;
  return entry;
}
const Entry same = file("f", 3);

}  // namespace

// Without times only the database knows it. What this run asks for besides is given to it all the same.
TEST_CASE("entries__what_a_killed_run_delivered__gets_the_mode_that_the_rerun_asks_for") {
  Place place(session::option_recursive);
  const Decision wanted = place.decide_one(file("f", 4, 0640));
  REQUIRE(place.deliver(wanted.task, "abcd").outcome == CommitOutcome::ok);
  ::chmod(place.temporary.path("f").c_str(), 0600);
  constexpr uint32_t modes = session::option_recursive | session::option_permissions | session::option_itemize;
  for (const uint32_t mode : {uint32_t{session::option_dry_run}, 0u}) {
    const Policy policy{modes | mode, place.policy.umask, place.policy.uid, place.policy.gid};
    EntryDecider other(*place.root->opened(), *place.directories, policy, "", place.owner, place.linked);
    const DecidedEntries decided = other.decide({file("f", 4, 0640)}, 1);
    REQUIRE_FALSE(decided.fatal.has_value());
    CHECK(decided.decisions.at(0).verdict == (mode == 0 ? Verdict::unchanged : Verdict::change));
    CHECK(decided.decisions.at(0).items == session::item_mode);
    CHECK((place.stat_of("f").st_mode & 07777) == (mode == 0 ? 0640 : 0600));
  }
}

TEST_CASE("entries__unchanged_and_attributes_alone_are_asked_for__its_set_id_bits_stay_with_its_owner") {
  As place(0, session::option_recursive | session::option_size_only | session::option_xattrs);
  ::chmod(place.temporary.path("f").c_str(), 04755);
  Entry entry = owned(file("f", 3), somebody, somebody);
  entry.has_extended = true;
  entry.extended = {{"user.a", "b"}};
  CHECK(place.verdict(entry) == Verdict::unchanged);
  for (const std::string& call : place.files.given) CHECK_FALSE(call.starts_with("mode"));
}

TEST_CASE("unchanged__a_directory_that_may_not_be_written_in__unlocked_by_its_owner_and_not_by_root") {
  const NotRoot account;
  for (const uint32_t uid : {0u, static_cast<uint32_t>(::geteuid())}) {
    As place(uid, session::option_recursive);
    ::chmod(place.temporary.path("d").c_str(), 0500);
    CHECK(place.verdict(directory("d", 0755)) == Verdict::done);
    CHECK(place.files.given == (uid == 0 ? Given{} : Given{"mode 700"}));
    ::chmod(place.temporary.path("d").c_str(), 0700);
  }
}

TEST_CASE("unchanged__as_it_was_listed__nothing_is_given_to_it") {
  As place(0, archive_options);
  CHECK(place.verdict(same) == Verdict::unchanged);
  CHECK(place.files.given.empty());
}

TEST_CASE("unchanged__root__owner_and_group_are_brought_up_to_date_each_by_itself") {
  As place(0, archive_options);
  CHECK(place.verdict(owned(same, same.uid + 1, same.gid)) == Verdict::unchanged);
  CHECK(place.files.given == Given{fmt::format("owner {} {}", same.uid + 1, same.gid)});
  CHECK(place.verdict(owned(same, same.uid, same.gid + 1)) == Verdict::unchanged);
  CHECK(place.files.given == Given{fmt::format("owner {} {}", same.uid, same.gid + 1)});
  As without(0, archive_options & ~session::option_owner);
  CHECK(without.verdict(owned(same, same.uid + 1, same.gid + 1)) == Verdict::unchanged);
  CHECK(without.files.given.empty());
}

TEST_CASE("unchanged__mode__is_given_only_where_modes_are_kept") {
  As place(0, archive_options);
  CHECK(place.verdict(file("f", 3, 0600)) == Verdict::unchanged);
  CHECK(place.files.given == Given{"mode 600"});
  As without(0, archive_options & ~session::option_permissions);
  CHECK(without.verdict(file("f", 3, 0600)) == Verdict::unchanged);
  CHECK(without.files.given.empty());
  // the owner changes, and the mode that it has stays
  CHECK(without.verdict(owned(file("f", 3, 0600), same.uid + 1, same.gid)) == Verdict::unchanged);
  CHECK(without.files.given == Given{fmt::format("owner {} {}", same.uid + 1, same.gid)});
}

TEST_CASE("unchanged__by_its_content__its_time_is_brought_up_to_date") {
  As place(0, archive_options | session::option_checksum);
  CHECK(place.verdict(with_digest(later(same), "abc")) == Verdict::unchanged);
  CHECK(place.files.given == Given{"time 1000000001.123456789"});
  CHECK(place.verdict(with_digest(same, "abc")) == Verdict::unchanged);
  CHECK(place.files.given.empty());
  CHECK(place.verdict(with_digest(file("f", 4), "abc")) == Verdict::send);
  place.root->opened()->claims.release_all(place.owner);
  CHECK(place.verdict(with_digest(same, "abd")) == Verdict::send);
  place.root->opened()->claims.release_all(place.owner);
  CHECK(place.verdict(same) == Verdict::send);  // no digest came
  As without(0, session::option_recursive | session::option_checksum);
  CHECK(without.verdict(with_digest(later(file("f", 3, 0600)), "abc")) == Verdict::unchanged);
  CHECK(without.files.given.empty());
  As times_only(0, session::option_recursive | session::option_checksum | session::option_times);
  CHECK(times_only.verdict(with_digest(later(file("f", 3, 0600)), "abc")) == Verdict::unchanged);
  CHECK(times_only.files.given == Given{"time 1000000001.123456789"});
}

TEST_CASE("unchanged__its_content_cannot_be_read__it_is_sent") {
  As place(0, archive_options | session::option_checksum);
  const std::string_view failing = GENERATE(as<std::string_view>(), "open", "pread");
  place.files.hook = [&](std::string_view call, std::string_view name) {
    return call == failing && (name == "f" || call == "pread") ? -EIO : 0;
  };
  CHECK(place.verdict(with_digest(same, "abc")) == Verdict::send);
}

TEST_CASE("unchanged__size_or_time_differs__it_is_sent") {
  As place(0, archive_options);
  CHECK(place.verdict(later(same)) == Verdict::send);
  place.root->opened()->claims.release_all(place.owner);
  CHECK(place.verdict(file("f", 4)) == Verdict::send);
  As without(0, session::option_recursive);
  CHECK(without.verdict(same) == Verdict::send);  // no time was kept that could tell
}

TEST_CASE("unchanged__file_that_cannot_be_opened__stays_only_if_its_owner_alone_differs") {
  As place(0, archive_options | session::option_checksum);
  const Entry entry = with_digest(same, "abc");
  int openings = 0;
  place.files.hook = [&](std::string_view call, std::string_view name) {
    return call == "open" && name == "f" && ++openings % 2 == 0 ? -EACCES : 0;  // read, and then not given anything
  };
  CHECK(place.verdict(owned(entry, same.uid + 1, same.gid)) == Verdict::unchanged);
  CHECK(place.verdict(with_digest(file("f", 3, 0600), "abc")) == Verdict::send);
  place.root->opened()->claims.release_all(place.owner);
  CHECK(place.verdict(later(entry)) == Verdict::send);
}

TEST_CASE("unchanged__mode_is_refused__counted_if_the_file_is_ours_else_sent_anew") {
  As ours(::getuid(), archive_options);
  ours.failing = {{"set_mode", EPERM}};
  const Decision decision = ours.look(file("f", 3, 0600));
  CHECK(decision.verdict == Verdict::unchanged);
  CHECK(decision.attributes_refused);
  As roots(0, archive_options);
  roots.failing = {{"set_mode", EPERM}};
  CHECK(roots.verdict(file("f", 3, 0600)) == Verdict::unchanged);
  As theirs(somebody + ::getuid(), archive_options);
  theirs.failing = {{"set_mode", EPERM}};
  CHECK(theirs.verdict(file("f", 3, 0600)) == Verdict::send);
  As fails(0, archive_options);
  fails.failing = {{"set_mode", EIO}};
  CHECK(fails.verdict(file("f", 3, 0600)) == Verdict::send);
  As granted(0, archive_options);
  CHECK_FALSE(granted.look(file("f", 3, 0600)).attributes_refused);
  // Nobody asked for modes, and its owner is not given: it is written anew
  As owner_fails(0, archive_options & ~session::option_permissions);
  owner_fails.failing = {{"set_owner", EIO}};
  CHECK(owner_fails.verdict(owned(same, same.uid + 1, same.gid)) == Verdict::send);
}

TEST_CASE("unchanged__a_file_of_unknown_length__is_always_sent") {
  As place(0, archive_options);
  CHECK(place.verdict(file("f", size_unknown)) == Verdict::send);
}

TEST_CASE("unchanged__links__owner_and_time_as_far_as_they_are_kept_and_ours_to_give") {
  const auto finished = [](uint32_t uid, uint32_t options, const std::string& target) {
    As place(uid, options);
    CHECK(place.verdict(later(owned(link("l", target), 5, 6))) == Verdict::done);
    CHECK(std::filesystem::read_symlink(place.temporary.path("l")) == target);
    return place.files.given;
  };
  for (const std::string target : {"abc", "new"}) {
    CHECK(finished(0, archive_options, target) == Given{"link's owner 5 6", "link's time 1000000001.123456789"});
    CHECK(finished(somebody, archive_options, target) == Given{"link's time 1000000001.123456789"});
    CHECK(finished(0, archive_options & ~session::option_times, target) == Given{"link's owner 5 6"});
    CHECK(finished(0, session::option_links, target).empty());
  }
}

// Each call to a file system on a disk is a change of its journal: a night in which nothing changed writes nothing.
TEST_CASE("unchanged__links_and_directories__what_is_so_already_is_not_given_again") {
  As place(0, archive_options);
  const Entry there = link("l", "abc");
  CHECK(place.verdict(there) == Verdict::done);
  CHECK(place.files.given.empty());
  CHECK(place.verdict(later(there)) == Verdict::done);
  CHECK(place.files.given == Given{"link's time 1000000001.123456789"});
  for (const Entry& other : {owned(there, there.uid + 1, there.gid), owned(there, there.uid, there.gid + 1)}) {
    CHECK(place.verdict(other) == Verdict::done);
    CHECK(place.files.given == Given{fmt::format("link's owner {} {}", other.uid, other.gid)});
  }
  // What is made anew may get another owner from the directory that it is in, and has another time.
  CHECK(place.verdict(link("l", "new")) == Verdict::done);
  CHECK(place.files.given == Given{fmt::format("link's owner {} {}", there.uid, there.gid), "link's time 1000000000.123456789"});
}

TEST_CASE("unchanged__a_directory_that_is_left__gets_the_time_that_it_has_not") {
  for (const uint32_t options : {archive_options, archive_options & ~session::option_permissions}) {
    for (const bool is_later : {false, true}) {
      As place(0, options);
      const Entry entry = is_later ? later(directory("d")) : directory("d");
      CHECK(place.verdict(entry) == Verdict::done);
      Entry end = entry;
      end.type = EntryType::leave;
      const Decision left = place.look(end);
      REQUIRE(left.leave.has_value());
      place.files.given.clear();
      const auto outcomes =
          apply_leaves(*place.root->opened(), *place.directories, {options, 022, 0, 0}, *place.owner, {*left.leave});
      CHECK(outcomes.at(0).error_number == 0);
      CHECK(place.files.given == (is_later ? Given{"time 1000000001.123456789"} : Given{}));
    }
  }
}

TEST_CASE("unchanged__dry_run__what_would_be_given_counts_as_a_change_and_nothing_else") {
  const auto said = [](uint32_t uid, uint32_t options, const Entry& entry) {
    As place(uid, options | session::option_dry_run);
    const Verdict verdict = place.verdict(entry);
    CHECK(place.files.given.empty());
    CHECK(place.temporary.read("f") == "abc");
    return verdict;
  };
  const Entry there = directory("d");
  const uint32_t no_times = archive_options & ~session::option_times;
  for (const uint32_t uid : {0u, somebody}) {
    CHECK(said(uid, archive_options, same) == Verdict::unchanged);
    CHECK(said(uid, archive_options, there) == Verdict::done);
    CHECK(said(uid, archive_options, link("l", "abc")) == Verdict::done);
    CHECK(said(uid, archive_options, later(there)) == Verdict::change);
    CHECK(said(uid, no_times, later(there)) == Verdict::done);
    CHECK(said(uid, archive_options, file("f", 3, 0600)) == Verdict::change);
    CHECK(said(uid, archive_options & ~session::option_permissions, file("f", 3, 0600)) == Verdict::unchanged);
    CHECK(said(uid, archive_options, owned(there, there.uid, there.gid + 1)) == Verdict::change);
    CHECK(said(uid, archive_options & ~session::option_owner, owned(there, there.uid + 1, there.gid + 1)) == Verdict::done);
    // whose link it is, only root can say
    const Entry others = owned(link("l", "abc"), there.uid, there.gid + 1);
    CHECK(said(uid, archive_options, others) == (uid == 0 ? Verdict::change : Verdict::done));
    CHECK(said(uid, archive_options, owned(there, there.uid + 1, there.gid)) == (uid == 0 ? Verdict::change : Verdict::done));
  }
  Entry of_other_mode = link("l", "abc");
  of_other_mode.mode = 0;
  CHECK(said(0, archive_options, of_other_mode) == Verdict::done);  // a link has none
}

TEST_CASE("unchanged__dry_run__a_group_that_the_process_has_not_is_no_change_but_for_root") {
  for (const uint32_t uid : {0u, somebody}) {
    As place(uid, archive_options | session::option_dry_run | session::option_itemize);
    place.files.foreign_group = same.gid + 1;
    const Decision decision = place.look(owned(same, same.uid, same.gid + 1));
    CHECK(decision.verdict == (uid == 0 ? Verdict::change : Verdict::unchanged));
    CHECK(decision.items == (uid == 0 ? session::item_group : 0));
    CHECK(place.verdict(owned(same, same.uid, same.gid + 2)) == Verdict::change);
    CHECK(place.files.given.empty());
  }
}

}  // namespace ccixfer::recv
