// Listing trees: order, bounds, and what is not an ordinary file.
#include "app/send/walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "tests/unit/send/walk_lines.h"

namespace ccixfer::send_test {
namespace {

TEST_CASE("walk__tree__depth_first_names_in_byte_order") {
  const TempDir dir;
  for (const char* name : {"t/b", "t/a/x", "t/a-", "t/B", "t/c/d/e"}) dir.file(name, "");
  dir.directory("t/empty");
  const Lines expected = {">", "B", ">a", "a/x", "<a", "a-", "b", ">c", ">c/d", "c/d/e", "<c/d", "<c", ">empty", "<empty", "<"};
  CHECK(lines_of(of({dir.path("t")})) == expected);
  CHECK(lines_of(of({dir.path("t/")})) == expected);
  WalkOptions small_steps = of({dir.path("t")});
  small_steps.batch_entries_max = 1;
  CHECK(lines_of(small_steps) == expected);
}

TEST_CASE("walk__more_names_than_a_list_holds__all_are_listed_once_in_order") {
  const TempDir dir;
  Lines expected = {">"};
  std::set<std::string> names;
  for (int i = 0; i < 2000; ++i) names.insert("name-" + std::to_string(i * 7919 % 100003));
  for (const std::string& name : names) {
    dir.file("t/" + name, "");
    expected.push_back(name);
  }
  expected.emplace_back("<");
  WalkOptions options = of({dir.path("t")});
  options.names_bytes_max = 4000;
  Listing listing;
  list(listing, options);
  CHECK((listing.lines == expected));
  CHECK(listing.files.directory_reads > 5);
}

TEST_CASE("walk__more_names_than_a_list_holds_and_a_spool__each_name_is_read_once") {
  const TempDir dir;
  dir.directory("spool");
  std::set<std::string> names;
  for (int i = 0; i < 3000; ++i) names.insert("name-" + std::to_string(i * 7919 % 100003));
  for (const std::string& name : names) dir.file("t/" + name, "");
  Lines expected(names.begin(), names.end());
  expected.insert(expected.begin(), ">");
  expected.emplace_back("<");
  WalkOptions options = of({dir.path("t")});
  options.names_bytes_max = 4000;
  options.spool_directory = dir.path("spool");
  Listing listing;
  list(listing, options);
  CHECK((listing.lines == expected));
  CHECK(listing.files.directory_reads == 1);
  CHECK(listing.files.names_read == names.size());
  CHECK(std::filesystem::is_empty(dir.path("spool")));
}

// Whatever fails of the spool, and wherever lists are let go on the way: the same listing.
TEST_CASE("walk__any_tree_with_little_memory__is_listed_as_with_much") {
  std::mt19937_64 random(11);
  const TempDir dir;
  std::vector<std::string> directories = {"t"};
  for (int i = 0; i < 1500; ++i) {
    const std::string path = directories[random() % directories.size()] + "/n" + std::to_string(random() % 100000);
    if (random() % 20 == 0) {
      dir.directory(path);
      directories.push_back(path);
    } else if (!std::filesystem::exists(dir.path(path))) {
      dir.file(path, "");
    }
  }
  dir.directory("spool");
  const Lines expected = lines_of(of({dir.path("t")}));
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    WalkOptions options = of({dir.path("t")});
    options.names_bytes_max = 40 + random() % 2000;
    options.names_total_bytes_max = 1 + random() % 4000;
    if (random() % 8 != 0) options.spool_directory = dir.path(random() % 8 == 0 ? "absent" : "spool");
    const uint64_t fails = random() % 3 == 0 ? 2 + random() % 30 : 0;
    Listing listing;
    listing.files.write_max = random() % 2 == 0 ? 7 : ~size_t{0};
    listing.files.hook = [&](std::string_view call, std::string_view) {
      return fails != 0 && (call == "pwrite" || call == "pread") && random() % fails == 0 ? -EIO : 0;
    };
    list(listing, options);
    REQUIRE((listing.lines == expected));
    if (fails == 0 && options.spool_directory == dir.path("spool")) {
      REQUIRE(listing.files.directory_reads ==
              static_cast<int>(std::count_if(expected.begin(), expected.end(), [](auto& line) { return line[0] == '>'; })));
    }
  }
  CHECK(std::filesystem::is_empty(dir.path("spool")));
}

TEST_CASE("walk__deep_tree__descriptors_are_bounded_and_paths_too_long_are_said") {
  const TempDir dir;
  constexpr int depth = 3000;
  dir.directory("t");
  int at = ::open(dir.path("t").c_str(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < depth; ++i) {
    REQUIRE(::mkdirat(at, "d", 0755) == 0);
    const int file = ::openat(at, "f", O_CREAT | O_WRONLY, 0644);
    ::close(file);
    const int next = ::openat(at, "d", O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = next;
  }
  ::close(at);
  Listing listing;
  list(listing, of({dir.path("t")}));
  CHECK(listing.files.open_most <= static_cast<int>(send::walk_descriptors_max) + 4);
  const auto failed =
      std::count_if(listing.lines.begin(), listing.lines.end(), [](const std::string& line) { return line[0] == '!'; });
  CHECK(failed >= 1);
  const auto files =
      std::count_if(listing.lines.begin(), listing.lines.end(), [](const std::string& line) { return line.back() == 'f'; });
  CHECK(files > 2000);
}

TEST_CASE("walk__links__kept_or_followed") {
  const TempDir dir;
  dir.file("t/real/f", "");
  std::filesystem::create_symlink("real", dir.path("t/dir-link"));
  std::filesystem::create_symlink("real/f", dir.path("t/file-link"));
  std::filesystem::create_symlink("nowhere", dir.path("t/dangling"));
  std::filesystem::create_symlink("..", dir.path("t/real/up"));
  CHECK(lines_of(of({dir.path("t")})) == Lines{">", "dangling -> nowhere", "dir-link -> real", "file-link -> real/f", ">real",
                                               "real/f", "real/up -> ..", "<real", "<"});
  CHECK(lines_of(of({dir.path("t")}, false)) == Lines{">", "! dangling: a symbolic link that leads nowhere", ">dir-link",
                                                      "dir-link/f", "! dir-link/up: a symbolic link to a directory that it is in",
                                                      "<dir-link", "file-link", ">real", "real/f",
                                                      "! real/up: a symbolic link to a directory that it is in", "<real", "<"});
}

TEST_CASE("walk__served_directory__links_are_not_followed_and_nothing_above_is_reached") {
  const TempDir dir;
  dir.file("outside/secret", "");
  dir.file("served/t/f", "");
  std::filesystem::create_symlink(dir.path("outside"), dir.path("served/t/out"));
  std::filesystem::create_symlink(dir.path("outside"), dir.path("served/out"));
  const int served = ::open(dir.path("served").c_str(), O_RDONLY | O_DIRECTORY);
  WalkOptions options = of({"t/"}, false);
  options.served_root = served;
  CHECK(lines_of(options) ==
        Lines{">", "f", "! out: a symbolic link of a served directory is not followed: pull with -a to keep it", "<"});
  WatchedFiles files;
  for (const std::string path : {"../outside", "t/../../outside", "out", "out/secret"}) {
    options.sources = {path};
    Walk walk(options);
    const auto selected = walk.select(files);
    REQUIRE(!selected);
    CHECK((selected.error().kind == ErrorKind::not_authorised || selected.error().kind == ErrorKind::source_selection));
  }
  options.sources = {""};
  options.links = true;
  CHECK(lines_of(options) ==
        Lines{">", "out -> " + dir.path("outside"), ">t", "t/f", "t/out -> " + dir.path("outside"), "<t", "<"});
  ::close(served);
}

TEST_CASE("walk__link_of_a_served_directory_by_its_own_name__kept_with_its_target") {
  const TempDir dir;
  dir.file("served/t/f", "");
  dir.file("outside/secret", "");
  std::filesystem::create_symlink("t/f", dir.path("served/top"));
  std::filesystem::create_symlink("f", dir.path("served/t/link"));
  std::filesystem::create_symlink(dir.path("outside"), dir.path("served/out"));
  const int served = ::open(dir.path("served").c_str(), O_RDONLY | O_DIRECTORY);
  const auto lines = [served](const char* source) {
    WalkOptions options = of({source});
    options.served_root = served;
    return lines_of(options);
  };
  CHECK(lines("top") == Lines{" -> t/f"});
  CHECK(lines("t/link") == Lines{" -> f"});
  CHECK(lines("out") == Lines{" -> " + dir.path("outside")});  // the link itself is below the root
  ::close(served);
}

TEST_CASE("walk__served_directory_becomes_a_link__nothing_is_read_behind_it") {
  const TempDir dir;
  dir.directory("served/t");
  dir.directory("outside");
  std::filesystem::create_symlink("f", dir.path("served/t/link"));
  std::filesystem::create_symlink("secret", dir.path("outside/link"));
  const int served = ::open(dir.path("served").c_str(), O_RDONLY | O_DIRECTORY);
  WalkOptions options = of({"t/link"});
  options.served_root = served;
  WatchedFiles files;
  Walk walk(options);
  REQUIRE(walk.select(files));
  std::filesystem::rename(dir.path("served/t"), dir.path("served/was"));
  std::filesystem::create_symlink(dir.path("outside"), dir.path("served/t"));
  WalkBatch batch;
  walk.step(files, batch, true);
  REQUIRE(batch.records.size() == 1);
  CHECK(batch.records[0].kind == WalkRecord::Kind::failed);
  CHECK(files.open_now == 0);
  ::close(served);
}

TEST_CASE("walk__served_path_that_leads_outside__not_authorised_and_unreadable_is_said") {
  const TempDir dir;
  dir.file("served/t/f", "");
  const int served = ::open(dir.path("served").c_str(), O_RDONLY | O_DIRECTORY);
  for (const int error : {EXDEV, ELOOP, EACCES, ENOENT}) {
    for (const bool links : {true, false}) {
      INFO(std::strerror(error));
      WalkOptions options = of({"t/f"}, links);
      options.served_root = served;
      WatchedFiles files;
      files.hook = [error](std::string_view call, std::string_view) { return call == "open" || call == "stat_at" ? -error : 0; };
      Walk walk(options);
      const auto selected = walk.select(files);
      REQUIRE(!selected);
      const bool outside = error == EXDEV || error == ELOOP;
      CHECK(selected.error().kind == (outside ? ErrorKind::not_authorised : ErrorKind::source_selection));
      CHECK(selected.error().message.find(outside ? "t/f: not below the served directory" : std::strerror(error)) !=
            std::string::npos);
    }
  }
  ::close(served);
}

TEST_CASE("walk__links_that_lead_to_one_another_as_source__are_no_matter_of_authority") {
  const TempDir dir;
  std::filesystem::create_symlink("b", dir.path("a"));
  std::filesystem::create_symlink("a", dir.path("b"));
  WatchedFiles files;
  const auto selected = Walk(of({dir.path("a")}, false)).select(files);
  REQUIRE_FALSE(selected);
  CHECK(selected.error().kind == ErrorKind::source_selection);
  CHECK(lines_of(of({dir.path("a")})) == Lines{" -> b"});
}

TEST_CASE("walk__served_name_with_doubled_slashes_and_dots__is_the_same_source") {
  const TempDir dir;
  dir.file("served/t/d/f", "");
  const int served = ::open(dir.path("served").c_str(), O_RDONLY | O_DIRECTORY);
  for (const char* name : {"t/d", "t//d", "/t/./d/", "./t/d/."}) {
    CAPTURE(name);
    WalkOptions options = of({name});
    options.served_root = served;
    CHECK(lines_of(options) == Lines{">", "f", "<"});
  }
  for (const char* name : {"..", "t/../..", "t/.."}) {
    CAPTURE(name);
    WalkOptions options = of({name});
    options.served_root = served;
    WatchedFiles files;
    CHECK(Walk(options).select(files).error().kind == ErrorKind::not_authorised);
  }
  ::close(served);
}

TEST_CASE("walk__special_files_and_reserved_names__left_out_with_a_line") {
  const TempDir dir;
  dir.file("t/.ccixfer/ledger.db", "");
  dir.file("t/sub/.CCIXfer", "");
  dir.file("t/sub/.ccixfer.0a1b.part", "");
  dir.file("t/sub/.ccixferx", "");
  REQUIRE(::mkfifo(dir.path("t/fifo").c_str(), 0600) == 0);
  const std::string reserved = ": left out: a name that receivers keep for themselves";
  CHECK(lines_of(of({dir.path("t")})) == Lines{">", "# .ccixfer" + reserved, "# fifo: skipping non-regular file", ">sub",
                                               "# sub/.CCIXfer" + reserved, "# sub/.ccixfer.0a1b.part" + reserved, "sub/.ccixferx",
                                               "<sub", "<"});
}

TEST_CASE("walk__several_sources__directories_merge_and_the_first_file_wins") {
  const TempDir dir;
  dir.file("a/both", "1");
  dir.file("a/sub/x", "1");
  dir.file("a/clash/in-a", "1");
  dir.file("b/both", "2");
  dir.file("b/sub/x", "2");
  dir.file("b/sub/y", "2");
  dir.file("b/clash", "2");
  dir.file("c/only", "3");
  dir.file("both", "4");
  dir.file("single", "5");
  CHECK(lines_of(of({dir.path("a/"), dir.path("b/"), dir.path("both"), dir.path("single"), dir.path("c/only")})) ==
        Lines{">", "both", ">clash", "clash/in-a", "<clash", ">sub", "sub/x", "<sub",
              "# both: in several sources: the first is sent", "# clash: in several sources: the first is sent", ">sub",
              "# sub/x: in several sources: the first is sent", "sub/y", "<sub", "# both: in several sources: the first is sent",
              "single", "only", "<"});
  CHECK(lines_of(of({dir.path("a/both"), dir.path("b/both")})) ==
        Lines{"both", "# both: named by several sources: the first is sent"});
}

TEST_CASE("walk__later_source_has_a_file_in_a_directorys_place__the_directory_stays") {
  const TempDir dir;
  dir.file("a/top/clash/in-a", "1");
  dir.file("b/top/clash", "2");
  dir.file("c/top/clash/in-c", "3");
  REQUIRE(::chmod(dir.path("a/top/clash").c_str(), 0710) == 0);
  REQUIRE(::chmod(dir.path("b/top/clash").c_str(), 0604) == 0);
  CHECK(lines_of(of({dir.path("a/"), dir.path("b/"), dir.path("c/")})) ==
        Lines{">", ">top", ">top/clash", "top/clash/in-a", "<top/clash", "<top", ">top",
              "# top/clash: in several sources: the first is sent", "<top", ">top", ">top/clash", "top/clash/in-c", "<top/clash",
              "<top", "<"});
}

TEST_CASE("walk__into_a_directory__without_a_slash_the_directory_itself_is_sent") {
  const TempDir dir;
  dir.file("a/x", "1");
  dir.file("b/a/x", "2");
  dir.file("b/a/y", "2");
  WalkOptions options = of({dir.path("a")});
  options.directory = true;
  CHECK(lines_of(options) == Lines{">a", "a/x", "<a"});
  options.sources = {dir.path("a/")};
  CHECK(lines_of(options) == Lines{">", "x", "<"});
  options.sources = {dir.path("a"), dir.path("b/a")};
  CHECK(lines_of(options) == Lines{">a", "a/x", "<a", ">a", "# a/x: in several sources: the first is sent", "a/y", "<a"});
}

TEST_CASE("walk__things_vanish_or_cannot_be_read__said_and_the_rest_is_listed") {
  const TempDir dir;
  for (const char* name : {"t/a", "t/b/x", "t/c"}) dir.file(name, "");
  Listing listing;
  listing.files.hook = [](std::string_view call, std::string_view name) {
    if (call == "stat_at" && name == "a") return -ENOENT;
    return call == "open" && name == "b" ? -EACCES : 0;
  };
  list(listing, of({dir.path("t")}));
  CHECK(listing.lines == Lines{">", "? a", ">b", "! b: Permission denied", "<b", "c", "<"});
}

TEST_CASE("walk__directory_removed_while_listed__goes_on") {
  const TempDir dir;
  for (int i = 0; i < 100; ++i) dir.file("t/a/" + std::to_string(i), "");
  dir.file("t/z", "");
  WalkOptions options = of({dir.path("t")});
  options.batch_entries_max = 10;
  Listing listing;
  list(listing, options, [&dir](size_t step) {
    if (step == 2) std::filesystem::remove_all(dir.path("t/a"));
  });
  CHECK(listing.lines.back() == "<");
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), "z") == 1);
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), "<a") == 1);
}

