// Whether a descriptor is of the file that was seen earlier, by its numbers. On a file system whose numbers do not last
// (ports::SpaceInfo) a file that nobody has open may get others: there any file counts as the same.
#pragma once
#include <cstdint>

#include "core/ports/file_system.h"

namespace ccixfer::recv {

// 0; -ESTALE: another file has taken its place; or another -errno.
[[nodiscard]] int check_same_file(ports::FileSystem& files, int fd, uint64_t device, uint64_t inode);

}  // namespace ccixfer::recv
