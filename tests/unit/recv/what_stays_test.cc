// --update, --size-only and --ignore-existing: what stands at the destination and stays, in a real and in a dry run.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint32_t dry = session::option_dry_run;

// A file of "old!" with the time of file() and so many seconds more.
void put(const Place& place, const std::string& path, int64_t later_s) {
  place.temporary.write(path, "old!");
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000 + later_s, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path(path).c_str(), times, 0) == 0);
}

Entry leave(const std::string& path) {
  Entry entry = directory(path);
  entry.type = EntryType::leave;
  return entry;
}

}  // namespace

TEST_CASE("entries__update__a_newer_file_stays_and_all_others_are_wanted") {
  for (const uint32_t mode : {0u, dry}) {
    Place place(archive_options | session::option_update | mode);
    put(place, "newer", 1);
    put(place, "older", -1);
    put(place, "same_time_other_size", 0);
    REQUIRE(::symlink("newer", place.temporary.path("link").c_str()) == 0);
    CHECK(place.decide_one(file("newer", 9, 0600)).verdict == Verdict::unchanged);
    CHECK(place.decide_one(file("older", 4)).verdict == Verdict::send);
    CHECK(place.decide_one(file("same_time_other_size", 9)).verdict == Verdict::send);
    CHECK(place.decide_one(file("absent", 4)).verdict == Verdict::send);
    CHECK(place.decide_one(file("link", 4)).verdict == Verdict::send);  // only files are newer than files
    CHECK(place.decide_one(link("newer", "x")).verdict == (mode == dry ? Verdict::make : Verdict::done));
    if (mode == dry) CHECK((place.stat_of("newer").st_mode & 07777) != 0600);
  }
}

// The source's receipt must not have it.
TEST_CASE("entries__what_stays__is_marked_and_nothing_else") {
  const auto stays = [](Place& place, const Entry& entry) { return place.decide_one(entry).stays; };
  for (const uint32_t mode : {0u, dry}) {
    Place update(archive_options | session::option_update | mode);
    put(update, "newer", 1);
    put(update, "same", 0);
    CHECK(stays(update, file("newer", 9)));
    CHECK_FALSE(stays(update, file("same", 4)));
    CHECK_FALSE(stays(update, file("absent", 4)));
    Place ignore(archive_options | session::option_ignore_existing | mode);
    put(ignore, "f", 1);
    put(ignore, "g", 0);
    REQUIRE(::symlink("before", ignore.temporary.path("link").c_str()) == 0);
    std::filesystem::create_directory(ignore.temporary.path("d"));
    CHECK(stays(ignore, file("f", 4)));
    CHECK_FALSE(stays(ignore, directory("d")));
    CHECK(stays(ignore, link("link", "after")));
    CHECK_FALSE(stays(ignore, link("another", "before")));
    CHECK(stays(ignore, directory("g")));
    Entry further = file("f", 4);
    further.is_linked = true;
    further.linked_to = "absent";
    CHECK(stays(ignore, further));
    CHECK_FALSE(stays(ignore, file("g/x", 4)));  // it fails: what it would be in is no directory
  }
}

// Most likely a run of the command that was killed has brought it. The source's receipt has it, as it has what is unchanged.
TEST_CASE("entries__what_stays_and_is_the_sources__is_not_marked") {
  for (const uint32_t mode : {0u, dry}) {
    Place place(archive_options | session::option_ignore_existing | mode);
    put(place, "f", 0);
    REQUIRE(::chmod(place.temporary.path("f").c_str(), 0644) == 0);
    REQUIRE(::symlink("before", place.temporary.path("link").c_str()) == 0);
    CHECK_FALSE(place.decide_one(file("f", 4)).stays);
    CHECK_FALSE(place.decide_one(link("link", "before")).stays);
    Entry further = file("f", 4);
    further.is_linked = true;
    further.linked_to = "absent";
    CHECK_FALSE(place.decide_one(further).stays);
    CHECK(place.decide_one(file("f", 5)).stays);
    CHECK(place.decide_one(file("f", 4, 0600)).stays);  // nothing is touched: its mode is another one
    CHECK(place.stat_of("link").st_mtim.tv_sec != file("", 0).mtime.seconds);
  }
}

TEST_CASE("entries__what_stays_with_checksum__is_known_by_its_time_and_not_read") {
  Place place(archive_options | session::option_ignore_existing | session::option_checksum);
  put(place, "f", 0);
  REQUIRE(::chmod(place.temporary.path("f").c_str(), 0644) == 0);
  Entry entry = file("f", 4);
  entry.has_digest = true;
  entry.digest = session::file_digest({xxh3_128(as_bytes(std::string("new!")))});
  place.files.hook = [](std::string_view call, std::string_view name) { return call == "open" && name == "f" ? -EIO : 0; };
  CHECK_FALSE(place.decide_one(entry).stays);
  place.files.hook = nullptr;
}

