// Files on tmpfs: what is shown of them, and that their holes stay holes.
#include "core/host/dense_runs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "core/host/file_system.h"
#include "core/memory/pool.h"

using namespace ccixfer;
using ports::OpenMode;

// 4 MiB pieces of a file: data, a hole at the end of data, nothing but a hole, a page of data in a hole, a hole punched into data,
// data.
TEST_CASE("file_system__a_sparse_file_on_tmpfs__shows_its_data_and_keeps_its_holes") {
  struct statfs kind;
  if (::statfs("/dev/shm", &kind) != 0 || kind.f_type != TMPFS_MAGIC) return;
  constexpr size_t piece = 4u << 20;
  constexpr size_t page = 4096;
  host::PosixFileSystem files;
  const std::string name = "/dev/shm/ccixfer-holes-" + std::to_string(::getpid());
  const int fd = files.open(ports::FileSystem::no_directory, name, {.mode = OpenMode::read_write, .create = true}, 0600);
  REQUIRE(fd >= 0);
  ::unlink(name.c_str());
  const auto fill = [&](size_t at, size_t bytes) {
    const std::vector<std::byte> data(bytes, std::byte{7});
    REQUIRE(files.pwrite(fd, data, at) == static_cast<int64_t>(bytes));
  };
  REQUIRE(files.truncate(fd, 6 * piece) == 0);
  fill(0, piece);
  fill(piece, piece - page);
  fill(3 * piece + 5 * page, page);
  fill(4 * piece, 2 * piece);
  REQUIRE(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(4 * piece + piece / 2),
                      static_cast<off_t>(page)) == 0);
  const auto blocks = [fd] {
    struct stat stat;
    REQUIRE(::fstat(fd, &stat) == 0);
    return stat.st_blocks;
  };
  const auto before = blocks();
  memory::Pool pool(piece, 1);
  for (size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    memory::Loan loan = pool.lend();
    const bool is_whole = i == 0 || i == 5;
    REQUIRE(files.show(fd, loan.bytes(), i * piece) == (is_whole ? 0 : -ENOTSUP));
    if (is_whole) {
      loan.shows_file(piece);
      CHECK(std::all_of(loan.bytes().begin(), loan.bytes().end(), [](std::byte b) { return b == std::byte{7}; }));
    } else {
      CHECK(files.pread(fd, loan.bytes(), i * piece) == static_cast<int64_t>(piece));
    }
    CHECK(blocks() == before);
  }
  memory::Loan loan = pool.lend();
  const int other = files.open(ports::FileSystem::no_directory, "/proc/self/status", {}, 0);
  CHECK(files.show(other, loan.bytes(), 0) == -ENOTSUP);  // of a file system with rules of its own
  files.close(other);
  CHECK(files.show(fd, loan.bytes(), 6 * piece) == -ENOTSUP);  // behind the end, where there is no hole to be found
  files.close(fd);
}

// As many blocks as it has bytes, which stand behind its end: so many are no proof that there is no hole.
TEST_CASE("file_system__a_sparse_file_on_tmpfs_with_blocks_behind_its_end__keeps_its_holes") {
  struct statfs kind;
  if (::statfs("/dev/shm", &kind) != 0 || kind.f_type != TMPFS_MAGIC) return;
  constexpr size_t piece = 4u << 20;
  host::PosixFileSystem files;
  const std::string name = "/dev/shm/ccixfer-behind-" + std::to_string(::getpid());
  const int fd = files.open(ports::FileSystem::no_directory, name, {.mode = OpenMode::read_write, .create = true}, 0600);
  REQUIRE(fd >= 0);
  ::unlink(name.c_str());
  const bool begins_with_data = GENERATE(true, false);
  REQUIRE(files.truncate(fd, 3 * piece) == 0);
  const std::vector<std::byte> data(piece, std::byte{7});
  REQUIRE(files.pwrite(fd, data, begins_with_data ? 0 : 2 * piece) == static_cast<int64_t>(piece));
  if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, off_t{3 * piece}, off_t{2 * piece}) != 0) return;
  struct stat before {};
  REQUIRE(::fstat(fd, &before) == 0);
  REQUIRE(before.st_blocks * 512 >= before.st_size);
  memory::Pool pool(piece, 1);
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < 3; ++i) {
      CAPTURE(begins_with_data, round, i);
      memory::Loan loan = pool.lend();
      const bool is_data = i == (begins_with_data ? 0 : 2);
      REQUIRE(files.show(fd, loan.bytes(), i * piece) == (is_data ? 0 : -ENOTSUP));
      if (!is_data) continue;
      loan.shows_file(piece);
      CHECK(loan.bytes().front() == std::byte{7});
      CHECK(loan.bytes().back() == std::byte{7});
    }
  }
  struct stat behind {};
  REQUIRE(::fstat(fd, &behind) == 0);
  CHECK(behind.st_blocks == before.st_blocks);
  files.close(fd);
}
