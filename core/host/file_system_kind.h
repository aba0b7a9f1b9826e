// What the type of a file system says of its files.
#pragma once
#include <cstdint>

namespace ccixfer::host {

// Whether the descriptor's file is one of this host's page cache and nobody else's: on such a file system a write takes the lock of
// the file, and a page that was shown is what a read would give. Others (Lustre, GPFS, NFS, FUSE) have rules of their own.
enum class FileSystemKind : uint8_t { other, local, in_memory };
[[nodiscard]] FileSystemKind kind_of_file_system(int fd);

// Whether a file has one inode number as long as it is there, also after it was not in use for a while.
[[nodiscard]] bool has_lasting_identity(int fd);

}  // namespace ccixfer::host
