#include "core/host/file_stat.h"

#include <sys/sysmacros.h>

#include <algorithm>

namespace ccixfer::host {
namespace {

using ports::FileTime;
using ports::SpecialKind;

constexpr uint64_t stat_block_bytes = 512;  // of st_blocks, whatever the file system's own are

// A file system in user space may say anything.
FileTime time_of(int64_t seconds, int64_t nanoseconds) {
  return {seconds, static_cast<uint32_t>(std::clamp<int64_t>(nanoseconds, 0, ports::file_time_nanoseconds - 1))};
}

SpecialKind special_kind(uint32_t mode) {
  return S_ISFIFO(mode)   ? SpecialKind::fifo
         : S_ISSOCK(mode) ? SpecialKind::socket
         : S_ISCHR(mode)  ? SpecialKind::character
         : S_ISBLK(mode)  ? SpecialKind::block
                          : SpecialKind::none;
}

void set_kinds(ports::FileStat& out, uint32_t mode, uint64_t device_of_special) {
  out.type = file_type(mode);
  out.mode = mode & 07777u;
  out.special = special_kind(mode);
  out.special_device = S_ISCHR(mode) || S_ISBLK(mode) ? device_of_special : 0;
}

}  // namespace

ports::FileType file_type(uint32_t mode) {
  return S_ISREG(mode)   ? ports::FileType::regular
         : S_ISDIR(mode) ? ports::FileType::directory
         : S_ISLNK(mode) ? ports::FileType::symlink
                         : ports::FileType::other;
}

ports::FileStat file_stat(const struct stat& in) {
  ports::FileStat out;
  set_kinds(out, in.st_mode, in.st_rdev);
  out.uid = in.st_uid;
  out.gid = in.st_gid;
  out.device = in.st_dev;
  out.inode = in.st_ino;
  out.links = in.st_nlink;
  out.size_bytes = static_cast<uint64_t>(in.st_size);
  out.allocated_bytes = static_cast<uint64_t>(in.st_blocks) * stat_block_bytes;
  out.mtime = time_of(in.st_mtim.tv_sec, in.st_mtim.tv_nsec);
  out.ctime = time_of(in.st_ctim.tv_sec, in.st_ctim.tv_nsec);
  return out;
}

ports::FileStat file_stat(const struct statx& in) {
  ports::FileStat out;
  set_kinds(out, in.stx_mode, makedev(in.stx_rdev_major, in.stx_rdev_minor));
  out.uid = in.stx_uid;
  out.gid = in.stx_gid;
  out.device = makedev(in.stx_dev_major, in.stx_dev_minor);
  out.inode = in.stx_ino;
  out.links = in.stx_nlink;
  out.size_bytes = in.stx_size;
  out.allocated_bytes = in.stx_blocks * stat_block_bytes;
  out.mtime = time_of(in.stx_mtime.tv_sec, in.stx_mtime.tv_nsec);
  out.ctime = time_of(in.stx_ctime.tv_sec, in.stx_ctime.tv_nsec);
  return out;
}

}  // namespace ccixfer::host
