// The system's own calls as the oracle: what stat, statvfs and fcntl say is what we say.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <set>
#include <string>

#include "core/host/file_system.h"
#include "tests/unit/host/temp_dir.h"

using namespace ccixfer;
using ports::FileStat;
using ports::FileSystem;
using ports::FileType;
using ports::OpenMode;
using testing::TempDir;

namespace {

constexpr int bad_fd = 1'000'000;

int make(host::PosixFileSystem& files, const TempDir& dir, const char* name) {
  const int fd = files.open(dir.fd(), name, {.mode = OpenMode::read_write, .create = true, .exclusive = true}, 0600);
  REQUIRE(fd >= 0);
  return fd;
}

void same(const FileStat& ours, const struct stat& theirs) {
  CHECK(ours.mode == (theirs.st_mode & 07777));
  CHECK(ours.uid == theirs.st_uid);
  CHECK(ours.gid == theirs.st_gid);
  CHECK(ours.device == theirs.st_dev);
  CHECK(ours.inode == theirs.st_ino);
  CHECK(ours.links == theirs.st_nlink);
  CHECK(ours.size_bytes == static_cast<uint64_t>(theirs.st_size));
  CHECK(ours.mtime.seconds == theirs.st_mtim.tv_sec);
  CHECK(ours.mtime.nanoseconds == theirs.st_mtim.tv_nsec);
  CHECK(ours.ctime.seconds == theirs.st_ctim.tv_sec);
  CHECK(ours.ctime.nanoseconds == theirs.st_ctim.tv_nsec);
}

}  // namespace

TEST_CASE("file_system__stat__every_field_as_the_system_tells_it") {
  host::PosixFileSystem files;
  const TempDir dir;
  const int fd = make(files, dir, "file");
  REQUIRE(files.pwrite(fd, as_bytes("12345"), 0) == 5);
  REQUIRE(files.set_mode(fd, 0106751) == 0);  // more than permissions is not asked for
  REQUIRE(::link((dir.path() + "/file").c_str(), (dir.path() + "/second").c_str()) == 0);
  REQUIRE(files.symlink_at("file", dir.fd(), "link") == 0);
  REQUIRE(::mkfifo((dir.path() + "/fifo").c_str(), 0600) == 0);
  struct Case {
    const char* name;
    FileType type;
  };
  for (const Case& one :
       {Case{"file", FileType::regular}, {"link", FileType::symlink}, {"fifo", FileType::other}, {".", FileType::directory}}) {
    INFO(one.name);
    FileStat stat;
    struct stat oracle {};
    REQUIRE(files.stat_at(dir.fd(), one.name, stat, false) == 0);
    REQUIRE(::lstat((dir.path() + "/" + one.name).c_str(), &oracle) == 0);
    CHECK(stat.type == one.type);
    same(stat, oracle);
  }
  FileStat followed, open;
  struct stat oracle {};
  REQUIRE(files.stat_at(dir.fd(), "link", followed, true) == 0);
  REQUIRE(files.fstat(fd, open) == 0);
  REQUIRE(::fstat(fd, &oracle) == 0);
  same(followed, oracle);
  same(open, oracle);
  CHECK(open.mode == 06751);
  CHECK(open.links == 2);
  files.close(fd);
}

TEST_CASE("file_system__opened__closed_when_another_program_starts_and_never_blocking") {
  host::PosixFileSystem files;
  const TempDir dir;
  const int fd = make(files, dir, "file");
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
  files.close(fd);
  const auto mode_of = [&](OpenMode mode) {
    const int one = files.open(dir.fd(), "file", {.mode = mode}, 0);
    REQUIRE(one >= 0);
    const int flags = ::fcntl(one, F_GETFL) & O_ACCMODE;
    files.close(one);
    return flags;
  };
  CHECK(mode_of(OpenMode::read) == O_RDONLY);
  CHECK(mode_of(OpenMode::write) == O_WRONLY);
  CHECK(files.close(bad_fd) == -EBADF);
  CHECK(files.close(files.open(dir.fd(), "file", {}, 0)) == 0);
}

TEST_CASE("file_system__open_that_follows__only_the_last_part_may_be_a_link") {
  host::PosixFileSystem files;
  const TempDir dir;
  REQUIRE(files.mkdir_at(dir.fd(), "d", 0755) == 0);
  files.close(make(files, dir, "d/file"));
  REQUIRE(::symlink("file", (dir.path() + "/d/link").c_str()) == 0);
  REQUIRE(::symlink("d", (dir.path() + "/dlink").c_str()) == 0);
  ports::OpenFlags follow;
  follow.follow = true;
  const auto opened = [&](const char* name, const ports::OpenFlags& flags) {
    const int fd = files.open(dir.fd(), name, flags, 0);
    if (fd >= 0) files.close(fd);
    return fd >= 0 ? 0 : fd;
  };
  CHECK(opened("d/link", follow) == 0);
  CHECK(opened("d/link", {}) == -ELOOP);
  CHECK(opened("dlink/file", follow) == -ELOOP);
  CHECK(opened("nowhere/file", follow) == -ENOENT);
  CHECK(opened("..", follow) == -EXDEV);
  CHECK(opened("d/..", follow) == -EXDEV);
  CHECK(opened("d/file/x", follow) == -ENOTDIR);
  const int next = ::dup(dir.fd());  // nothing of all this stayed open
  ::close(next);
  for (int i = 0; i < 10; ++i) CHECK(opened("d/link", follow) == 0);
  const int again = ::dup(dir.fd());
  CHECK(again == next);
  ::close(again);
}

