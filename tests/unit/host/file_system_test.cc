// The port of files over the system calls of this host.
#include "core/host/file_system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/host/kernel_version.h"
#include "core/memory/pool.h"
#include "tests/unit/host/temp_dir.h"

using namespace ccixfer;
using ports::FileStat;
using ports::FileTime;
using ports::FileType;
using ports::OpenFlags;
using ports::OpenMode;
using testing::TempDir;

namespace {

constexpr int bad_fd = 1'000'000;

OpenFlags to_create() { return {.mode = OpenMode::read_write, .create = true, .exclusive = true}; }
OpenFlags to_read() { return {}; }
OpenFlags to_read_directory() { return {.directory = true}; }

void make_file(host::PosixFileSystem& files, int directory, std::string_view name, std::string_view text) {
  const int fd = files.open(directory, name, to_create(), 0644);
  REQUIRE(fd >= 0);
  REQUIRE(files.pwrite(fd, as_bytes(text), 0) == static_cast<int64_t>(text.size()));
  files.close(fd);
}

std::vector<std::string> names(host::PosixFileSystem& files, int fd) {
  std::vector<std::string> out;
  REQUIRE(files.read_directory(fd, [&](std::string_view name) { out.emplace_back(name); }) == 0);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("kernel_version__releases_as_uname_tells_them__compared_by_number") {
  using host::parse_kernel_version;
  CHECK(parse_kernel_version("5.8.0-63-generic") == host::KernelVersion{5, 8});
  CHECK(parse_kernel_version("4.18.0-553.el8_10.x86_64") < host::kernel_whose_syncfs_tells_of_data);
  CHECK(parse_kernel_version("5.7.19") < host::kernel_whose_syncfs_tells_of_data);
  CHECK_FALSE(parse_kernel_version("5.8") < host::kernel_whose_syncfs_tells_of_data);
  CHECK_FALSE(parse_kernel_version("5.10.0") < host::kernel_whose_syncfs_tells_of_data);
  CHECK(parse_kernel_version("nonsense") < host::kernel_whose_syncfs_tells_of_data);
}

TEST_CASE("file_system__file_written_at_offsets__reads_back_with_partial_results") {
  host::PosixFileSystem files;
  const TempDir dir;
  const int fd = files.open(dir.fd(), "file", to_create(), 0640);
  REQUIRE(fd >= 0);
  CHECK(files.pwrite(fd, as_bytes("world"), 6) == 5);
  CHECK(files.pwrite(fd, as_bytes("hello "), 0) == 6);
  std::array<char, 32> buffer{};
  CHECK(files.pread(fd, std::as_writable_bytes(std::span(buffer)), 0) == 11);
  CHECK(std::string_view(buffer.data(), 11) == "hello world");
  CHECK(files.pread(fd, std::as_writable_bytes(std::span(buffer)), 11) == 0);
  CHECK(files.fsync(fd) == 0);
  CHECK(files.syncfs(fd) == 0);
  CHECK(files.truncate(fd, 5) == 0);
  FileStat stat;
  CHECK(files.fstat(fd, stat) == 0);
  CHECK(stat.type == FileType::regular);
  CHECK(stat.size_bytes == 5);
  CHECK(stat.links == 1);
  FileStat fresh;
  CHECK(files.fstat_fresh(fd, fresh) == 0);
  CHECK(fresh.size_bytes == 5);
  CHECK(fresh.ctime == stat.ctime);
  files.close(fd);
  CHECK(files.fstat(fd, stat) == -EBADF);
  CHECK(files.fstat_fresh(fd, stat) == -EBADF);
}

TEST_CASE("file_system__offsets_past_off_t__are_refused") {
  host::PosixFileSystem files;
  const TempDir dir;
  const int fd = files.open(dir.fd(), "file", to_create(), 0640);
  std::array<std::byte, 1> one{};
  CHECK(files.pread(fd, one, ~uint64_t{0}) == -EINVAL);
  CHECK(files.pwrite(fd, one, ~uint64_t{0}) == -EFBIG);
  CHECK(files.truncate(fd, ~uint64_t{0}) == -EFBIG);
  files.close(fd);
}

TEST_CASE("file_system__metadata_set__stat_shows_it") {
  host::PosixFileSystem files;
  const TempDir dir;
  const int fd = files.open(dir.fd(), "file", to_create(), 0600);
  CHECK(files.set_mode(fd, 0751) == 0);
  CHECK(files.set_owner(fd, ::getuid(), ::getgid()) == 0);
  FileStat stat;
  for (const FileTime mtime : {FileTime{1'700'000'000, 123'456'789}, FileTime{0, 0}, FileTime{-2, 500'000'000}}) {
    const std::array<timespec, 2> old{timespec{1, 0}, timespec{1, 0}};
    REQUIRE(::futimens(fd, old.data()) == 0);
    CHECK(files.set_mtime(fd, mtime) == 0);
    CHECK(files.stat_at(dir.fd(), "file", stat, false) == 0);
    CHECK(stat.mtime == mtime);
    struct stat whole {};
    REQUIRE(::fstat(fd, &whole) == 0);
    CHECK(whole.st_atim.tv_sec > 1);  // both times are set: some file systems take both or none
  }
  CHECK(stat.mode == 0751);
  CHECK(stat.uid == ::getuid());
  CHECK(stat.inode != 0);
  files.close(fd);
}

// Seconds of any size: mostly far out, the ends among them.
FileTime any_time(std::mt19937_64& random) {
  const auto nanoseconds = static_cast<uint32_t>(random() % ports::file_time_nanoseconds);
  return {static_cast<int64_t>(random()) >> (random() % 64), nanoseconds};
}

TEST_CASE("file_system__times_of_any_year__come_back_or_the_nearest_there_is") {
  host::PosixFileSystem files;
  const TempDir dir;
  const int fd = files.open(dir.fd(), "file", to_create(), 0600);
  std::mt19937_64 random(7);
  std::map<FileTime, FileTime> kept;
  const auto keep = [&](FileTime wanted) {
    FileStat stat;
    REQUIRE(files.set_mtime(fd, wanted) == 0);
    REQUIRE(files.fstat(fd, stat) == 0);
    kept[wanted] = stat.mtime;
    return stat.mtime;
  };
  for (int i = 0; i < 500; ++i) {
    const FileTime time = keep(any_time(random));
    CHECK(keep(time) == time);
  }
  const FileTime first = keep({std::numeric_limits<int64_t>::min(), 0});
  const FileTime last = keep({std::numeric_limits<int64_t>::max(), 999'999'999});
  FileTime before = first;
  for (const auto& [wanted, got] : kept) {
    CHECK(got >= before);
    if (wanted >= first && wanted <= last) CHECK(got.seconds == wanted.seconds);
    before = got;
  }
  CHECK(first.seconds <= std::numeric_limits<int32_t>::min());
  CHECK(last.seconds >= std::numeric_limits<int32_t>::max());
  files.close(fd);
}

TEST_CASE("file_system__times_on_tmpfs__are_kept_to_the_ends_of_64_bits") {
  struct statfs kind;
  if (::statfs("/dev/shm", &kind) != 0 || kind.f_type != TMPFS_MAGIC) return;
  host::PosixFileSystem files;
  const std::string name = "/dev/shm/ccixfer-times-" + std::to_string(::getpid());
  const int fd = files.open(ports::FileSystem::no_directory, name, to_create(), 0600);
  REQUIRE(fd >= 0);
  ::unlink(name.c_str());
  std::mt19937_64 random(7);
  std::vector<FileTime> times = {{std::numeric_limits<int64_t>::min(), 0}, {std::numeric_limits<int64_t>::max(), 0}};
  for (int i = 0; i < 500; ++i) times.push_back(any_time(random));
  for (const FileTime time : times) {
    FileStat stat;
    REQUIRE(files.set_mtime(fd, time) == 0);
    REQUIRE(files.fstat(fd, stat) == 0);
    CHECK(stat.mtime == time);
  }
  files.close(fd);
}

TEST_CASE("file_system__changed_within_the_grain_of_its_times__is_waited_out") {
  host::PosixFileSystem files;
  const auto now = [] {
    timespec time{};
    REQUIRE(::clock_gettime(CLOCK_REALTIME, &time) == 0);
    return FileTime{time.tv_sec, static_cast<uint32_t>(time.tv_nsec)};
  };
  FileTime change = now();
  while (!files.outwait(change)) change = now();  // this process may be stopped in between, but not each time
  CHECK(now() > change);
  CHECK_FALSE(files.outwait(change));
  change = {now().seconds - 1, 0};
  const bool waited = files.outwait(change);  // whole seconds: two of them, unless this process was stopped that long
  CHECK((waited || now().seconds >= change.seconds + 2));
  CHECK(now().seconds >= change.seconds + 2);
  for (const int64_t seconds : {int64_t{0}, now().seconds - 20, now().seconds + 20, std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max()}) {
    CHECK_FALSE(files.outwait({seconds, 0}));
    CHECK_FALSE(files.outwait({seconds, 1}));
  }
}

TEST_CASE("file_time__of_nanoseconds__counts_upwards_before_1970_too") {
  CHECK(FileTime::of_ns(0) == FileTime{0, 0});
  CHECK(FileTime::of_ns(-1) == FileTime{-1, 999'999'999});
  CHECK(FileTime::of_ns(-1'000'000'000) == FileTime{-1, 0});
  CHECK(FileTime::of_ns(std::numeric_limits<int64_t>::max()) == FileTime{9'223'372'036, 854'775'807});
  CHECK(FileTime::of_ns(std::numeric_limits<int64_t>::min()) == FileTime{-9'223'372'037, 145'224'192});
}

TEST_CASE("file_system__open_flags__create_exclusive_truncate_directory") {
  host::PosixFileSystem files;
  const TempDir dir;
  make_file(files, dir.fd(), "file", "text");
  CHECK(files.open(dir.fd(), "file", to_create(), 0600) == -EEXIST);
  CHECK(files.open(dir.fd(), "missing", to_read(), 0) == -ENOENT);
  CHECK(files.open(dir.fd(), "file", to_read_directory(), 0) == -ENOTDIR);
  CHECK(files.mkdir_at(dir.fd(), "sub", 0755) == 0);
  CHECK(files.open(dir.fd(), "sub", {.mode = OpenMode::write}, 0) == -EISDIR);
  const int fd = files.open(dir.fd(), "file", {.mode = OpenMode::write, .truncate = true}, 0);
  REQUIRE(fd >= 0);
  FileStat stat;
  CHECK(files.fstat(fd, stat) == 0);
  CHECK(stat.size_bytes == 0);
  std::array<std::byte, 1> one{};
  CHECK(files.pread(fd, one, 0) == -EBADF);
  files.close(fd);
}

TEST_CASE("file_system__anchor__opens_names_below_it_and_is_not_read_itself") {
  const TempDir dir;
  host::PosixFileSystem files;
  REQUIRE(files.mkdir_at(dir.fd(), "sub", 0755) == 0);
  make_file(files, dir.fd(), "file", "text");
  const OpenFlags to_anchor{.directory = true, .anchor = true};
  for (const int anchor :
       {files.open(ports::FileSystem::no_directory, dir.path(), to_anchor, 0), files.open(dir.fd(), ".", to_anchor, 0)}) {
    REQUIRE(anchor >= 0);
    CHECK((::fcntl(anchor, F_GETFL) & O_PATH) != 0);
    CHECK((::fcntl(anchor, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(files.read_directory(anchor, [](std::string_view) {}) == -EBADF);
    for (const auto& [name, flags] : {std::pair{"file", to_read()}, std::pair{"sub", to_read_directory()}}) {
      const int fd = files.open(anchor, name, flags, 0);
      CHECK(fd >= 0);
      files.close(fd);
    }
    CHECK(files.open(anchor, "../x", to_read(), 0) == -EXDEV);
    files.close(anchor);
  }
  CHECK(files.open(dir.fd(), "file", to_anchor, 0) == -ENOTDIR);
}

TEST_CASE("file_system__open_of_a_fifo__does_not_block") {
  host::PosixFileSystem files;
  const TempDir dir;
  REQUIRE(::mkfifo((dir.path() + "/fifo").c_str(), 0600) == 0);
  const int fd = files.open(dir.fd(), "fifo", to_read(), 0);
  REQUIRE(fd >= 0);
  FileStat stat;
  CHECK(files.fstat(fd, stat) == 0);
  CHECK(stat.type == FileType::other);
  files.close(fd);
  CHECK(files.open(dir.fd(), "fifo", {.mode = OpenMode::write}, 0) == -ENXIO);
}

TEST_CASE("file_system__names_that_escape__are_refused") {
  host::PosixFileSystem files;
  const TempDir outer;
  make_file(files, outer.fd(), "secret", "x");
  REQUIRE(files.mkdir_at(outer.fd(), "root", 0755) == 0);
  const int root = files.open(outer.fd(), "root", to_read_directory(), 0);
  REQUIRE(root >= 0);
  REQUIRE(files.mkdir_at(root, "sub", 0755) == 0);
  make_file(files, root, "sub/file", "y");
  REQUIRE(files.symlink_at("..", root, "up") == 0);
  REQUIRE(files.symlink_at("sub", root, "down") == 0);
  REQUIRE(files.symlink_at("../secret", root, "leak") == 0);

  for (const char* name : {"../secret", "sub/../../secret", "/etc/passwd", ".."}) {
    CAPTURE(name);
    CHECK(files.open(root, name, to_read(), 0) == -EXDEV);
    CHECK(files.open(root, name, {.follow = true}, 0) == -EXDEV);
  }
  for (const char* name : {"up/secret", "leak", "down/file"}) {
    CAPTURE(name);
    CHECK(files.open(root, name, to_read(), 0) == -ELOOP);
    CHECK(files.open(root, name, {.mode = OpenMode::write, .create = true}, 0600) == -ELOOP);
  }
  CHECK(files.open(root, "up/secret", {.follow = true}, 0) == -ELOOP);
  const int inside = files.open(root, "sub/../sub/file", to_read(), 0);
  CHECK(inside >= 0);
  files.close(inside);
  const std::string leak = outer.path() + "/root/leak";
  const int typed = files.open(ports::FileSystem::no_directory, leak, {}, 0);
  CHECK(typed >= 0);
  files.close(typed);
  CHECK(files.open(ports::FileSystem::no_directory, leak, {.no_link = true}, 0) == -ELOOP);
  const int followed = files.open(root, "leak", {.follow = true}, 0);
  CHECK(followed >= 0);
  files.close(followed);

  FileStat stat;
  std::string target;
  for (const char* name : {"../secret", "/etc/passwd", "..", "up/secret", "sub/file"}) {
    CAPTURE(name);
    CHECK(files.stat_at(root, name, stat, false) == -EXDEV);
    CHECK(files.mkdir_at(root, name, 0755) == -EXDEV);
    CHECK(files.symlink_at("t", root, name) == -EXDEV);
    CHECK(files.readlink_at(root, name, target) == -EXDEV);
    CHECK(files.rename_at(root, name, root, "new") == -EXDEV);
    CHECK(files.rename_at(root, "sub", root, name) == -EXDEV);
    CHECK(files.unlink_at(root, name, false) == -EXDEV);
    CHECK(files.set_link_owner_at(root, name, ::getuid(), ::getgid()) == -EXDEV);
    CHECK(files.set_link_mtime_at(root, name, {}) == -EXDEV);
  }
  files.close(root);
}

TEST_CASE("file_system__names_with_nul_or_too_long__are_refused") {
  host::PosixFileSystem files;
  const TempDir dir;
  make_file(files, dir.fd(), "a", "x");
  const std::string with_nul("a\0b", 3);
  const std::string too_long(5000, 'a');
  const std::string long_component(256, 'a');
  FileStat stat;
  CHECK(files.open(dir.fd(), with_nul, to_read(), 0) == -EINVAL);
  CHECK(files.stat_at(dir.fd(), with_nul, stat, false) == -EINVAL);
  CHECK(files.unlink_at(dir.fd(), with_nul, false) == -EINVAL);
  CHECK(files.symlink_at(with_nul, dir.fd(), "link") == -EINVAL);
  CHECK(files.open(dir.fd(), too_long, to_read(), 0) == -ENAMETOOLONG);
  CHECK(files.mkdir_at(dir.fd(), long_component, 0755) == -ENAMETOOLONG);
  CHECK(files.open(dir.fd(), "", to_read(), 0) == -ENOENT);
}

TEST_CASE("file_system__directory__lists_every_name_again_and_again") {
  host::PosixFileSystem files;
  const TempDir dir;
  std::vector<std::string> expected;
  for (int i = 0; i < 2000; ++i) {  // more than one buffer of entries
    expected.push_back("a-rather-long-name-of-a-file-" + std::to_string(10000 + i));
    make_file(files, dir.fd(), expected.back(), "");
  }
  const int fd = files.open(dir.fd(), ".", to_read_directory(), 0);
  REQUIRE(fd >= 0);
  CHECK(names(files, fd) == expected);
  CHECK(names(files, fd) == expected);
  // In parts, while names that were given already go and others come.
  std::vector<std::string> got;
  size_t parts = 1;
  const auto take = [&](std::string_view name) {
    if (name.starts_with("a-rather")) got.emplace_back(name);
  };
  for (int more = files.read_directory_part(fd, true, take); more > 0; ++parts) {
    REQUIRE(more == 1);
    for (size_t i = 0; i < got.size(); i += 3) files.unlink_at(dir.fd(), got[i], false);
    make_file(files, dir.fd(), "new" + std::to_string(parts), "");
    more = files.read_directory_part(fd, false, take);
  }
  std::sort(got.begin(), got.end());
  CHECK(parts > 3);
  CHECK(got == expected);
  files.close(fd);
  CHECK(files.read_directory(fd, [](std::string_view) {}) == -EBADF);
  const int file = files.open(dir.fd(), "new1", to_read(), 0);
  CHECK(files.read_directory(file, [](std::string_view) {}) == -ENOTDIR);
  files.close(file);
}

TEST_CASE("file_system__rename_and_unlink__move_and_remove") {
  host::PosixFileSystem files;
  const TempDir dir;
  REQUIRE(files.mkdir_at(dir.fd(), "to", 0755) == 0);
  CHECK(files.mkdir_at(dir.fd(), "to", 0755) == -EEXIST);
  const int to = files.open(dir.fd(), "to", to_read_directory(), 0);
  make_file(files, dir.fd(), "new", "new");
  make_file(files, to, "old", "old text");
  CHECK(files.rename_at(dir.fd(), "new", to, "old") == 0);
  FileStat stat;
  CHECK(files.stat_at(dir.fd(), "new", stat, false) == -ENOENT);
  CHECK(files.stat_at(to, "old", stat, false) == 0);
  CHECK(stat.size_bytes == 3);
  CHECK(files.rename_at(dir.fd(), "new", to, "old") == -ENOENT);
  CHECK(files.unlink_at(dir.fd(), "to", true) == -ENOTEMPTY);
  CHECK(files.unlink_at(dir.fd(), "to", false) == -EISDIR);
  CHECK(files.unlink_at(to, "old", true) == -ENOTDIR);
  CHECK(files.unlink_at(to, "old", false) == 0);
  CHECK(files.unlink_at(to, "old", false) == -ENOENT);
  CHECK(files.unlink_at(dir.fd(), "to", true) == 0);
  files.close(to);
}

TEST_CASE("file_system__symlink__made_read_and_touched_without_following") {
  host::PosixFileSystem files;
  const TempDir dir;
  make_file(files, dir.fd(), "file", "1234");
  REQUIRE(files.set_mtime(dir.fd(), {5, 0}) == 0);
  const std::string target = "file";
  CHECK(files.symlink_at(target, dir.fd(), "link") == 0);
  CHECK(files.symlink_at(target, dir.fd(), "link") == -EEXIST);
  std::string got;
  CHECK(files.readlink_at(dir.fd(), "link", got) == 4);
  CHECK(got == target);
  CHECK(files.readlink_at(dir.fd(), "file", got) == -EINVAL);
  CHECK(files.set_link_mtime_at(dir.fd(), "link", {7, 1}) == 0);
  CHECK(files.set_link_owner_at(dir.fd(), "link", ::getuid(), ::getgid()) == 0);
  FileStat stat;
  CHECK(files.stat_at(dir.fd(), "link", stat, false) == 0);
  CHECK(stat.type == FileType::symlink);
  CHECK(stat.mtime == FileTime{7, 1});
  CHECK(files.stat_at(dir.fd(), "link", stat, true) == 0);
  CHECK(stat.type == FileType::regular);
  CHECK(stat.size_bytes == 4);
}

TEST_CASE("file_system__path_as_typed__follows_links") {
  host::PosixFileSystem files;
  const TempDir dir;
  make_file(files, dir.fd(), "file", "1234");
  REQUIRE(files.symlink_at("file", dir.fd(), "link") == 0);
  const int fd = files.open(ports::FileSystem::no_directory, dir.path() + "/link", to_read(), 0);
  REQUIRE(fd >= 0);
  FileStat stat;
  CHECK(files.fstat(fd, stat) == 0);
  CHECK(stat.type == FileType::regular);
  CHECK(files.stat_at(ports::FileSystem::no_directory, dir.path() + "/link", stat, false) == 0);
  CHECK(stat.type == FileType::symlink);
  files.close(fd);
}

TEST_CASE("file_system__space__tells_what_is_free") {
  host::PosixFileSystem files;
  const TempDir dir;
  ports::SpaceInfo info;
  CHECK(files.space(dir.fd(), info) == 0);
  CHECK(info.free_bytes > 0);
  CHECK(info.free_inodes > 0);
  CHECK_FALSE(info.read_only);
}

TEST_CASE("file_system__space__says_where_writes_into_one_file_take_turns") {
  host::PosixFileSystem files;
  const auto takes_turns = [&](const char* path) {
    const int fd = files.open(ports::FileSystem::no_directory, path, {.directory = true}, 0);
    ports::SpaceInfo info;
    REQUIRE(files.space(fd, info) == 0);
    files.close(fd);
    return info.one_writer_a_file;
  };
  CHECK(takes_turns("/dev/shm"));
  CHECK_FALSE(takes_turns("/proc"));
}

TEST_CASE("file_system__bad_descriptor__every_call_says_so") {
  host::PosixFileSystem files;
  std::array<std::byte, 1> one{};
  FileStat stat;
  ports::SpaceInfo info;
  std::string text;
  CHECK(files.open(bad_fd, "a", to_read(), 0) == -EBADF);
  CHECK(files.pread(bad_fd, one, 0) == -EBADF);
  CHECK(files.pwrite(bad_fd, one, 0) == -EBADF);
  CHECK(files.fstat(bad_fd, stat) == -EBADF);
  CHECK(files.stat_at(bad_fd, "a", stat, false) == -EBADF);
  CHECK(files.mkdir_at(bad_fd, "a", 0755) == -EBADF);
  CHECK(files.symlink_at("t", bad_fd, "a") == -EBADF);
  CHECK(files.readlink_at(bad_fd, "a", text) == -EBADF);
  CHECK(files.rename_at(bad_fd, "a", bad_fd, "b") == -EBADF);
  CHECK(files.unlink_at(bad_fd, "a", false) == -EBADF);
  CHECK(files.truncate(bad_fd, 0) == -EBADF);
  CHECK(files.set_mode(bad_fd, 0600) == -EBADF);
  CHECK(files.set_owner(bad_fd, 0, 0) == -EBADF);
  CHECK(files.set_mtime(bad_fd, {}) == -EBADF);
  CHECK(files.set_link_owner_at(bad_fd, "a", 0, 0) == -EBADF);
  CHECK(files.set_link_mtime_at(bad_fd, "a", {}) == -EBADF);
  CHECK(files.fsync(bad_fd) == -EBADF);
  CHECK(files.syncfs(bad_fd) == -EBADF);
  CHECK(files.space(bad_fd, info) == -EBADF);
}

TEST_CASE("file_system__directory_moved_removed_or_made_anew__identity_tells") {
  host::PosixFileSystem files;
  const TempDir dir;
  ports::FileIdentity first, now;
  REQUIRE(files.mkdir_at(dir.fd(), "d", 0755) == 0);
  REQUIRE(files.identify(dir.fd(), "d", first) == 0);
  CHECK(first.type == FileType::directory);
  const int fd = files.open(dir.fd(), "d", to_read_directory(), 0);
  CHECK(files.identify(fd, ".", now) == 0);
  CHECK(now == first);
  files.close(fd);
  REQUIRE(files.rename_at(dir.fd(), "d", dir.fd(), "moved") == 0);
  CHECK(files.identify(dir.fd(), "moved", now) == 0);
  CHECK(now == first);
  CHECK(files.identify(dir.fd(), "d", now) == -ENOENT);
  REQUIRE(files.unlink_at(dir.fd(), "moved", true) == 0);
  REQUIRE(files.mkdir_at(dir.fd(), "d", 0755) == 0);  // perhaps with the same inode number
  REQUIRE(files.identify(dir.fd(), "d", now) == 0);
  CHECK_FALSE(now == first);
  REQUIRE(files.symlink_at("d", dir.fd(), "link") == 0);
  REQUIRE(files.identify(dir.fd(), "link", now) == 0);
  CHECK(now.type == FileType::symlink);
  CHECK(files.identify(dir.fd(), "..", now) == -EXDEV);
}

TEST_CASE("file_system__access_control_lists__are_read_set_and_taken_away") {
  host::PosixFileSystem files;
  const TempDir dir;
  REQUIRE(files.mkdir_at(dir.fd(), "d", 0755) == 0);
  const int fd = files.open(dir.fd(), "d", to_read_directory(), 0);
  std::string acl = "x";
  CHECK(files.get_acl(fd, true, acl) == 0);
  CHECK(acl.empty());
  CHECK(files.set_acl(fd, true, "") == 0);
  // Version 2; user::rwx, user 7:rwx, group::r-x, mask::rwx, other::---: tag, permissions (16 bits each), id (32 bits).
  const std::string some(
      "\2\0\0\0\1\0\7\0\377\377\377\377\2\0\7\0\7\0\0\0\4\0\5\0\377\377\377\377\20\0\7\0\377\377\377\377\40\0\0\0\377\377\377\377",
      44);
  const int set = files.set_acl(fd, true, some);
  if (set == -ENOTSUP) {
    WARN("the file system of the temporary directory has no access control lists");
  } else {
    REQUIRE(set == 0);
    CHECK(files.get_acl(fd, true, acl) == 0);
    CHECK((acl == some));
    CHECK(files.get_acl(fd, false, acl) == 0);
    CHECK(acl.empty());
    CHECK(files.set_acl(fd, true, "") == 0);
    CHECK(files.get_acl(fd, true, acl) == 0);
    CHECK(acl.empty());
  }
  files.close(fd);
}

TEST_CASE("file_system__a_path_longer_than_the_kernel_takes__is_opened_all_the_same") {
  const TempDir dir;
  host::PosixFileSystem files;
  std::string path;
  int at = ::dup(dir.fd());
  const std::string component(200, 'd');
  while (path.size() < 10'000) {
    REQUIRE(files.mkdir_at(at, component, 0755) == 0);
    const int below = files.open(at, component, to_read_directory(), 0);
    REQUIRE(below >= 0);
    files.close(at);
    at = below;
    path += component + "/";
  }
  make_file(files, at, "file", "deep down");
  REQUIRE(::symlinkat("file", at, "link") == 0);
  const int file = files.open(dir.fd(), path + "file", to_read(), 0);
  REQUIRE(file >= 0);
  std::array<std::byte, 4> bytes{};
  CHECK(files.pread(file, bytes, 5) == 4);
  CHECK(files.close(file) == 0);
  CHECK(files.open(dir.fd(), path + "link", to_read(), 0) == -ELOOP);
  const int followed = files.open(dir.fd(), path + "link", {.follow = true}, 0);
  CHECK(followed >= 0);
  files.close(followed);
  CHECK(files.open(dir.fd(), path + "nothing", to_read(), 0) == -ENOENT);
  // A link that replaces a directory in the first step leads nowhere either.
  REQUIRE(::renameat(dir.fd(), component.c_str(), dir.fd(), "moved") == 0);
  REQUIRE(::symlinkat("moved", dir.fd(), component.c_str()) == 0);
  CHECK(files.open(dir.fd(), path + "file", to_read(), 0) == -ELOOP);
  // Nor does a step lead out of the directory.
  CHECK(files.open(dir.fd(), "../" + path + "file", to_read(), 0) == -EXDEV);
  files.close(at);
}
