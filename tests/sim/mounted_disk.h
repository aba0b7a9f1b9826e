// The disk of another node as this one has it mounted, as of a parallel file system: what this node's processes have open goes with
// the node, locks too, and the disk stays. A crash of the disk's own node takes it away from everybody until it is mounted again.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "transports/sim/sim_file_system.h"

namespace ccixfer::testing {

class MountedDisk final : public ports::FileSystem {
 public:
  explicit MountedDisk(sim::SimFileSystem& disk) : disk_(disk) {}

  std::function<void(int fd)> on_write;  // before each pwrite

  void node_crashed() {
    for (const int fd : open_) disk_.close(fd);
    open_.clear();
  }

  int open(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions) override {
    const int fd = disk_.open(directory, name, flags, permissions);
    if (fd >= 0) open_.insert(fd);
    return fd;
  }
  int close(int fd) override {
    open_.erase(fd);
    return disk_.close(fd);
  }
  int64_t pread(int fd, MutableBytes into, uint64_t offset_bytes) override { return disk_.pread(fd, into, offset_bytes); }
  int64_t pwrite(int fd, Bytes from, uint64_t offset_bytes) override {
    if (on_write) on_write(fd);
    return disk_.pwrite(fd, from, offset_bytes);
  }
  int fstat(int fd, ports::FileStat& out) override { return disk_.fstat(fd, out); }
  int stat_at(int directory, std::string_view name, ports::FileStat& out, bool follow) override {
    return disk_.stat_at(directory, name, out, follow);
  }
  int read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) override {
    return disk_.read_directory_part(fd, from_start, entry);
  }
  int mkdir_at(int directory, std::string_view name, uint32_t permissions) override {
    return disk_.mkdir_at(directory, name, permissions);
  }
  int symlink_at(std::string_view target, int directory, std::string_view name) override {
    return disk_.symlink_at(target, directory, name);
  }
  int64_t readlink_at(int directory, std::string_view name, std::string& out) override {
    return disk_.readlink_at(directory, name, out);
  }
  int rename_at(int from_directory, std::string_view from, int to_directory, std::string_view to) override {
    return disk_.rename_at(from_directory, from, to_directory, to);
  }
  int unlink_at(int directory, std::string_view name, bool is_directory) override {
    return disk_.unlink_at(directory, name, is_directory);
  }
  int truncate(int fd, uint64_t size_bytes) override { return disk_.truncate(fd, size_bytes); }
  int set_mode(int fd, uint32_t permissions) override { return disk_.set_mode(fd, permissions); }
  int set_owner(int fd, uint32_t uid, uint32_t gid) override { return disk_.set_owner(fd, uid, gid); }
  int set_mtime(int fd, ports::FileTime mtime) override { return disk_.set_mtime(fd, mtime); }
  int set_link_owner_at(int directory, std::string_view name, uint32_t uid, uint32_t gid) override {
    return disk_.set_link_owner_at(directory, name, uid, gid);
  }
  int set_link_mtime_at(int directory, std::string_view name, ports::FileTime mtime) override {
    return disk_.set_link_mtime_at(directory, name, mtime);
  }
  int fsync(int fd) override { return disk_.fsync(fd); }
  int syncfs(int fd) override { return disk_.syncfs(fd); }
  int space(int fd, ports::SpaceInfo& out) override { return disk_.space(fd, out); }
  int lock(int fd, Lock lock) override { return disk_.lock(fd, lock); }

 private:
  sim::SimFileSystem& disk_;
  std::set<int> open_;
};

}  // namespace ccixfer::testing