TEST_CASE("file_system__streams__what_there_is_nothing_yet_and_the_end") {
  host::PosixFileSystem files;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);  // it blocks: whoever reads waits no longer than a moment all the same
  std::array<char, 16> buffer{};
  const auto into = std::as_writable_bytes(std::span(buffer));
  CHECK(files.read_stream(ends[0], into) == -EAGAIN);
  REQUIRE(::write(ends[1], "hello", 5) == 5);
  CHECK(files.read_stream(ends[0], into.first(3)) == 3);
  CHECK(files.read_stream(ends[0], into.subspan(3)) == 2);
  CHECK(std::string_view(buffer.data(), 5) == "hello");
  ::close(ends[1]);
  CHECK(files.read_stream(ends[0], into) == 0);
  ::close(ends[0]);
  CHECK(files.read_stream(bad_fd, into) == -EBADF);
}

// A timer's signals end the wait before its time, and that is as if nothing had come yet; a kernel that refuses to wait is an
// error.
TEST_CASE("file_system__waiting_for_a_stream__a_signal_is_nothing_yet_and_a_refusal_is_told") {
  host::PosixFileSystem files;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  std::array<std::byte, 4> into{};
  static volatile sig_atomic_t rung = 0;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { rung = 1; };
  REQUIRE(::sigaction(SIGALRM, &action, &before) == 0);
  const itimerval every_ms{{0, 1000}, {0, 1000}}, none{};
  REQUIRE(::setitimer(ITIMER_REAL, &every_ms, nullptr) == 0);
  rung = 0;
  while (rung == 0) CHECK(files.read_stream(ends[0], into) == -EAGAIN);
  REQUIRE(::setitimer(ITIMER_REAL, &none, nullptr) == 0);
  REQUIRE(::sigaction(SIGALRM, &before, nullptr) == 0);

  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &usual) == 0);
  const rlimit no_handles{0, usual.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &no_handles) == 0);  // more handles than that are not waited for
  const int64_t refused = files.read_stream(ends[0], into);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
  CHECK(refused == -EINVAL);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("file_system__directory_in_parts__goes_on_where_it_was_until_the_end") {
  host::PosixFileSystem files;
  const TempDir dir;
  std::multiset<std::string> wanted;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = std::string(40, 'n') + std::to_string(i);
    REQUIRE(files.symlink_at("x", dir.fd(), name) == 0);
    wanted.insert(name);
  }
  const int fd = files.open(dir.fd(), ".", {.directory = true}, 0);
  for (int round = 0; round < 2; ++round) {
    std::multiset<std::string> got;
    size_t parts = 0;
    int result = 1;
    while ((result = files.read_directory_part(fd, parts == 0, [&](std::string_view name) { got.emplace(name); })) == 1) ++parts;
    CHECK(result == 0);
    CHECK(parts > 1);
    CHECK((got == wanted));  // neither itself nor the one above
  }
  files.close(fd);
  CHECK(files.read_directory_part(bad_fd, true, [](std::string_view) {}) == -EBADF);
  const int file = make(files, dir, "file");
  CHECK(files.read_directory_part(file, false, [](std::string_view) {}) == -ENOTDIR);
  files.close(file);
}

TEST_CASE("file_system__space__as_statvfs_tells_it") {
  host::PosixFileSystem files;
  for (const char* path : {"/dev/shm", "/proc", "/"}) {
    INFO(path);
    const int fd = files.open(FileSystem::no_directory, path, {.directory = true}, 0);
    ports::SpaceInfo info;
    struct statvfs oracle {};
    REQUIRE(files.space(fd, info) == 0);
    REQUIRE(::fstatvfs(fd, &oracle) == 0);
    // Others write to it meanwhile.
    const double expected = static_cast<double>(oracle.f_bavail) * static_cast<double>(oracle.f_frsize);
    CHECK(static_cast<double>(info.free_bytes) == Approx(expected).epsilon(0.05).margin(1.0));
    if (oracle.f_files == 0) CHECK(info.free_inodes == UINT64_MAX);
    if (oracle.f_files != 0) CHECK(static_cast<double>(info.free_inodes) == Approx(double(oracle.f_favail)).epsilon(0.05));
    CHECK(info.read_only == ((oracle.f_flag & ST_RDONLY) != 0));
    CHECK(info.lasting_identity);
    files.close(fd);
  }
  ports::SpaceInfo memory, proc;
  const int shm = files.open(FileSystem::no_directory, "/dev/shm", {.directory = true}, 0);
  REQUIRE(files.space(shm, memory) == 0);
  CHECK(memory.syncfs_tells);  // of every kernel that these tests run on
  files.close(shm);
  const int other = files.open(FileSystem::no_directory, "/proc", {.directory = true}, 0);
  REQUIRE(files.space(other, proc) == 0);
  CHECK_FALSE(proc.syncfs_tells);
  files.close(other);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(files.descriptors_max() == limit.rlim_cur);
}