TEST_CASE("walk__many_directories_that_are_spooled__the_spool_holds_one_of_them_at_a_time") {
  const TempDir dir;
  dir.directory("spool");
  for (int d = 0; d < 8; ++d) {
    for (int i = 0; i < 100; ++i) dir.file("t/" + std::to_string(d) + "/name-" + std::to_string(1000 + i), "");
  }
  WalkOptions options = of({dir.path("t")});
  options.names_bytes_max = 500;
  options.spool_directory = dir.path("spool");
  Listing listing;
  list(listing, options);
  CHECK(listing.lines.size() == 818);
  CHECK(listing.files.written_to >= 1000);
  CHECK(listing.files.written_to < 1500);  // names of 9 bytes and the lengths of them
}

// A directory that was let go is opened again by its path: links that stand there by then are another matter.
TEST_CASE("walk__directory_becomes_a_link_while_listed__followed_only_if_links_are") {
  const TempDir dir;
  std::string deep = "t/d";
  for (int i = 0; i < 70; ++i) deep += "/d";
  dir.file(deep + "/f", "");
  dir.file("t/d/d/z", "");
  dir.file("outside/d/z", "");
  const bool links = GENERATE(true, false);
  const bool first = GENERATE(true, false);
  const std::string moved = first ? "t/d" : "t/d/d";
  CAPTURE(links, moved);
  WalkOptions options = of({dir.path("t")}, links);
  options.batch_entries_max = 1;
  Listing listing;
  list(listing, options, [&](size_t step) {
    if (step != 72) return;
    std::filesystem::rename(dir.path(moved), dir.path("moved"));
    std::filesystem::create_symlink(dir.path(first ? "outside" : "outside/d"), dir.path(moved));
  });
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), "d/d/z") == (links ? 0 : 1));
  CHECK(listing.lines.back() == "<");
}

