// What is done to each entry, with --itemize-changes: the same in a dry run, and found before anything is touched.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/session/item.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using namespace test;

namespace {

constexpr uint32_t itemized = archive_options | session::option_itemize;

void put(const Place& place, const std::string& path, int64_t later_s, mode_t mode = 0644) {
  place.temporary.write(path, "old!");
  REQUIRE(::chmod(place.temporary.path(path).c_str(), mode) == 0);
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000 + later_s, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path(path).c_str(), times, 0) == 0);
}

std::string letters(Place& place, const Entry& entry) {
  const bool keeps_times = place.policy.has(session::option_times);
  return session::letters_of(place.decide_one(entry).items, {entry.type, false, keeps_times});
}

}  // namespace

TEST_CASE("entries__itemized__the_letters_of_files") {
  for (const uint32_t mode : {0u, uint32_t{session::option_dry_run}}) {
    Place place(itemized | mode);
    put(place, "same", 0);
    put(place, "mode", 0, 0600);
    put(place, "time", 5);
    put(place, "size", 0);
    std::filesystem::create_directory(place.temporary.path("empty"));
    REQUIRE(::symlink("x", place.temporary.path("link").c_str()) == 0);
    CHECK(place.decide_one(file("same", 4)).items == 0);
    CHECK(letters(place, file("mode", 4)) == ".f...p.....");
    CHECK(letters(place, file("time", 4)) == ">f..t......");
    CHECK(letters(place, file("size", 5, 0600)) == ">f.s.p.....");
    CHECK(letters(place, file("new", 4)) == ">f+++++++++");
    CHECK(letters(place, file("empty", 4)) == ">f+++++++++");
    CHECK(letters(place, file("link", 4)) == ">f+++++++++");
  }
}

TEST_CASE("entries__itemized__the_letters_of_directories_and_links") {
  for (const uint32_t mode : {0u, uint32_t{session::option_dry_run}}) {
    Place place(itemized | mode);
    put(place, "file", 0);
    std::filesystem::create_directory(place.temporary.path("d"));
    REQUIRE(::chmod(place.temporary.path("d").c_str(), 0500) == 0);
    REQUIRE(::symlink("x", place.temporary.path("link").c_str()) == 0);
    CHECK(letters(place, directory("d")) == ".d..tp.....");
    CHECK(letters(place, directory("new")) == "cd+++++++++");
    CHECK(letters(place, link("link", "x")) == ".L..t......");
    CHECK(letters(place, link("link", "y")) == (mode == 0 ? "cLc........" : "cLc.t......"));  // its time was just corrected
    CHECK(letters(place, link("file", "y")) == "cL+++++++++");
    CHECK(letters(place, link("new_link", "y")) == "cL+++++++++");
    CHECK(place.decide_one(link("new_link", "y")).target == "y");
  }
}

TEST_CASE("entries__itemized_without_times__what_is_sent_has_the_time_of_its_writing") {
  Place place(session::option_recursive | session::option_itemize);
  put(place, "f", 0);
  std::filesystem::create_directory(place.temporary.path("d"));
  CHECK(letters(place, file("f", 4)) == ">f..T......");
  CHECK(letters(place, file("f", 5)) == ">f.sT......");
  CHECK(place.decide_one(directory("d")).items == 0);
}

TEST_CASE("entries__itemized_with_checksum__what_is_sent_has_another_content") {
  Place place(itemized | session::option_checksum);
  put(place, "f", 0);
  Entry entry = file("f", 4);
  entry.has_digest = true;
  CHECK(letters(place, entry) == ">fc........");
}

TEST_CASE("entries__itemized__a_directory_that_the_session_made_is_new") {
  Place place(itemized | session::option_directory, "made/here");
  CHECK(letters(place, directory("")) == "cd+++++++++");
  Place again(itemized | session::option_directory, "made");
  std::filesystem::create_directory(again.temporary.path("made"));
  CHECK(letters(again, directory("")) == ".d..t......");
  Place dry(itemized | session::option_directory | session::option_dry_run, "made");
  CHECK(letters(dry, directory("")) == "cd+++++++++");
  CHECK(letters(dry, directory("d")) == "cd+++++++++");
  CHECK(letters(dry, file("d/f", 4)) == ">f+++++++++");
  Place root(itemized);
  root.decider.set_base_made();
  CHECK(letters(root, directory("")) == "cd+++++++++");
}

TEST_CASE("entries__not_itemized__nothing_is_told") {
  Place place;
  put(place, "f", 5);
  CHECK(place.decide_one(file("f", 5)).items == 0);
  CHECK(place.decide_one(directory("d")).items == 0);
  CHECK(place.decide_one(link("l", "t")).target.empty());
}

}  // namespace ccixfer::recv
