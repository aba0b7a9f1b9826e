// What earlier sessions of a transfer wanted and said of a file.
#include "app/session/transfer_record.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

namespace ccixfer::session {
namespace {

using Said = TransferRecord::Said;

TEST_CASE("transfer_record__file_wanted_by_an_earlier_session__is_delivered_not_unchanged") {
  TransferRecord record;
  const uint64_t file = TransferRecord::name("a", 1);
  CHECK_FALSE(record.delivered(file, 100));
  CHECK(record.want(file, 100, 100) == 100);
  CHECK(record.delivered(file, 100) == 100u);
  CHECK_FALSE(record.delivered(TransferRecord::name("a", 2), 100));  // another version is another file
  CHECK_FALSE(record.delivered(TransferRecord::name("b", 1), 100));
}

TEST_CASE("transfer_record__pieces_of_an_earlier_session__belong_to_what_the_transfer_moves") {
  TransferRecord record;
  const uint64_t file = TransferRecord::name("large", 1);
  CHECK(record.want(file, 100, 60) == 60);  // 40 were there before the transfer
  CHECK(record.want(file, 100, 10) == 60);  // 50 came in the first session
  CHECK(record.delivered(file, 100) == 60u);
  CHECK(record.want(file, 100, 100) == 100);  // all of it was lost
  CHECK(record.want(file, 100, 10) == 100);
  CHECK(record.delivered(file, 100) == 100u);
}

TEST_CASE("transfer_record__what_is_said_of_a_file__is_news_only_when_it_changes") {
  TransferRecord record;
  const uint64_t file = TransferRecord::name("a", 1);
  CHECK(record.say(file, Said::failed));
  CHECK_FALSE(record.say(file, Said::failed));
  CHECK(record.want(file, 10, 10) == 10);
  CHECK(record.say(file, Said::ok));
  CHECK_FALSE(record.say(file, Said::ok));
  CHECK(record.delivered(file, 10) == 10u);
  CHECK_FALSE(record.delivered(TransferRecord::name("b", 1), 10));
}

TEST_CASE("transfer_record__more_files_than_it_keeps__the_rest_is_new_each_time") {
  constexpr size_t most = 1000;
  TransferRecord record(most);
  for (const bool again : {false, true}) {
    for (uint64_t i = 0; i < 2 * most; ++i) {
      const uint64_t file = TransferRecord::name("f" + std::to_string(i), i);
      CHECK(record.delivered(file, 7).has_value() == (again && i < most));
      CHECK(record.say(file, Said::ok) == (!again || i >= most));
      CHECK(record.want(file, 7, 7) == 7);
    }
  }
}

TEST_CASE("transfer_record__many_files_with_parts_and_without__each_is_found_again") {
  TransferRecord record;
  constexpr uint64_t count = 5000;
  const auto name = [](uint64_t i) { return TransferRecord::name("d/" + std::to_string(i % 97), i); };
  for (uint64_t i = 0; i < count; ++i) {
    CHECK(record.say(name(i), i % 2 == 0 ? Said::unchanged : Said::failed));
    if (i % 3 != 0) CHECK(record.want(name(i), 100, i % 3 == 1 ? 100 : i % 50 + 1) == (i % 3 == 1 ? 100 : i % 50 + 1));
  }
  for (uint64_t i = 0; i < count; ++i) {
    CHECK_FALSE(record.say(name(i), i % 2 == 0 ? Said::unchanged : Said::failed));
    const auto delivered = record.delivered(name(i), 100);
    CHECK(delivered.has_value() == (i % 3 != 0));
    if (delivered) CHECK(*delivered == (i % 3 == 1 ? 100 : i % 50 + 1));
    CHECK(record.say(name(i), Said::ok));
  }
  CHECK_FALSE(record.delivered(name(count), 100).has_value());
}

// Of no path is it 0 or its low bits set: those say something else.
TEST_CASE("transfer_record__names__differ_by_path_and_version") {
  std::vector<uint64_t> names;
  for (uint64_t version = 0; version < 50; ++version) {
    for (const char* path : {"", "a", "b", "a/b", "ab"}) names.push_back(TransferRecord::name(path, version));
  }
  for (const uint64_t one : names) {
    CHECK(one != 0);
    CHECK(one % 8 == 0);
  }
  std::sort(names.begin(), names.end());
  CHECK(std::unique(names.begin(), names.end()) == names.end());
}

}  // namespace
}  // namespace ccixfer::session