TEST_CASE("walk__a_directory_far_up_vanishes_while_what_is_below_is_listed__it_has_vanished") {
  const TempDir dir;
  std::string deep = "t/a/b";
  for (int i = 0; i < 70; ++i) deep += "/d";
  dir.file(deep + "/f", "");
  dir.file("t/a/b/z", "");
  WalkOptions options = of({dir.path("t")}, GENERATE(true, false));
  options.batch_entries_max = 1;
  Listing listing;
  list(listing, options, [&](size_t step) {
    if (step == 72) std::filesystem::rename(dir.path("t/a"), dir.path("moved"));
  });
  CHECK(std::count(listing.lines.begin(), listing.lines.end(), "? a/b") == 1);
  CHECK(listing.lines.back() == "<");
}

TEST_CASE("walk__a_source_that_is_a_link__is_sent_as_one_where_links_are_kept") {
  const TempDir dir;
  dir.file("f", "");
  std::filesystem::create_symlink("f", dir.path("link"));
  CHECK(lines_of(of({dir.path("link")})) == Lines{" -> f"});
  CHECK(lines_of(of({dir.path("link")}, false)) == Lines{""});
  CHECK(lines_of(of({dir.path("link"), dir.path("f")})) == Lines{"link -> f", "f"});
  Listing listing;
  WalkOptions options = of({dir.path("link")});
  Walk walk(options);
  REQUIRE(walk.select(listing.files));
  std::filesystem::remove(dir.path("link"));
  WalkBatch batch;
  walk.step(listing.files, batch, true);
  REQUIRE(batch.records.size() == 1);
  CHECK(batch.records[0].kind == WalkRecord::Kind::vanished);
  walk.close(listing.files);
}

