// A file system that can do nothing: tests give it the calls that they are about.
#pragma once
#include <cerrno>
#include <functional>
#include <string>
#include <string_view>

#include "core/ports/file_system.h"

namespace ccixfer::session {

class NoFiles : public ports::FileSystem {
 public:
  int open(int, std::string_view, ports::OpenFlags, uint32_t) override { return -ENOSYS; }
  int close(int) override { return 0; }
  int64_t pread(int, MutableBytes, uint64_t) override { return -ENOSYS; }
  int64_t pwrite(int, Bytes, uint64_t) override { return -ENOSYS; }
  int fstat(int, ports::FileStat&) override { return -ENOSYS; }
  int stat_at(int, std::string_view, ports::FileStat&, bool) override { return -ENOSYS; }
  int read_directory_part(int, bool, const std::function<void(std::string_view)>&) override { return -ENOSYS; }
  int mkdir_at(int, std::string_view, uint32_t) override { return -ENOSYS; }
  int symlink_at(std::string_view, int, std::string_view) override { return -ENOSYS; }
  int64_t readlink_at(int, std::string_view, std::string&) override { return -ENOSYS; }
  int rename_at(int, std::string_view, int, std::string_view) override { return -ENOSYS; }
  int unlink_at(int, std::string_view, bool) override { return -ENOSYS; }
  int truncate(int, uint64_t) override { return -ENOSYS; }
  int set_mode(int, uint32_t) override { return -ENOSYS; }
  int set_owner(int, uint32_t, uint32_t) override { return -ENOSYS; }
  int set_mtime(int, ports::FileTime) override { return -ENOSYS; }
  int set_link_owner_at(int, std::string_view, uint32_t, uint32_t) override { return -ENOSYS; }
  int set_link_mtime_at(int, std::string_view, ports::FileTime) override { return -ENOSYS; }
  int fsync(int) override { return -ENOSYS; }
  int syncfs(int) override { return -ENOSYS; }
  int space(int, ports::SpaceInfo&) override { return -ENOSYS; }
};

}  // namespace ccixfer::session
