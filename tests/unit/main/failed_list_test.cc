// The file of --failed-list, over several sessions and transfers.
#include "app/main/failed_list.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/unit/recv/faulty_files.h"

using namespace ccixfer;
using namespace ccixfer::program;
using ccixfer::recv::test::TemporaryDirectory;

namespace {

struct Desk {
  explicit Desk(ListFormat format = ListFormat::lines)
      : list(FailedList::begin(directory.path("failed"), format, directory.path()).value()) {
    list->session_begins();
  }
  std::string finish() {
    REQUIRE(list->finish(left_out));
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) files += entry.path().filename() != "failed";
    CHECK(files == 0);  // nothing staged is left
    return directory.read("failed");
  }
  const TemporaryDirectory directory;
  std::unique_ptr<FailedList> list;
  uint64_t left_out = 0;
};

}  // namespace

TEST_CASE("failed_list__nothing_failed__is_empty_in_place_of_the_last_one") {
  Desk desk;
  desk.directory.write("failed", "of yesterday\n");
  desk.list->ended("a", "ok");
  desk.list->ended("b", "unchanged");
  desk.list->ended("c", "skipped");
  CHECK(desk.directory.read("failed") == "of yesterday\n");  // until the end
  CHECK(desk.finish().empty());
  CHECK(desk.directory.has("failed"));
}

TEST_CASE("failed_list__no_session_began__the_last_one_stays") {
  const TemporaryDirectory directory;
  directory.write("failed", "of yesterday\n");
  const auto list = FailedList::begin(directory.path("failed"), ListFormat::lines, directory.path()).value();
  SECTION("of one transfer") {}
  SECTION("of several") { list->transfer_ends(); }
  uint64_t left_out = 1;
  REQUIRE(list->finish(left_out));
  CHECK(left_out == 0);
  CHECK(directory.read("failed") == "of yesterday\n");
}

TEST_CASE("failed_list__one_of_several_transfers_had_a_session__takes_the_place_of_the_last_one") {
  Desk desk;
  desk.directory.write("failed", "of yesterday\n");
  desk.list->transfer_ends();
  desk.list->transfer_ends();
  CHECK(desk.finish().empty());
}

TEST_CASE("failed_list__names__one_a_line_as_files_from_reads_them") {
  Desk desk;
  for (const char* name : {"d/a", "#b", ";c", "d/#e", " f ", "not utf8 \xff\xfe", "esc \x1b[2J"}) desk.list->ended(name, "failed");
  desk.list->ended("d/line\nbreak", "failed");
  desk.list->ended("d/return\r", "failed");
  CHECK(desk.finish() == "d/a\n./#b\n./;c\nd/#e\n f \nnot utf8 \xff\xfe\nesc \x1b[2J\n");
  CHECK(desk.left_out == 2);
}

TEST_CASE("failed_list__nul_terminated__holds_every_name") {
  Desk desk(ListFormat::nul_terminated);
  desk.list->ended("#a", "failed");
  desk.list->ended("line\nbreak", "failed");
  CHECK(desk.finish() == std::string("./#a\0line\nbreak\0", 16));  // --files-from -0 has comments too, as rsync's
  CHECK(desk.left_out == 0);
}

TEST_CASE("failed_list__a_later_session__has_the_last_word_on_a_name") {
  Desk desk;
  for (const char* name : {"mended", "broken", "found"}) desk.list->ended(name, "failed");
  desk.list->session_begins();
  desk.list->ended("mended", "ok");
  desk.list->ended("found", "unchanged");
  desk.list->ended("late", "ok");
  desk.list->ended("late", "failed");
  CHECK(desk.finish() == "broken\nlate\n");
}

