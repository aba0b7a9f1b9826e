// Which system calls on files are timed.
#include "core/host/disk_times.h"

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <span>

#include "core/host/file_system.h"
#include "tests/unit/host/temp_dir.h"

using namespace ccixfer;

TEST_CASE("file_system__calls_that_move_or_sync_data__are_timed_and_no_others") {
  using host::DiskCall;
  const testing::TempDir temp;
  host::DiskTimes times;
  host::PosixFileSystem files(&times);
  const auto counts = [&] {
    std::array<uint64_t, host::DiskTimes::calls> all{};
    for (size_t call = 0; call < all.size(); ++call) {
      const auto& seconds = times.seconds(static_cast<DiskCall>(call));
      for (size_t at = 0; at <= seconds.upper().size(); ++at) all[call] += seconds.bucket(at);
    }
    return all;
  };
  const int fd = files.open(temp.fd(), "file", {.mode = ports::OpenMode::read_write, .create = true, .exclusive = true}, 0644);
  REQUIRE(fd >= 0);
  std::array<std::byte, 100> room{};
  CHECK(files.pwrite(fd, std::span(room).first(60), 0) == 60);
  CHECK(files.pwrite(fd, std::span(room).first(10), 60) == 10);
  CHECK(files.pread(fd, room, 50) == 20);  // what there is counts, and not what was asked for
  CHECK(files.fsync(fd) == 0);
  ports::FileStat stat;
  CHECK(files.fstat(fd, stat) == 0);
  CHECK(counts() == std::array<uint64_t, 3>{1, 2, 1});
  CHECK(files.pwrite(1'000'000, room, 0) == -EBADF);
  CHECK(counts() == std::array<uint64_t, 3>{1, 3, 1});
  CHECK(times.bytes(DiskCall::write) == 70);
  CHECK(times.bytes(DiskCall::read) == 20);
  CHECK(times.bytes(DiskCall::sync) == 0);
  CHECK(files.close(fd) == 0);
}
