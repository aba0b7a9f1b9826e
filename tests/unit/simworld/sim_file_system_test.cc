// The simulated disk: as system calls behave, and what a crash forgets.
#include "transports/sim/sim_file_system.h"

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

using namespace ccixfer;
using ports::FileStat;
using ports::FileType;
using ports::OpenFlags;
using ports::OpenMode;
using sim::NodeId;
using sim::SimFileSystem;
using sim::World;

namespace {

constexpr int cwd = ports::FileSystem::no_directory;
OpenFlags to_create() { return {.mode = OpenMode::read_write, .create = true, .exclusive = true}; }

struct Disk {
  explicit Disk(uint64_t seed, const sim::FileSystemOptions& options = {})
      : world(seed), node(world.add_node("n")), files(world, node, options) {}
  World world;
  NodeId node;
  SimFileSystem files;

  int directory(const std::string& path) { return files.open(cwd, path, {.directory = true}, 0); }
  void power_cut() {
    files.crash();
    files.mount();
  }
};

}  // namespace

TEST_CASE("sim_file_system__calls__behave_as_the_system_calls_do") {
  Disk disk(1);
  SimFileSystem& files = disk.files;
  REQUIRE(files.mkdir_at(cwd, "/d", 0755) == 0);
  CHECK(files.mkdir_at(cwd, "/d", 0755) == -EEXIST);
  const int d = disk.directory("/d");
  REQUIRE(d >= 0);
  const int fd = files.open(d, "f", to_create(), 0640);
  REQUIRE(fd >= 0);
  CHECK(files.open(d, "f", to_create(), 0640) == -EEXIST);
  CHECK(files.pwrite(fd, as_bytes("hello"), 40'000) == 5);
  std::array<std::byte, 8> buffer{};
  CHECK(files.pread(fd, buffer, 39'998) == 7);
  CHECK(buffer[1] == std::byte{0});
  CHECK(as_text(Bytes(buffer).subspan(2, 5)) == "hello");
  CHECK(files.pread(fd, buffer, 40'005) == 0);
  CHECK(files.truncate(fd, 40'001) == 0);
  CHECK(files.truncate(fd, 40'005) == 0);
  CHECK(files.pread(fd, buffer, 40'000) == 5);
  CHECK(buffer[0] == std::byte{'h'});
  CHECK(buffer[1] == std::byte{0});
  CHECK(files.set_mode(fd, 0600) == 0);
  CHECK(files.set_owner(fd, 7, ~0u) == 0);
  CHECK(files.set_mtime(fd, ports::FileTime::of_ns(-5)) == 0);
  FileStat stat;
  CHECK(files.stat_at(d, "f", stat, false) == 0);
  CHECK(stat.mode == 0600);
  CHECK(stat.uid == 7);
  CHECK(stat.mtime == ports::FileTime{-1, 999'999'995});
  CHECK(stat.size_bytes == 40'005);
  CHECK(files.symlink_at("f", d, "l") == 0);
  std::string target;
  CHECK(files.readlink_at(d, "l", target) == 1);
  CHECK(target == "f");
  CHECK(files.readlink_at(d, "f", target) == -EINVAL);
  std::set<std::string> names;
  CHECK(files.read_directory(d, [&](std::string_view name) { names.emplace(name); }) == 0);
  CHECK(names == std::set<std::string>{"f", "l"});
  CHECK(files.unlink_at(cwd, "/d", true) == -ENOTEMPTY);
  CHECK(files.unlink_at(d, "l", false) == 0);
  CHECK(files.rename_at(d, "f", cwd, "/g") == 0);
  CHECK(files.stat_at(d, "f", stat, false) == -ENOENT);
  CHECK(files.unlink_at(cwd, "/d", true) == 0);
  CHECK(files.mkdir_at(d, "sub", 0755) == -ENOENT);
  files.close(fd);
  CHECK(files.pread(fd, buffer, 0) == -EBADF);
  CHECK(files.get("/g").value().size() == 40'005);
}

TEST_CASE("sim_file_system__lock__as_on_the_host_and_gone_after_a_crash") {
  using Lock = SimFileSystem::Lock;
  Disk disk(1);
  SimFileSystem& files = disk.files;
  const int first = files.open(cwd, "/f", to_create(), 0640);
  const int second = files.open(cwd, "/f", {.mode = OpenMode::read_write}, 0);
  REQUIRE(second >= 0);
  CHECK(files.lock(first, Lock::shared) == 0);
  CHECK(files.lock(second, Lock::shared) == 0);
  CHECK(files.lock(second, Lock::alone) == -EAGAIN);
  CHECK(files.lock(first, Lock::none) == 0);
  CHECK(files.lock(second, Lock::alone) == 0);
  CHECK(files.lock(first, Lock::shared) == -EAGAIN);
  files.close(second);
  CHECK(files.lock(first, Lock::alone) == 0);
  const int reader = files.open(cwd, "/f", {}, 0);
  CHECK(files.lock(reader, Lock::alone) == -EBADF);
  REQUIRE(files.fsync(first) == 0);
  REQUIRE(files.syncfs(first) == 0);
  disk.power_cut();
  const int after = files.open(cwd, "/f", {.mode = OpenMode::read_write}, 0);
  REQUIRE(after >= 0);
  CHECK(files.lock(after, Lock::alone) == 0);
}

TEST_CASE("sim_file_system__names_that_escape__are_refused_as_by_the_host") {
  Disk disk(2);
  SimFileSystem& files = disk.files;
  files.put("/secret", "x");
  files.put("/root/sub/file", "y");
  const int root = disk.directory("/root");
  REQUIRE(files.symlink_at("..", root, "up") == 0);
  REQUIRE(files.symlink_at("sub", root, "down") == 0);
  REQUIRE(files.symlink_at("../secret", root, "leak") == 0);
  for (const char* name : {"../secret", "sub/../../secret", "/secret", ".."}) {
    CAPTURE(name);
    CHECK(files.open(root, name, {}, 0) == -EXDEV);
  }
  for (const char* name : {"up/secret", "leak", "down/file"}) {
    CAPTURE(name);
    CHECK(files.open(root, name, {}, 0) == -ELOOP);
    CHECK(files.open(root, name, {.mode = OpenMode::write, .create = true}, 0600) == -ELOOP);
  }
  CHECK(files.open(root, "up/secret", {.follow = true}, 0) == -ELOOP);
  CHECK(files.open(root, "leak", {.follow = true}, 0) >= 0);
  CHECK(files.open(cwd, "/root/leak", {}, 0) >= 0);
  CHECK(files.open(cwd, "/root/leak", {.no_link = true}, 0) == -ELOOP);
  CHECK(files.open(root, "sub/../sub/file", {}, 0) >= 0);
  FileStat stat;
  std::string target;
  for (const char* name : {"../secret", "/secret", "..", "up/secret", "sub/file"}) {
    CAPTURE(name);
    CHECK(files.stat_at(root, name, stat, false) == -EXDEV);
    CHECK(files.mkdir_at(root, name, 0755) == -EXDEV);
    CHECK(files.symlink_at("t", root, name) == -EXDEV);
    CHECK(files.readlink_at(root, name, target) == -EXDEV);
    CHECK(files.rename_at(root, name, root, "new") == -EXDEV);
    CHECK(files.rename_at(root, "sub", root, name) == -EXDEV);
    CHECK(files.unlink_at(root, name, false) == -EXDEV);
  }
  CHECK(files.stat_at(root, std::string(300, 'a'), stat, false) == -ENAMETOOLONG);
  CHECK(files.stat_at(root, std::string("a\0b", 3), stat, false) == -EINVAL);
  CHECK(files.rename_at(root, "sub", root, "sub") == 0);
  REQUIRE(files.mkdir_at(root, "deep", 0755) == 0);
  const int deep = files.open(root, "deep", {.directory = true}, 0);
  CHECK(files.rename_at(root, "deep", deep, "inside_itself") == -EINVAL);
}

TEST_CASE("sim_file_system__synced_file_in_synced_directory__survives_every_crash") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Disk disk(seed);
    disk.files.make_directory("/d");
    const int d = disk.directory("/d");
    const int fd = disk.files.open(d, "staged", to_create(), 0640);
    const std::string content(50'000, 'x');
    CHECK(disk.files.pwrite(fd, as_bytes(content), 0) == 50'000);
    CHECK(disk.files.set_mtime(fd, {77, 7}) == 0);
    CHECK(disk.files.fsync(fd) == 0);
    CHECK(disk.files.rename_at(d, "staged", d, "final") == 0);
    CHECK(disk.files.fsync(d) == 0);
    disk.power_cut();
    const sim::Tree tree = disk.files.tree("/d");
    REQUIRE(tree.size() == 1);
    CHECK(tree.at("final").content == content);
    CHECK(tree.at("final").stat.mtime == ports::FileTime{77, 7});
  }
}

TEST_CASE("sim_file_system__what_was_not_synced__is_lost_torn_or_kept_by_the_seed") {
  int lost_name = 0, kept_name = 0, whole = 0, empty = 0, torn = 0;
  const std::string content(100'000, 'x');
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Disk disk(seed);
    const int fd = disk.files.open(cwd, "/f", to_create(), 0640);
    CHECK(disk.files.pwrite(fd, as_bytes(content), 0) == 100'000);
    disk.power_cut();
    CHECK(disk.files.pread(fd, {}, 0) == -EBADF);
    const auto got = disk.files.get("/f");
    if (!got) {
      ++lost_name;
      continue;
    }
    ++kept_name;
    (*got == content ? whole : got->empty() ? empty : torn) += 1;
  }
  CHECK(lost_name > 50);
  CHECK(kept_name > 50);
  CHECK(whole > 10);
  CHECK(empty > 10);
  CHECK(torn > 10);
}

TEST_CASE("sim_file_system__rename_over_a_file__leaves_the_old_or_the_new_one") {
  int old_one = 0, new_one = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Disk disk(seed);
    disk.files.put("/d/file", "old");
    disk.files.put("/staging/x", "new");
    CHECK(disk.files.rename_at(cwd, "/staging/x", cwd, "/d/file") == 0);
    CHECK(disk.files.get("/d/file") == "new");
    disk.power_cut();
    const std::string got = disk.files.get("/d/file").value();
    CHECK((got == "old" || got == "new"));
    CHECK(disk.files.get("/staging/x").has_value() == (got == "old"));
    ++(got == "old" ? old_one : new_one);
  }
  CHECK(old_one > 20);
  CHECK(new_one > 20);
}

TEST_CASE("sim_file_system__fsync_of_one_directory__promises_nothing_for_another") {
  for (const bool ordered : {false, true}) {
    int lost = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Disk disk(seed, {.ordered_names = ordered});
      CHECK(disk.files.mkdir_at(cwd, "/parent", 0755) == 0);
      const int parent = disk.directory("/parent");
      CHECK(disk.files.mkdir_at(parent, "child", 0755) == 0);
      CHECK(disk.files.fsync(parent) == 0);  // its own name in / is another directory's
      disk.power_cut();
      const sim::Tree tree = disk.files.tree("/");
      CHECK(tree.contains("parent") == tree.contains("parent/child"));
      lost += tree.empty() ? 1 : 0;
    }
    CHECK((lost > 10) == !ordered);
  }
}

TEST_CASE("sim_file_system__fsync_failed__later_fsync_does_not_bring_the_data_back") {
  Disk disk(3);
  const int fd = disk.files.open(cwd, "/f", to_create(), 0640);
  CHECK(disk.files.pwrite(fd, as_bytes(std::string(100'000, 'x')), 0) == 100'000);
  bool fail_once = true;
  disk.files.set_hook([&](std::string_view call, std::string_view name) {
    if (call != "fsync" || name != "/f" || !fail_once) return 0;
    fail_once = false;
    return -EIO;
  });
  CHECK(disk.files.fsync(fd) == -EIO);
  CHECK(disk.files.fsync(fd) == 0);
  const int root = disk.directory("/");
  CHECK(disk.files.fsync(root) == 0);
  disk.power_cut();
  CHECK(disk.files.get("/f") == std::string(100'000, '\0'));
}

// errseq_t: each descriptor that was open before is told once, by fsync of the file and by syncfs of its file system.
TEST_CASE("sim_file_system__data_lost__told_once_a_descriptor_that_was_open_before") {
  Disk disk(3);
  SimFileSystem& files = disk.files;
  files.make_directory("/d");
  const int first = disk.directory("/d");
  const int second = disk.directory("/d");
  const int fd = files.open(cwd, "/d/f", to_create(), 0640);
  const int other = files.open(cwd, "/d/f", {}, 0);
  REQUIRE(files.pwrite(fd, as_bytes(std::string(100'000, 'x')), 0) == 100'000);
  files.set_hook([](std::string_view call, std::string_view) { return call == "fsync" ? -EIO : 0; });
  CHECK(files.fsync(fd) == -EIO);
  files.set_hook({});
  const int late = files.open(cwd, "/d/f", {}, 0);
  CHECK(files.fsync(late) == 0);
  CHECK(files.fsync(other) == -EIO);
  CHECK(files.fsync(other) == 0);
  CHECK(files.syncfs(first) == -EIO);
  CHECK(files.syncfs(first) == 0);
  CHECK(files.syncfs(second) == -EIO);
  const int late_directory = disk.directory("/d");
  CHECK(files.syncfs(late_directory) == 0);
  disk.power_cut();
  CHECK(files.get("/d/f") == std::string(100'000, '\0'));
}

TEST_CASE("sim_file_system__data_lost_and_nobody_told__the_next_to_open_is_told") {
  Disk disk(3);
  SimFileSystem& files = disk.files;
  const int root = disk.directory("/");
  const int fd = files.open(cwd, "/f", to_create(), 0640);
  REQUIRE(files.pwrite(fd, as_bytes("x"), 0) == 1);
  files.set_hook([](std::string_view call, std::string_view) { return call == "syncfs" ? -EIO : 0; });
  CHECK(files.syncfs(root) == -EIO);
  files.set_hook({});
  const int late = files.open(cwd, "/f", {}, 0);
  CHECK(files.fsync(late) == -EIO);
  CHECK(files.fsync(late) == 0);
}

TEST_CASE("sim_file_system__old_kernel__syncfs_tells_nothing_and_the_data_is_lost") {
  Disk disk(3, {.syncfs_tells = false});
  SimFileSystem& files = disk.files;
  const int root = disk.directory("/");
  const int fd = files.open(cwd, "/f", to_create(), 0640);
  REQUIRE(files.pwrite(fd, as_bytes("x"), 0) == 1);
  files.set_hook([](std::string_view call, std::string_view) { return call == "syncfs" ? -EIO : 0; });
  CHECK(files.syncfs(root) == 0);
  ports::SpaceInfo space;
  REQUIRE(files.space(root, space) == 0);
  CHECK_FALSE(space.syncfs_tells);
  disk.power_cut();
  CHECK(files.get("/f") == std::string(1, '\0'));
}

TEST_CASE("sim_file_system__write_back_fails_in_the_background__the_next_fsync_says_so") {
  Disk disk(3, {.writeback_error_chance = 1});
  SimFileSystem& files = disk.files;
  const int fd = files.open(cwd, "/f", to_create(), 0640);
  REQUIRE(files.pwrite(fd, as_bytes("x"), 0) == 1);
  FileStat stat;
  CHECK(files.fstat(fd, stat) == 0);  // in between
  CHECK(files.fsync(fd) == -EIO);
  CHECK(files.fsync(fd) == 0);
  disk.power_cut();
  CHECK(files.get("/f") == std::string(1, '\0'));
}

TEST_CASE("sim_file_system__close_fails__what_was_not_synced_is_lost_and_only_told_there") {
  Disk disk(3);
  SimFileSystem& files = disk.files;
  const int root = disk.directory("/");
  const int fd = files.open(cwd, "/f", to_create(), 0640);
  REQUIRE(files.pwrite(fd, as_bytes("x"), 0) == 1);
  files.set_hook([](std::string_view call, std::string_view) { return call == "close" ? -EDQUOT : 0; });
  CHECK(files.close(fd) == -EDQUOT);
  files.set_hook({});
  CHECK(files.close(fd) == -EBADF);
  CHECK(files.syncfs(root) == 0);
  disk.power_cut();
  CHECK(files.get("/f") == std::string(1, '\0'));
}

TEST_CASE("sim_file_system__second_file_system__other_device_exdev_and_syncs_of_its_own") {
  Disk disk(3, {.ordered_names = true});
  SimFileSystem& files = disk.files;
  files.make_directory("/d");
  files.mount_at("/d/mnt");
  const int d = disk.directory("/d");
  const int mnt = disk.directory("/d/mnt");
  FileStat outside;
  FileStat inside;
  REQUIRE(files.fstat(d, outside) == 0);
  REQUIRE(files.fstat(mnt, inside) == 0);
  CHECK(outside.device != inside.device);
  int lost = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "f" + std::to_string(i);
    const int fd = files.open(mnt, name, to_create(), 0640);
    REQUIRE(files.pwrite(fd, as_bytes("x"), 0) == 1);
    FileStat stat;
    REQUIRE(files.fstat(fd, stat) == 0);
    CHECK(stat.device == inside.device);
    CHECK(files.rename_at(mnt, name, d, name) == -EXDEV);
  }
  CHECK(files.rename_at(cwd, "/d/mnt", cwd, "/other") == -EBUSY);
  CHECK(files.unlink_at(cwd, "/d/mnt", true) == -EBUSY);
  CHECK(files.mkdir_at(mnt, "kept", 0755) == 0);
  SECTION("the root's sync does not reach it") {
    CHECK(files.syncfs(d) == 0);
    disk.power_cut();
    for (int i = 0; i < 20; ++i) lost += files.get("/d/mnt/f" + std::to_string(i)) == "x" ? 0 : 1;
    CHECK(lost > 0);
  }
  SECTION("its own does") {
    CHECK(files.syncfs(mnt) == 0);
    disk.power_cut();
    for (int i = 0; i < 20; ++i) CHECK(files.get("/d/mnt/f" + std::to_string(i)) == "x");
    CHECK(files.tree("/d/mnt").contains("kept"));
  }
}

TEST_CASE("sim_file_system__capacity__short_write_then_enospc_and_space_comes_back") {
  Disk disk(4, {.capacity_bytes = 64u << 10, .capacity_inodes = 3});
  const int fd = disk.files.open(cwd, "/f", to_create(), 0640);
  const std::string content(100'000, 'x');
  CHECK(disk.files.pwrite(fd, as_bytes(content), 0) == 64 << 10);
  CHECK(disk.files.pwrite(fd, as_bytes(content), 64 << 10) == -ENOSPC);
  CHECK(disk.files.pwrite(fd, as_bytes("again"), 0) == 5);
  ports::SpaceInfo info;
  CHECK(disk.files.space(fd, info) == 0);
  CHECK(info.free_bytes == 0);
  CHECK(info.free_inodes == 1);
  CHECK(disk.files.mkdir_at(cwd, "/d", 0755) == 0);
  CHECK(disk.files.mkdir_at(cwd, "/e", 0755) == -ENOSPC);
  CHECK(disk.files.unlink_at(cwd, "/f", false) == 0);
  CHECK(disk.files.space(fd, info) == 0);
  CHECK(info.free_bytes == 0);  // it is still open
  disk.files.close(fd);
  const int root = disk.directory("/");
  CHECK(disk.files.space(root, info) == 0);
  CHECK(info.free_bytes == 64u << 10);
  CHECK(info.free_inodes == 1);
}

TEST_CASE("sim_file_system__frozen_in_the_middle__every_later_call_fails_until_mounted") {
  Disk disk(5);
  disk.files.put("/f", "text");
  bool told = false;
  disk.files.freeze_after(2, [&] { told = true; });
  const int fd = disk.files.open(cwd, "/f", {.mode = OpenMode::read_write}, 0);
  CHECK(disk.files.pwrite(fd, as_bytes("TEXT"), 0) == 4);
  CHECK_FALSE(told);
  CHECK(disk.files.fsync(fd) == -EIO);
  CHECK(told);
  CHECK(disk.files.open(cwd, "/f", {}, 0) == -EIO);
  disk.power_cut();
  CHECK(disk.files.open(cwd, "/f", {}, 0) >= 0);
}

TEST_CASE("sim_file_system__node_crashes__the_disk_goes_with_it") {
  Disk disk(6);
  disk.files.put("/f", "text");
  disk.world.crash(disk.node);
  CHECK(disk.files.down());
  CHECK(disk.files.open(cwd, "/f", {}, 0) == -EIO);
  disk.world.restart(disk.node);
  disk.files.mount();
  CHECK(disk.files.get("/f") == "text");
}

TEST_CASE("sim_file_system__short_io__reads_and_writes_come_in_parts") {
  Disk disk(7, {.short_io_chance = 0.9});
  const int fd = disk.files.open(cwd, "/f", to_create(), 0640);
  const std::string content(10'000, 'x');
  size_t done = 0;
  int calls = 0;
  for (; done < content.size(); ++calls) {
    const int64_t put = disk.files.pwrite(fd, as_bytes(content).subspan(done), done);
    REQUIRE(put > 0);
    done += static_cast<size_t>(put);
  }
  CHECK(calls > 1);
  CHECK(disk.files.get("/f") == content);
}

TEST_CASE("sim_file_system__inode_number_of_what_is_gone__is_reused_with_a_new_generation") {
  Disk disk(8);
  ports::FileIdentity first, second, third;
  disk.files.make_directory("/r/d/e");
  REQUIRE(disk.files.identify(cwd, "/r/d", first) == 0);
  const int held = disk.directory("/r/d");
  REQUIRE(disk.files.remove_all("/r/d"));
  disk.files.make_directory("/r/d");
  REQUIRE(disk.files.identify(cwd, "/r/d", second) == 0);
  CHECK(second.inode != first.inode);  // that one is still open
  disk.files.close(held);
  REQUIRE(disk.files.remove_all("/r/d"));
  disk.files.make_directory("/r/d");
  REQUIRE(disk.files.identify(cwd, "/r/d", third) == 0);
  CHECK(third.inode == second.inode);
  CHECK(third.generation != second.generation);
}

TEST_CASE("sim_file_system__moved_by_hand__descriptors_go_with_it_and_a_crash_may_undo_it") {
  Disk disk(9);
  disk.files.put("/r/d/f", "text");
  const int held = disk.directory("/r/d");
  disk.files.make_directory("/a");
  CHECK_FALSE(disk.files.move("/r", "/r/d/below"));
  CHECK_FALSE(disk.files.move("/absent", "/a/x"));
  REQUIRE(disk.files.move("/r/d", "/a/d"));
  CHECK(disk.files.open(held, "f", {}, 0) >= 0);
  CHECK(disk.files.get("/a/d/f") == "text");
  CHECK_FALSE(disk.files.get("/r/d/f"));
  disk.power_cut();
  CHECK((disk.files.get("/a/d/f") == "text") != (disk.files.get("/r/d/f") == "text"));
}