TEST_CASE("walk__link_that_leads_back_in_a_merged_directory__is_told_at_once") {
  const TempDir dir;
  dir.file("a/sub/x", "");
  dir.directory("b/sub");
  std::filesystem::create_symlink(".", dir.path("b/sub/up"));
  CHECK(lines_of(of({dir.path("a/"), dir.path("b/")}, false)) ==
        Lines{">", ">sub", "sub/x", "<sub", ">sub", "! sub/up: a symbolic link to a directory that it is in", "<sub", "<"});
}

TEST_CASE("walk__directories_of_one_name_in_several_sources__have_the_mode_of_the_first") {
  const TempDir dir;
  for (const char* name : {"a/sub/x", "b/sub/y", "c/sub/z"}) dir.file(name, "");
  int mode = 0700;
  for (const char* name : {"a/sub", "b/sub", "c/sub"}) REQUIRE(::chmod(dir.path(name).c_str(), static_cast<mode_t>(mode++)) == 0);
  WatchedFiles files;
  Walk walk(of({dir.path("a/"), dir.path("b/"), dir.path("c/")}));
  REQUIRE(walk.select(files));
  std::vector<uint32_t> modes;
  for (bool done = false; !done;) {
    WalkBatch batch;
    walk.step(files, batch, true);
    for (const WalkRecord& record : batch.records) {
      if (batch.path(record) == "sub") modes.push_back(record.stat.mode & 0777);
    }
    done = batch.done;
  }
  walk.close(files);
  CHECK(modes == std::vector<uint32_t>(6, 0700));  // of each, the entry and its leave
}

