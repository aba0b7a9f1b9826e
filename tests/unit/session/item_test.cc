// rsync's letters for what is done to an entry.
#include "app/session/item.h"

#include <catch2/catch.hpp>

namespace ccixfer::session {

TEST_CASE("item__letters__each_bit_has_its_place") {
  const ItemView kept{EntryType::file, false, true};
  CHECK(letters_of(item_sent, kept) == ">f.........");
  CHECK(letters_of(item_sent | item_content, kept) == ">fc........");
  CHECK(letters_of(item_sent | item_size, kept) == ">f.s.......");
  CHECK(letters_of(item_time, kept) == ".f..t......");
  CHECK(letters_of(item_mode, kept) == ".f...p.....");
  CHECK(letters_of(item_owner, kept) == ".f....o....");
  CHECK(letters_of(item_group, kept) == ".f.....g...");
  CHECK(letters_of(item_acl, kept) == ".f.......a.");
  CHECK(letters_of(item_xattrs, kept) == ".f........x");
  CHECK(letters_of(items_known & ~(item_new | item_made | item_linked), kept) == ">fcstpog.ax");
}

TEST_CASE("item__letters__what_is_new_has_a_plus_throughout") {
  CHECK(letters_of(item_sent | item_new | item_time, {EntryType::file, true, true}) == "<f+++++++++");
  CHECK(letters_of(item_made | item_new, {EntryType::directory, false, true}) == "cd+++++++++");
  CHECK(letters_of(item_made | item_content | item_new, {EntryType::symlink, false, true}) == "cL+++++++++");
}

TEST_CASE("item__letters__types_directions_and_times_that_are_not_kept") {
  CHECK(letters_of(item_sent | item_time, {EntryType::file, true, false}) == "<f..T......");
  CHECK(letters_of(item_time, {EntryType::directory, true, true}) == ".d..t......");
  CHECK(letters_of(item_made | item_content | item_time, {EntryType::symlink, true, true}) == "cLc.t......");
  CHECK(letters_of(item_size | item_time, {EntryType::directory, true, true}) == ".d..t......");  // files alone have a size
  CHECK(letters_of(item_made | item_linked, {EntryType::file, true, true}) == "hf         ");
  CHECK(letters_of(item_made, {EntryType::file, true, true}) == "cf         ");
  CHECK(letters_of(item_made | item_linked | item_mode, {EntryType::file, true, true}) == "hf...p.....");
}

TEST_CASE("item__told__links_and_copies_alone_are_no_news") {
  CHECK_FALSE(is_told(0));
  CHECK_FALSE(is_told(item_made | item_linked));
  CHECK_FALSE(is_told(item_made));
  for (const Item bit :
       {item_sent, item_new, item_content, item_size, item_time, item_mode, item_owner, item_group, item_acl, item_xattrs}) {
    CHECK(is_told(bit));
  }
}

TEST_CASE("item__names__directories_end_in_a_slash") {
  CHECK(item_name("", EntryType::directory) == "./");
  CHECK(item_name("a/b", EntryType::directory) == "a/b/");
  CHECK(item_name("a/b", EntryType::file) == "a/b");
  CHECK(item_name("l", EntryType::symlink) == "l");
}

}  // namespace ccixfer::session