// Attributes that cannot be read fail, and the file itself is delivered.
TEST_CASE("failed_list__what_fails_again_and_is_delivered_all_the_same__stays_in_it_once") {
  Desk desk;
  for (const char* name : {"again", "mended later", "absent", "mended"}) desk.list->ended(name, "failed");
  desk.list->failed_again("mended");  // there are two reasons
  desk.list->ended("again", "ok");
  desk.list->session_begins();
  for (const char* name : {"again", "again", "mended later", "absent"}) desk.list->failed_again(name);
  for (const char* name : {"again", "mended later", "mended"}) desk.list->ended(name, "ok");
  desk.list->session_begins();
  for (const char* name : {"again", "absent"}) desk.list->failed_again(name);
  for (const char* name : {"again", "mended later"}) desk.list->ended(name, "unchanged");
  desk.list->transfer_ends();
  desk.list->session_begins();
  for (const char* name : {"again", "absent"}) desk.list->ended(name, "ok");  // of another source
  CHECK(desk.finish() == "again\nabsent\n");
}

// The name is not known here; how many there are is.
TEST_CASE("failed_list__names_that_are_not_known__are_counted_by_the_last_session_of_each_transfer") {
  Desk desk;
  CHECK(desk.list->unnamed() == 0);
  desk.list->add_unnamed(5);
  desk.list->session_begins();
  CHECK(desk.list->unnamed() == 0);
  desk.list->add_unnamed(1);
  desk.list->add_unnamed(1);
  desk.list->transfer_ends();
  desk.list->session_begins();
  desk.list->add_unnamed(3);
  desk.list->transfer_ends();
  CHECK(desk.list->unnamed() == 5);
}

TEST_CASE("failed_list__one_of_several_transfers__does_not_mend_what_another_could_not") {
  Desk desk;
  desk.list->ended("a", "failed");
  desk.list->transfer_ends();
  desk.list->session_begins();
  desk.list->ended("a", "ok");  // of another source
  CHECK(desk.finish() == "a\n");
}

TEST_CASE("failed_list__a_later_session_of_another_transfer__mends_its_own_names_only") {
  Desk desk;
  desk.list->ended("a", "failed");
  desk.list->ended("b", "failed");
  desk.list->session_begins();
  desk.list->ended("b", "ok");
  desk.list->transfer_ends();
  desk.list->session_begins();
  desk.list->ended("c", "failed");
  desk.list->ended("d", "failed");
  desk.list->session_begins();
  desk.list->ended("a", "ok");  // of another source
  desk.list->ended("c", "ok");
  desk.list->transfer_ends();
  desk.list->session_begins();
  desk.list->session_begins();
  desk.list->ended("d", "ok");  // of a third one
  desk.list->transfer_ends();
  CHECK(desk.finish() == "a\nd\n");
}

TEST_CASE("failed_list__more_than_a_block__comes_whole") {
  Desk desk;
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = "directory/file " + std::to_string(i);
    desk.list->ended(name, "failed");
    if (i % 2 == 0) expected += name + "\n";
  }
  desk.list->session_begins();
  for (int i = 1; i < 20'000; i += 2) desk.list->ended("directory/file " + std::to_string(i), "ok");
  CHECK(desk.finish() == expected);
}

TEST_CASE("failed_list__a_place_that_cannot_be_written__is_named_at_once") {
  const TemporaryDirectory directory;
  REQUIRE(::mkfifo(directory.path("pipe").c_str(), 0600) == 0);
  for (const std::string& file :
       {directory.path("no/such/list"), directory.path(), directory.path("pipe"), std::string("/dev/null")}) {
    const auto list = FailedList::begin(file, ListFormat::lines, directory.path());
    REQUIRE_FALSE(list);
    CHECK(list.error().kind == ErrorKind::usage);
    CHECK(list.error().message.find(file) != std::string::npos);
  }
  CHECK(FailedList::begin("", ListFormat::lines, directory.path()).value() == nullptr);
}

TEST_CASE("failed_list__the_place_has_gone_at_the_end__is_an_error_of_files") {
  Desk desk;
  desk.list->ended("a", "failed");
  std::filesystem::remove_all(desk.directory.path());
  const auto finished = desk.list->finish(desk.left_out);
  REQUIRE_FALSE(finished);
  CHECK(finished.error().kind == ErrorKind::file_io);
}