TEST_CASE("file_system__links__their_times_and_targets_are_their_own") {
  host::PosixFileSystem files;
  const TempDir dir;
  const int fd = make(files, dir, "file");
  struct stat oracle {};
  const auto access_time = [&] {
    REQUIRE(::stat((dir.path() + "/file").c_str(), &oracle) == 0);
    return std::pair{oracle.st_atim.tv_sec, oracle.st_atim.tv_nsec};
  };
  REQUIRE(files.set_mtime(fd, {1000, 5}) == 0);
  const auto before = access_time();  // what sets the times of a link does not touch those of its target
  files.close(fd);
  const std::string target(4000, 't');
  REQUIRE(files.symlink_at("file", dir.fd(), "link") == 0);
  REQUIRE(files.symlink_at(target, dir.fd(), "long") == 0);
  std::string got = "x";
  CHECK(files.readlink_at(dir.fd(), "long", got) == 4000);
  CHECK((got == target));
  CHECK(files.readlink_at(dir.fd(), "file", got) == -EINVAL);
  CHECK(got.empty());
  CHECK(files.set_link_mtime_at(dir.fd(), "link", {2000, 7}) == 0);
  CHECK(files.set_link_owner_at(dir.fd(), "link", ::getuid(), ::getgid()) == 0);
  FileStat link, file;
  REQUIRE(files.stat_at(dir.fd(), "link", link, false) == 0);
  REQUIRE(files.stat_at(dir.fd(), "file", file, false) == 0);
  CHECK(link.mtime == ports::FileTime{2000, 7});
  CHECK(file.mtime == ports::FileTime{1000, 5});
  CHECK(access_time() == before);
  const int again = files.open(dir.fd(), "file", {.mode = OpenMode::read_write}, 0);
  REQUIRE(files.set_mtime(again, {3000, 0}) == 0);
  files.close(again);
  CHECK(access_time() >= before);
}

TEST_CASE("file_system__identity_and_lists__where_there_are_none") {
  host::PosixFileSystem files;
  const TempDir dir;
  files.close(make(files, dir, "file"));
  REQUIRE(files.symlink_at("file", dir.fd(), "link") == 0);
  ports::FileIdentity typed, named, link;
  CHECK(files.identify(FileSystem::no_directory, dir.path() + "/link", typed) == 0);  // as typed: links are followed
  CHECK(files.identify(dir.fd(), "file", named) == 0);
  CHECK(files.identify(dir.fd(), "link", link) == 0);
  CHECK(typed == named);
  CHECK_FALSE(link == named);
  CHECK(typed.type == FileType::regular);
  struct stat oracle {};
  REQUIRE(::stat((dir.path() + "/file").c_str(), &oracle) == 0);
  CHECK(typed.inode == oracle.st_ino);
  CHECK(typed.device == oracle.st_dev);
  CHECK(files.identify(FileSystem::no_directory, dir.path() + "/nothing", typed) == -ENOENT);
  const int proc = files.open(FileSystem::no_directory, "/proc/self", {.directory = true}, 0);
  std::string acl = "x";
  CHECK(files.get_acl(proc, false, acl) == 0);
  CHECK(acl.empty());
  files.close(proc);
  acl = "x";
  CHECK(files.get_acl(bad_fd, false, acl) == -EBADF);
  CHECK(acl.empty());
  CHECK(files.set_acl(bad_fd, false, "") == -EBADF);
  CHECK(files.set_acl(bad_fd, false, "x") == -EBADF);
}

TEST_CASE("file_system__lock__holds_between_descriptors_as_fcntl_sees_it") {
  using Lock = FileSystem::Lock;
  host::PosixFileSystem files;
  const TempDir dir;
  const int first = make(files, dir, "file");
  const int second = files.open(dir.fd(), "file", {.mode = OpenMode::read_write}, 0);
  REQUIRE(second >= 0);
  // What anybody who asks the system is told.
  const auto system_says = [&] {
    struct flock wanted {};
    wanted.l_type = F_WRLCK;
    REQUIRE(::fcntl(second, F_OFD_GETLK, &wanted) == 0);
    return wanted.l_type;
  };
  CHECK(files.lock(first, Lock::shared) == 0);
  CHECK(system_says() == F_RDLCK);
  CHECK(files.lock(second, Lock::shared) == 0);
  CHECK(files.lock(second, Lock::alone) == -EAGAIN);
  CHECK(files.lock(first, Lock::none) == 0);
  CHECK(files.lock(second, Lock::alone) == 0);
  CHECK(files.lock(first, Lock::shared) == -EAGAIN);
  files.close(second);  // and what it held
  CHECK(files.lock(first, Lock::alone) == 0);
  CHECK(files.lock(bad_fd, Lock::shared) == -EBADF);
  files.close(first);
}