TEST_CASE("entries__update_without_times__what_a_killed_run_delivered_is_not_marked") {
  for (const uint32_t option : {session::option_update, session::option_ignore_existing}) {
    Place place(session::option_recursive | option);
    const Entry entry = file("f", 4);
    const Decision wanted = place.decide_one(entry);
    REQUIRE(wanted.verdict == Verdict::send);
    REQUIRE(place.deliver(wanted.task, "new!").outcome == CommitOutcome::ok);  // its time is that of its writing
    put(place, "of_another", 1);
    const Decision again = place.decide_one(entry);
    CHECK(again.verdict == Verdict::unchanged);
    CHECK_FALSE(again.stays);
    CHECK(place.decide_one(file("of_another", 4)).stays);
  }
}

TEST_CASE("entries__update__a_newer_file_keeps_its_attributes") {
  Place place(archive_options | session::option_update);
  put(place, "newer", 1);
  const mode_t before = place.stat_of("newer").st_mode;
  CHECK(place.decide_one(file("newer", 4, 0600)).verdict == Verdict::unchanged);
  CHECK(place.stat_of("newer").st_mode == before);
  CHECK(place.stat_of("newer").st_mtim.tv_sec == 1'000'000'001);
}

TEST_CASE("entries__size_only__another_time_is_no_change_and_is_corrected") {
  Place place(archive_options | session::option_size_only);
  put(place, "f", 77);
  put(place, "longer", 0);
  CHECK(place.decide_one(file("f", 4, 0640)).verdict == Verdict::unchanged);
  CHECK(place.stat_of("f").st_mtim.tv_sec == 1'000'000'000);
  CHECK((place.stat_of("f").st_mode & 07777) == 0640);
  CHECK(place.decide_one(file("longer", 5)).verdict == Verdict::send);
}

TEST_CASE("entries__size_only_in_a_dry_run__says_what_would_change_and_touches_nothing") {
  Place place(archive_options | session::option_size_only | dry);
  put(place, "f", 77);
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::change);
  CHECK(place.stat_of("f").st_mtim.tv_sec == 1'000'000'077);
}

TEST_CASE("entries__size_only_without_times__the_size_alone_decides") {
  Place place(session::option_recursive | session::option_size_only);
  put(place, "f", 77);
  CHECK(place.decide_one(file("f", 4)).verdict == Verdict::unchanged);
  CHECK(place.decide_one(file("f", 5)).verdict == Verdict::send);
  CHECK(place.stat_of("f").st_mtim.tv_sec == 1'000'000'077);
}

TEST_CASE("entries__size_only_with_checksum__the_content_decides") {
  Place place(archive_options | session::option_size_only | session::option_checksum);
  put(place, "f", 0);
  Entry entry = file("f", 4);
  entry.has_digest = true;
  entry.digest = session::file_digest({xxh3_128(as_bytes(std::string("new!")))});
  CHECK(place.decide_one(entry).verdict == Verdict::send);
}

TEST_CASE("entries__ignore_existing__what_is_there_stays_whatever_it_is") {
  for (const uint32_t mode : {0u, dry}) {
    Place place(archive_options | session::option_ignore_existing | mode);
    put(place, "f", -5);
    std::filesystem::create_directory(place.temporary.path("empty"));
    REQUIRE(::symlink("before", place.temporary.path("link").c_str()) == 0);
    CHECK(place.decide_one(file("f", 9, 0600)).verdict == Verdict::unchanged);
    CHECK(place.decide_one(file("link", 9)).verdict == Verdict::unchanged);
    CHECK(place.decide_one(file("empty", 9)).verdict == Verdict::unchanged);
    CHECK(place.decide_one(link("f", "x")).verdict == Verdict::done);
    CHECK(place.decide_one(link("link", "after")).verdict == Verdict::done);
    CHECK(std::filesystem::read_symlink(place.temporary.path("link")) == "before");
    CHECK(place.temporary.read("f") == "old!");
    CHECK(place.decide_one(file("absent", 4)).verdict == Verdict::send);
  }
}

TEST_CASE("entries__ignore_existing__a_directory_that_is_there_is_entered_and_corrected") {
  Place place(archive_options | session::option_ignore_existing);
  std::filesystem::create_directory(place.temporary.path("d"));
  const DecidedEntries decided = place.decide({directory("d", 0700), file("d/f", 1), leave("d")});
  REQUIRE_FALSE(decided.fatal.has_value());
  CHECK(decided.decisions[1].verdict == Verdict::send);
  CHECK(decided.decisions[2].leave.has_value());
}

TEST_CASE("entries__ignore_existing__nothing_goes_into_what_is_no_directory") {
  for (const uint32_t mode : {0u, dry}) {
    Place place(archive_options | session::option_ignore_existing | mode);
    put(place, "d", 0);
    const DecidedEntries decided =
        place.decide({directory("d"), directory("d/e"), file("d/e/f", 1), leave("d/e"), leave("d"), file("d2", 1)});
    REQUIRE_FALSE(decided.fatal.has_value());
    CHECK(decided.decisions[0].verdict == Verdict::done);
    CHECK(decided.decisions[1].verdict == Verdict::failed);
    CHECK(decided.decisions[2].verdict == Verdict::failed);
    CHECK(decided.decisions[2].error_number == ENOTDIR);
    CHECK_FALSE(decided.decisions[3].leave.has_value());
    CHECK_FALSE(decided.decisions[4].leave.has_value());
    CHECK(decided.decisions[5].verdict == Verdict::send);
    CHECK(place.temporary.read("d") == "old!");
  }
}

}  // namespace ccixfer::recv
