#include "core/host/file_system_kind.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>

namespace ccixfer::host {
namespace {

constexpr uint32_t xfs_magic = 0x58465342;  // linux/magic.h has it only since 2023

}  // namespace

FileSystemKind kind_of_file_system(int fd) {
  struct statfs raw;
  if (::fstatfs(fd, &raw) != 0) return FileSystemKind::other;
  const auto type = static_cast<uint32_t>(raw.f_type);
  if (type == TMPFS_MAGIC) return FileSystemKind::in_memory;
  return type == EXT4_SUPER_MAGIC || type == xfs_magic || type == BTRFS_SUPER_MAGIC ? FileSystemKind::local : FileSystemKind::other;
}

bool has_lasting_identity(int fd) {
  struct statfs raw;
  if (::fstatfs(fd, &raw) != 0) return false;
  constexpr std::array<uint32_t, 7> forgetful{MSDOS_SUPER_MAGIC, 0x2011bab0 /* exfat */, 0x65735546 /* FUSE */,
                                              V9FS_MAGIC,        SMB_SUPER_MAGIC,        0xff534d42 /* CIFS */,
                                              0xfe534d42 /* SMB2 */};
  return std::find(forgetful.begin(), forgetful.end(), static_cast<uint32_t>(raw.f_type)) == forgetful.end();
}

}  // namespace ccixfer::host
