// The file in which the account keeps what its processes know of paths.
#include "app/main/path_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ccixfer::program {
namespace {

using namespace std::chrono_literals;

struct Place {
  Place() {
    std::string pattern = "/tmp/ccixfer-paths-XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
  }
  ~Place() { std::filesystem::remove_all(directory); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] std::string file() const { return directory + "/state/ccixfer/paths"; }
  [[nodiscard]] std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const {
    std::filesystem::create_directories(directory + "/state/ccixfer");
    std::ofstream(file()) << text;
  }
  std::string directory;
};

TEST_CASE("path_file__what_a_process_found__is_there_for_the_next_and_beside_what_others_wrote") {
  const Place place;
  const auto now = [] { return int64_t{1'800'000'000}; };
  {
    PathFile first(place.file(), now);
    CHECK_FALSE(first.recall("10.0.0.1"));
    first.remember("10.0.0.1", {1000, 5ms});
    CHECK(first.recall("10.0.0.1"));
    PathFile second(place.file(), now);
    second.remember("10.0.0.2", {2000, 6ms});
  }
  struct stat stat {};
  REQUIRE(::stat(place.file().c_str(), &stat) == 0);
  CHECK((stat.st_mode & 0777) == 0600);
  const PathFile third(place.file(), now);
  REQUIRE(third.recall("10.0.0.1"));
  CHECK(third.recall("10.0.0.1")->bytes_per_s == 1000);
  CHECK(third.recall("10.0.0.2"));
  CHECK(place.text() == "10.0.0.1 1000 5000 1800000000\n10.0.0.2 2000 6000 1800000000\n");
}

TEST_CASE("path_file__longer_text_before__nothing_of_it_is_left_behind") {
  const Place place;
  place.write("10.0.0.1 1 1 17\n" + std::string(5000, 'x') + "\n");
  PathFile(place.file(), [] { return int64_t{1'800'000'000}; }).remember("a", {1, 1ms});
  CHECK(place.text() == "a 1 1000 1800000000\n");
}

TEST_CASE("path_file__nothing_was_found__is_not_written") {
  const Place place;
  place.write("torn");
  {
    const PathFile file(place.file(), [] { return int64_t{1'800'000'000}; });
  }
  CHECK(place.text() == "torn");
}

TEST_CASE("path_file__another_process_writes_it__is_left_to_that_one") {
  const Place place;
  place.write("");
  const int other = ::open(place.file().c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  PathFile(place.file(), [] { return int64_t{1'800'000'000}; }).remember("a", {1, 1ms});
  CHECK(place.text().empty());
  ::close(other);
}

TEST_CASE("path_file__no_place_for_it__remembers_for_this_process_alone") {
  const Place place;
  std::ofstream(place.directory + "/state") << "a file";
  std::filesystem::create_directories(place.directory + "/x");
  ::symlink("/etc/passwd", (place.directory + "/link").c_str());
  for (const std::string& file : {std::string(), place.file(), place.directory + "/x", place.directory + "/link"}) {
    PathFile paths(file, [] { return int64_t{1'800'000'000}; });
    paths.remember("a", {1, 1ms});
    CHECK(paths.recall("a"));
  }
}

}  // namespace
}  // namespace ccixfer::program
