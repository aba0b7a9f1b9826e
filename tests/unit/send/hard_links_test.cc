// Which names belong to one file, also where they are too many for memory.
#include "app/send/hard_links.h"

#include <catch2/catch.hpp>
#include <string>

namespace ccixfer::send {
namespace {

ports::FileStat file(uint64_t inode, uint64_t links = 2, uint64_t device = 1) {
  ports::FileStat stat;
  stat.type = ports::FileType::regular;
  stat.inode = inode;
  stat.links = links;
  stat.device = device;
  return stat;
}

}  // namespace

TEST_CASE("hard_links__names_of_one_file__the_first_leads") {
  HardLinks links;
  CHECK_FALSE(links.list(file(1, 1), "alone").is_linked);
  const HardLinks::Listed first = links.list(file(7, 3), "a");
  CHECK((first.is_linked && first.first_path.empty()));
  CHECK(links.list(file(7, 3), "b").first_path == "a");
  CHECK(links.list(file(7, 3, 2), "other device").first_path.empty());
  CHECK(links.list(file(7, 3), "c").first_path == "a");
  CHECK(links.list(file(7, 3), "d").first_path.empty());  // more names than it had: a file of its own
}

// By links that are followed, and with several sources, a file has more names in the list than in its file system.
TEST_CASE("hard_links__names_that_come_again__are_names_of_the_file_that_was_listed_first") {
  const size_t in_memory = GENERATE(0u, 9u);
  HardLinks links(true, in_memory);
  CHECK(links.list(file(7), "a").first_path.empty());
  for (const char* name : {"b", "link", "link/b", "b"}) CHECK(links.list(file(7), name).first_path == "a");
  const HardLinks::Listed first = links.list(file(7), "a");
  CHECK((first.is_linked && first.first_path.empty()));  // no link to itself
}

TEST_CASE("hard_links__directories_and_what_has_no_path__are_not_linked") {
  HardLinks links;
  ports::FileStat stat = file(1, 9);
  stat.type = ports::FileType::directory;
  CHECK_FALSE(links.list(stat, "d").is_linked);
  CHECK_FALSE(links.list(file(2), "").is_linked);
}

TEST_CASE("hard_links__more_files_than_memory_has_room_for__the_table_knows_them") {
  HardLinks links(false, 2);
  const auto name = [](uint64_t inode) { return "first/" + std::to_string(inode); };
  for (uint64_t inode = 1; inode <= 500; ++inode) {
    const HardLinks::Listed listed = links.list(file(inode), name(inode));
    CHECK((listed.is_linked && listed.first_path.empty()));
  }
  for (uint64_t inode = 500; inode >= 1; --inode) CHECK(links.list(file(inode), "again").first_path == name(inode));
}

// All names of a file may go before they are listed, and another file gets its inode.
TEST_CASE("hard_links__an_inode_with_other_content__is_another_file_whose_first_name_this_is") {
  const size_t in_memory = GENERATE(0u, 9u);
  HardLinks links(false, in_memory);
  ports::FileStat old = file(7, 4);
  old.mtime = {1'000, 5};
  old.size_bytes = 10;
  REQUIRE(links.list(old, "old").first_path.empty());
  ports::FileStat newer = old;
  SECTION("by a nanosecond of its time") { newer.mtime.nanoseconds = 6; }
  SECTION("by its time") { newer.mtime.seconds = 1'001; }
  SECTION("by its size") { newer.size_bytes = 11; }
  const HardLinks::Listed listed = links.list(newer, "newer");
  CHECK((listed.is_linked && listed.first_path.empty()));
  newer.ctime = {2'000, 0};  // as another name changes it
  CHECK(links.list(newer, "newer/again").first_path == "newer");
  CHECK(links.list(newer, "newer/once more").first_path == "newer");
}

}  // namespace ccixfer::send
