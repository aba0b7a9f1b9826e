// What a destination that deletes may believe of a walk: which names are there without an entry.
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "app/send/walk.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using send::Walk;
using send::WalkBatch;
using send::WalkOptions;
using send::WalkRecord;
using session::EntryType;

WalkOptions of(std::string source) {
  WalkOptions options;
  options.sources = {std::move(source)};
  options.links = true;
  return options;
}

// What a destination that deletes hears of the source's directory: "all: " or "not all: " and the names that it shall keep.
std::string listed_in(const WalkOptions& options, const std::function<int(std::string_view call, std::string_view name)>& hook) {
  WatchedFiles files;
  Walk walk(options);
  REQUIRE(walk.select(files));
  std::string told;
  for (bool done = false; !done;) {
    WalkBatch batch;
    files.hook = hook;
    walk.step(files, batch, true);
    for (const WalkRecord& record : batch.records) {
      if (record.kind != WalkRecord::Kind::entry || record.type != EntryType::leave || !batch.path(record).empty()) continue;
      told = record.is_whole ? "all: " : "not all: ";
      for (const char c : batch.more(record)) told.push_back(c == '\0' ? ' ' : c);
    }
    done = batch.done;
  }
  walk.close(files);
  return told;
}

TEST_CASE("walk__what_has_no_entry_and_is_there_all_the_same__is_kept_by_a_destination_that_deletes") {
  const TempDir dir;
  dir.file("t/a", "");
  dir.directory("t/d");
  std::filesystem::create_symlink("nowhere", dir.path("t/link"));
  std::filesystem::create_symlink(".", dir.path("t/up"));
  WalkOptions options = of(dir.path("t/"));
  options.tells_listed = true;
  const auto error_of = [](std::string_view wanted_call, std::string_view wanted_name, int error) {
    return [=](std::string_view call, std::string_view name) { return call == wanted_call && name == wanted_name ? error : 0; };
  };
  const auto none = [](std::string_view, std::string_view) { return 0; };
  CHECK(listed_in(options, none) == "all: ");
  // It is gone, and nothing but that error says so.
  CHECK(listed_in(options, error_of("stat_at", "a", -ENOENT)) == "all: ");
  CHECK(listed_in(options, error_of("open", "d", -ENOENT)) == "all: ");
  for (const int error : {-ESTALE, -EIO, -ENOTDIR, -EACCES}) {
    CAPTURE(error);
    CHECK(listed_in(options, error_of("stat_at", "a", error)) == "all: a ");
  }
  for (const int error : {-ENOTDIR, -ELOOP}) CHECK(listed_in(options, error_of("open", "d", error)) == "all: d ");
  // Where links are followed: one that leads nowhere, and one that leads back.
  options.links = false;
  CHECK(listed_in(options, none) == "all: link up ");
}

TEST_CASE("walk__a_file_server_loses_its_handles__nothing_has_vanished") {
  const TempDir dir;
  dir.file("t/a", "");
  WatchedFiles files;
  Walk walk(of(dir.path("t/")));
  REQUIRE(walk.select(files));
  files.hook = [](std::string_view call, std::string_view name) { return call == "stat_at" && name == "a" ? -ESTALE : 0; };
  WalkBatch batch;
  walk.step(files, batch, true);
  walk.close(files);
  REQUIRE(batch.records.size() == 3);
  CHECK(batch.records[1].kind == WalkRecord::Kind::failed);
  CHECK(batch.path(batch.records[1]) == "a");
}

}  // namespace
}  // namespace ccixfer::send_test
