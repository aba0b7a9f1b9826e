// What stat(2) and statx(2) tell is one answer, field by field; and what no kernel says is bounded.
#include "core/host/file_stat.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/host/temp_dir.h"

using namespace ccixfer;
using ports::FileType;
using ports::SpecialKind;

namespace {

struct stat stat_of(const std::string& path) {
  struct stat raw {};
  REQUIRE(::lstat(path.c_str(), &raw) == 0);
  return raw;
}

struct statx statx_of(const std::string& path) {
  struct statx raw {};
  REQUIRE(::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &raw) == 0);
  return raw;
}

}  // namespace

TEST_CASE("file_stat__of_stat_and_of_statx__is_the_same") {
  testing::TempDir directory;
  const std::string file = directory.path() + "/file";
  const int fd = ::open(file.c_str(), O_CREAT | O_WRONLY, 0640);
  REQUIRE(fd >= 0);
  REQUIRE(::pwrite(fd, "data", 4, 1 << 20) == 4);  // fewer blocks than its size
  const timespec times[2] = {{1, 2}, {-5, 999'999'999}};
  REQUIRE(::futimens(fd, times) == 0);
  REQUIRE(::fchmod(fd, 04751) == 0);
  ::close(fd);
  REQUIRE(::link(file.c_str(), (file + "-2").c_str()) == 0);
  REQUIRE(::symlink("file", (directory.path() + "/link").c_str()) == 0);
  REQUIRE(::mkfifo((directory.path() + "/fifo").c_str(), 0600) == 0);
  for (const std::string& path : {file, directory.path(), directory.path() + "/link", directory.path() + "/fifo",
                                  std::string("/dev/null"), std::string("/dev/full")}) {
    INFO(path);
    const struct stat raw = stat_of(path);
    const ports::FileStat stat = host::file_stat(raw);
    CHECK(stat == host::file_stat(statx_of(path)));
    CHECK(stat.mode == (raw.st_mode & 07777));
    CHECK(stat.device == raw.st_dev);
    CHECK(stat.inode == raw.st_ino);
    CHECK(stat.links == raw.st_nlink);
    CHECK(stat.uid == raw.st_uid);
    CHECK(stat.gid == raw.st_gid);
    CHECK(stat.size_bytes == static_cast<uint64_t>(raw.st_size));
    CHECK(stat.allocated_bytes == static_cast<uint64_t>(raw.st_blocks) * 512);
    CHECK(stat.ctime == ports::FileTime{raw.st_ctim.tv_sec, static_cast<uint32_t>(raw.st_ctim.tv_nsec)});
  }
  const ports::FileStat stat = host::file_stat(statx_of(file));
  CHECK(stat.type == FileType::regular);
  CHECK(stat.mode == 04751);
  CHECK(stat.links == 2);
  CHECK(stat.size_bytes == (1 << 20) + 4);
  CHECK(stat.allocated_bytes < stat.size_bytes);
  CHECK(stat.mtime == ports::FileTime{-5, 999'999'999});
  CHECK(stat.special == SpecialKind::none);
  CHECK(host::file_stat(statx_of(directory.path())).type == FileType::directory);
  CHECK(host::file_stat(statx_of(directory.path() + "/link")).type == FileType::symlink);
  CHECK(host::file_stat(statx_of(directory.path() + "/fifo")).special == SpecialKind::fifo);
  const ports::FileStat null = host::file_stat(statx_of("/dev/null"));
  CHECK(null.special == SpecialKind::character);
  CHECK(null.special_device == makedev(1, 3));
}

TEST_CASE("file_stat__of_large_numbers__keeps_them") {
  struct statx raw {};
  raw.stx_mode = S_IFBLK | 0600;
  raw.stx_dev_major = 0xfff;
  raw.stx_dev_minor = 0xfffff;
  raw.stx_rdev_major = 259;
  raw.stx_rdev_minor = 70'000;
  const ports::FileStat stat = host::file_stat(raw);
  CHECK(stat.type == FileType::other);
  CHECK(stat.special == SpecialKind::block);
  CHECK(stat.device == makedev(0xfff, 0xfffff));
  CHECK(stat.special_device == makedev(259, 70'000));
}

// A file system in user space may say anything.
TEST_CASE("file_stat__of_times_that_are_none__is_bounded") {
  struct stat raw {};
  raw.st_mtim = {7, 2'000'000'000};
  raw.st_ctim = {7, -1};
  CHECK(host::file_stat(raw).mtime == ports::FileTime{7, 999'999'999});
  CHECK(host::file_stat(raw).ctime == ports::FileTime{7, 0});
}
