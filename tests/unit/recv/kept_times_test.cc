// What a file system makes of times is measured, and decides what counts as unchanged.
#include "app/recv/kept_times.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "tests/unit/recv/faulty_files.h"
#include "transports/sim/sim_file_system.h"

namespace ccixfer::recv {
namespace {

using ports::FileTime;

constexpr ports::OpenFlags to_create{.mode = ports::OpenMode::write, .create = true};

struct Disk {
  explicit Disk(const sim::FileSystemOptions& options, uint64_t seed = 1)
      : world(seed), node(world.add_node("n")), files(world, node, options) {
    files.make_directory("/d");
    directory = files.open(ports::FileSystem::no_directory, "/d", {.directory = true}, 0);
  }
  FileTime shown(FileTime wanted) {
    const int fd = files.open(directory, "file", to_create, 0600);
    ports::FileStat stat;
    REQUIRE(files.set_mtime(fd, wanted) == 0);
    REQUIRE(files.fstat(fd, stat) == 0);
    files.close(fd);
    return stat.mtime;
  }
  bool same(FileTime stored, FileTime wanted, const std::string& scratch = "scratch") {
    return kept.same(files, 7, directory, scratch, stored, wanted);
  }
  sim::World world;
  sim::NodeId node;
  sim::SimFileSystem files;
  int directory = -1;
  KeptTimes kept;
};

}  // namespace

TEST_CASE("kept_times__any_limits_and_grain__are_measured") {
  sim::Random random(5);
  for (int i = 0; i < 200; ++i) {
    sim::FileSystemOptions options;
    if (random.chance(0.7)) options.time_min_s = -static_cast<int64_t>(random.next() >> (1 + random.below(60)));
    if (random.chance(0.7)) options.time_max_s = 2'000'000'000 + static_cast<int64_t>(random.next() >> (2 + random.below(60)));
    for (uint64_t digits = random.below(10); digits > 0; --digits) options.time_grain_ns *= 10;
    Disk disk(options, random.next());
    for (int j = 0; j < 50; ++j) {
      const FileTime wanted{static_cast<int64_t>(random.next()) >> random.below(64),
                            static_cast<uint32_t>(random.below(ports::file_time_nanoseconds))};
      const FileTime stored = disk.shown(wanted);
      CHECK(disk.same(stored, wanted));
      for (const FileTime other : {FileTime{stored.seconds ^ 1, stored.nanoseconds}, {stored.seconds, stored.nanoseconds ^ 1}}) {
        if (other != wanted) CHECK_FALSE(disk.same(other, wanted));
      }
    }
    CHECK(disk.files.tree("/d").size() == 1);  // the scratch file is gone
  }
}

TEST_CASE("kept_times__times_within_what_ext4_has__are_compared_to_the_nanosecond") {
  sim::FileSystemOptions ext4;
  ext4.time_min_s = std::numeric_limits<int32_t>::min();
  ext4.time_max_s = 15'032'385'535;
  Disk disk(ext4);
  CHECK(disk.same({15'032'385'535, 0}, {20'000'000'000, 5}));
  CHECK_FALSE(disk.same({15'032'385'535, 0}, {15'032'385'534, 0}));
  CHECK_FALSE(disk.same({1'000'000'000, 0}, {1'000'000'000, 5}));
  CHECK_FALSE(disk.same({1'000'000'000, 5}, {1'000'000'000, 0}));
}

TEST_CASE("kept_times__a_file_system_that_may_not_be_measured__counts_as_exact") {
  sim::FileSystemOptions seconds;
  seconds.time_grain_ns = ports::file_time_nanoseconds;
  Disk disk(seconds);
  CHECK_FALSE(disk.same({5, 0}, {5, 9}, ""));
  CHECK(disk.same({5, 0}, {5, 9}));
}

TEST_CASE("time_limits__steps_of_two_seconds__are_those_of_vfat") {
  const TimeLimits vfat{315'532'800, 4'354'819'198, 2, 1};
  CHECK(vfat.kept({1'000'000'001, 5}) == FileTime{1'000'000'000, 0});
  CHECK(vfat.kept({1'000'000'000, 5}) == FileTime{1'000'000'000, 0});
  CHECK(vfat.kept({0, 5}) == FileTime{315'532'800, 0});
}

namespace {

constexpr int64_t vfat_first = 315'532'800;
constexpr int64_t vfat_last = 4'354'819'198;

FileTime as_vfat(FileTime wanted) {
  const int64_t seconds = std::clamp(wanted.seconds, vfat_first, vfat_last);
  return {seconds - seconds % 2, 0};
}
// Within what vfat has, nanoseconds cut to a multiple.
std::function<FileTime(FileTime)> cut_to(uint32_t grain_ns) {
  return [grain_ns](FileTime wanted) {
    if (wanted.seconds <= vfat_first) return FileTime{vfat_first, 0};
    if (wanted.seconds >= vfat_last) return FileTime{vfat_last, 0};
    return FileTime{wanted.seconds, wanted.nanoseconds - wanted.nanoseconds % grain_ns};
  };
}

// A file below a real directory, whose times are kept as the test says.
struct Measured {
  Measured() {
    temporary.write("f", "x");
    fd = files.open(ports::FileSystem::no_directory, temporary.path("f"), {.mode = ports::OpenMode::write}, 0);
    parent = files.open(ports::FileSystem::no_directory, temporary.path(), {.directory = true}, 0);
  }
  ~Measured() {
    files.hook = nullptr;
    files.close(fd);
    files.close(parent);
  }
  test::TemporaryDirectory temporary;
  test::FaultyFiles files;
  int fd = -1;
  int parent = -1;
};

}  // namespace

TEST_CASE("time_limits__measured__range_and_grain_of_what_the_file_system_keeps") {
  Measured place;
  place.files.keeps = as_vfat;
  const auto vfat = measure_time_limits(place.files, place.fd);
  REQUIRE(vfat);
  CHECK(vfat->min_s == vfat_first);
  CHECK(vfat->max_s == vfat_last);
  CHECK(vfat->grain_s == 2);
  for (uint32_t grain = 1; grain <= ports::file_time_nanoseconds; grain *= 10) {
    place.files.keeps = cut_to(grain);
    const auto limits = measure_time_limits(place.files, place.fd);
    REQUIRE(limits);
    CHECK(limits->grain_s == 1);
    CHECK(limits->grain_ns == grain);
    CHECK(limits->kept({1'000'000'000, 123'456'789}) == cut_to(grain)({1'000'000'000, 123'456'789}));
    CHECK(limits->kept({vfat_last, 5}) == FileTime{vfat_last, 0});
    CHECK(limits->kept({vfat_last - 1, 5}) == cut_to(grain)({vfat_last - 1, 5}));
    CHECK(limits->kept({vfat_first, 5}) == FileTime{vfat_first, 0});
    CHECK(limits->kept({vfat_first + 1, 5}) == cut_to(grain)({vfat_first + 1, 5}));
  }
}

TEST_CASE("time_limits__kept_in_a_way_of_its_own__is_not_described") {
  Measured place;
  SECTION("wraps round") {
    place.files.keeps = [](FileTime wanted) { return FileTime{static_cast<int32_t>(wanted.seconds), 0}; };
  }
  SECTION("rounds up") {
    place.files.keeps = [](FileTime wanted) { return cut_to(1)({wanted.seconds + (wanted.nanoseconds > 0 ? 1 : 0), 0}); };
  }
  SECTION("steps of three seconds") {
    place.files.keeps = [](FileTime wanted) { return cut_to(1)({wanted.seconds - wanted.seconds % 3, 0}); };
  }
  SECTION("ends before our time") {
    place.files.keeps = [](FileTime wanted) { return FileTime{std::clamp<int64_t>(wanted.seconds, 0, 500'000'000), 0}; };
  }
  SECTION("begins after it") {
    place.files.keeps = [](FileTime wanted) { return FileTime{std::clamp<int64_t>(wanted.seconds, 1'500'000'000, vfat_last), 0}; };
  }
  SECTION("gives none") {
    place.files.hook = [](std::string_view call, std::string_view) { return call == "set_mtime" ? -EPERM : 0; };
  }
  SECTION("fails once") {
    const int failing = GENERATE(1, 2, 3);
    place.files.keeps = cut_to(1);
    place.files.hook = [failing, calls = 0](std::string_view call, std::string_view) mutable {
      return call == "fstat" && ++calls == failing ? -EIO : 0;
    };
  }
  CHECK_FALSE(measure_time_limits(place.files, place.fd).has_value());
}

TEST_CASE("kept_times__each_file_system__is_measured_once_with_a_file_that_goes_again") {
  Measured place;
  KeptTimes kept;
  int measured = 0;
  bool may_open = true;
  place.files.keeps = as_vfat;
  place.files.hook = [&](std::string_view call, std::string_view name) {
    if (call != "open" || name != "scratch") return 0;
    ++measured;
    return may_open ? 0 : -ENOSPC;
  };
  const auto same = [&](uint64_t device, const std::string& scratch) {
    return kept.same(place.files, device, place.parent, scratch, {1'000'000'000, 0}, {1'000'000'001, 5});
  };
  CHECK(kept.same(place.files, 1, place.parent, "scratch", {7, 7}, {7, 7}));
  CHECK(measured == 0);
  CHECK_FALSE(same(1, ""));
  may_open = false;
  CHECK_FALSE(same(1, "scratch"));
  may_open = true;
  ports::FileStat before;
  ports::FileStat after;
  REQUIRE(place.files.set_mtime(place.parent, {1'000'000'000, 0}) == 0);
  REQUIRE(place.files.fstat(place.parent, before) == 0);
  CHECK(same(1, "scratch"));
  REQUIRE(place.files.fstat(place.parent, after) == 0);
  CHECK(before.mtime == after.mtime);
  CHECK_FALSE(place.temporary.has("scratch"));
  CHECK(measured == 2);
  CHECK(same(1, ""));
  CHECK(same(1, "scratch"));
  CHECK(measured == 2);
  CHECK(same(2, "scratch"));
  CHECK(measured == 3);
  kept.add(2, std::nullopt);  // not described: times are compared as they are
  CHECK_FALSE(same(2, "scratch"));
  CHECK(measured == 3);
}

}  // namespace ccixfer::recv
