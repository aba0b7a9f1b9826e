// Sources that are directories: each is held open from its listing until its last entry has ended.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {

TEST_CASE("source__more_directories_than_may_be_open__each_is_let_go_when_it_has_ended") {
  const TempDir dir;
  std::vector<std::string> sources;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "s" + std::to_string(i);
    dir.file(name + "/f" + std::to_string(i), "x");
    sources.push_back(dir.path(name));
  }
  dir.directory("empty");  // whose entries are all ended when its listing is
  sources.push_back(dir.path("empty"));
  Bench bench(options_of(sources, session::option_directory));
  bench.run();
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.tally().files == 100);
  CHECK(bench.files.open_most < 80);
  CHECK(bench.files.bad_descriptors == 0);  // and at its end the bench sees that all were closed
}

TEST_CASE("source__a_path_that_leads_over_links__is_where_they_lead") {
  const TempDir dir;
  dir.file("real/t/f", "x");
  std::filesystem::create_symlink("real", dir.path("link"));
  std::filesystem::create_symlink("t", dir.path("real/last"));
  for (const uint32_t options : {0u, uint32_t{session::option_links}}) {
    for (const char* path : {"link/t/", "link/", "link/last/", "link/t", "link/t/f"}) {
      INFO(path);
      Bench bench(options_of({dir.path(path)}, options));
      bench.run();
      CHECK(bench.source->error() == nullptr);
      CHECK(bench.tally().files == (std::string_view(path) == "link/" && options == 0 ? 2 : 1));  // `last` is followed, or kept
    }
  }
}

TEST_CASE("source__what_it_tells_of_a_file__is_what_the_file_has") {
  const TempDir dir;
  dir.file("t/f", "12345");
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::chown(dir.path("t/f").c_str(), 1234, 5678) == 0);
  REQUIRE(::chmod(dir.path("t/f").c_str(), 0641) == 0);
  const timespec times[2] = {{1, 2}, {1'234'567'890, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, dir.path("t/f").c_str(), times, 0) == 0);
  Bench bench(options_of({dir.path("t")}, archive));
  bench.run();
  const session::Entry& entry = bench.receiver.by_path("f")->entry;
  CHECK(entry.uid == (root ? 1234 : ::geteuid()));
  if (root) CHECK(entry.gid == 5678);
  CHECK(entry.mode == 0641);
  CHECK(entry.mtime.seconds == 1'234'567'890);
  CHECK(entry.mtime.nanoseconds == 123'456'789);
  CHECK(entry.size_bytes == 5);
}

// A file has two names, and more in the list: by links that are followed, or of a second source.
TEST_CASE("source__hard_links_that_are_listed_again__all_lead_to_the_first_name") {
  const TempDir dir;
  dir.file("t/a", "x");
  dir.directory("t/d");
  std::filesystem::create_hard_link(dir.path("t/a"), dir.path("t/d/b"));
  std::filesystem::create_symlink("../a", dir.path("t/d/l1"));
  std::filesystem::create_symlink("a", dir.path("t/l2"));
  std::filesystem::create_symlink("t", dir.path("u"));
  const bool followed = GENERATE(true, false);
  const std::vector<std::string> sources = followed ? std::vector{dir.path("t/")} : std::vector{dir.path("t"), dir.path("u/")};
  Bench bench(options_of(sources, session::option_hard_links | session::option_directory | (followed ? 0 : archive)));
  bench.run();
  CHECK(bench.source->error() == nullptr);
  std::map<std::string, int> led_to;
  for (const std::string& path :
       followed ? std::vector<std::string>{"a", "d/b", "d/l1", "l2"} : std::vector<std::string>{"t/a", "t/d/b", "a", "d/b"}) {
    CAPTURE(path);
    REQUIRE(bench.receiver.by_path(path) != nullptr);
    const session::Entry& entry = bench.receiver.by_path(path)->entry;
    CHECK(entry.is_linked);
    ++led_to[entry.linked_to];
  }
  CHECK(led_to == std::map<std::string, int>{{"", 1}, {followed ? "a" : "t/a", 3}});
}

// Its descriptor and its place go when the last job that reads it is back: the bench sees at its end that none stayed open.
TEST_CASE("source__file_fails_at_the_receiver_while_it_is_read__let_go_after_the_last_job") {
  const TempDir dir;
  dir.file_of("t/large", uint64_t{41} << 20);
  dir.file("t/small", "x");
  Bench bench(options_of({dir.path("t")}), 16);
  bench.start();
  const auto reading = [&] { return bench.receiver.count(session::SegmentKind::piece) > 0 && bench.work.in_flight() > 1; };
  bench.run_until(reading);
  uint64_t index = 0;
  for (const auto& [number, file] : bench.receiver.entries) {
    if (file.entry.path == "large") index = number;
  }
  bench.receiver.say(session::FileResults{{{index, ErrorKind::no_space, 0}}});
  bench.receiver.turn();  // it hears of it while the jobs are under way
  CHECK(bench.tally().files_failed == 1);
  CHECK(bench.work.in_flight() > 1);
  bench.run_until([&] { return bench.tally().files_failed == 1; });
  for (int i = 0; i < 100; ++i) bench.step();
  CHECK(bench.work.in_flight() == 0);
  CHECK(bench.files.open_now <= 1);  // the directory
}

}  // namespace ccixfer::send_test