TEST_CASE("version__any_field__changes_it") {
  ports::FileStat stat;
  stat.ctime = {1'700'000'000, 5};
  std::set<uint64_t> versions = {send::version_of(stat)};
  const auto add = [&](auto&& change) {
    ports::FileStat other = stat;
    change(other);
    versions.insert(send::version_of(other));
  };
  add([](auto& other) { ++other.inode; });
  add([](auto& other) { ++other.size_bytes; });
  add([](auto& other) { ++other.mtime.seconds; });
  add([](auto& other) { ++other.mtime.nanoseconds; });
  add([](auto& other) { ++other.ctime.seconds; });
  add([](auto& other) { ++other.ctime.nanoseconds; });
  CHECK(versions.size() == 7);
}

TEST_CASE("version__mounted_again_with_another_device_number__is_the_same") {
  ports::FileStat stat;
  stat.device = 40;
  stat.ctime = {1'700'000'000, 123};
  ports::FileStat mounted_again = stat;
  mounted_again.device = 41;
  CHECK(send::version_of(mounted_again) == send::version_of(stat));
}

TEST_CASE("version__change_times_of_whole_seconds_prove_nothing__the_device_counts") {
  ports::FileStat stat;
  stat.device = 40;
  stat.ctime = {1'700'000'000, 0};
  ports::FileStat other_image = stat;
  other_image.device = 41;
  CHECK(send::version_of(other_image) != send::version_of(stat));
}

TEST_CASE("walk__link_to_a_directory_as_source__a_link_or_with_a_slash_the_directory") {
  const TempDir dir;
  dir.file("d/f", "x");
  REQUIRE(::symlink("d", dir.path("l").c_str()) == 0);
  WalkOptions options = of({dir.path("l")});
  CHECK(lines_of(options) == Lines{" -> d"});  // the session's path names it
  options.sources = {dir.path("l/")};
  CHECK(lines_of(options) == Lines{">", "f", "<"});
  options.directory = true;
  options.sources = {dir.path("l")};
  CHECK(lines_of(options) == Lines{"l -> d"});
  options.sources = {dir.path("l/")};
  CHECK(lines_of(options) == Lines{">", "f", "<"});
  options.sources = {dir.path("l")};
  options.links = false;
  CHECK(lines_of(options) == Lines{">l", "l/f", "<l"});
}

TEST_CASE("walk__source_vanishes_before_its_turn__told_by_the_name_that_was_given") {
  const TempDir dir;
  dir.file("a/f", "x");
  dir.file("b/g", "x");
  const bool named = GENERATE(false, true);
  WalkOptions options = of({dir.path(named ? "a" : "a/"), dir.path(named ? "b" : "b/")});
  const std::string prefix = named ? "b/" : "";
  Lines rest = named ? Lines{">b", "b/g", "<b"} : Lines{">", "g", "<"};
  Walk walk(options);
  Listing listing;
  REQUIRE(walk.select(listing.files));
  std::string line;
  SECTION("it was removed") {
    std::filesystem::remove_all(dir.path("a"));
    line = "? " + options.sources[0];
  }
  SECTION("it cannot be opened") {
    listing.files.hook = [&](std::string_view call, std::string_view name) {
      return call == "open" && name == options.sources[0] ? -EACCES : call == "open" && name == "a" ? -EACCES : 0;
    };
    line = "! " + options.sources[0] + ": Permission denied";
  }
  SECTION("it cannot be looked at") {
    bool once = true;
    listing.files.hook = [once](std::string_view call, std::string_view) mutable {
      return call == "fstat" && std::exchange(once, false) ? -EIO : 0;
    };
    line = "! " + options.sources[0] + ": Input/output error";
  }
  Lines lines;
  for (WalkBatch batch; !batch.done;) {
    batch = {};
    walk.step(listing.files, batch, true);
    for (const WalkRecord& record : batch.records) lines.push_back(line_of(batch, record));
  }
  walk.close(listing.files);
  rest.insert(rest.begin(), line);
  CHECK(lines == rest);
  CHECK(listing.files.open_now == 0);
}

}  // namespace
}  // namespace ccixfer::send_test
