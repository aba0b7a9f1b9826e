// Sources that are directories: each is held open from its listing until its last entry has ended.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {

TEST_CASE("source__more_directories_than_may_be_open_at_once__each_is_let_go_when_its_entries_have_ended") {
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
  CHECK(bench.totals().files == 100);
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
      CHECK(bench.totals().files == (std::string_view(path) == "link/" && options == 0 ? 2 : 1));  // `last` is followed, or kept
    }
  }
}

}  // namespace ccixfer::send_test
