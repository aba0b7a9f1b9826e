#include "app/recv/kept_times.h"

#include <catch2/catch.hpp>
#include <limits>

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

}  // namespace ccixfer::recv
