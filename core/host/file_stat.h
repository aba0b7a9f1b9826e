// What stat(2) and statx(2) tell, in the words of the port.
#pragma once
#include <sys/stat.h>

#include "core/ports/file_system.h"

namespace ccixfer::host {

[[nodiscard]] ports::FileType file_type(uint32_t mode);  // of its type bits
[[nodiscard]] ports::FileStat file_stat(const struct stat& in);
[[nodiscard]] ports::FileStat file_stat(const struct statx& in);  // with all of STATX_BASIC_STATS

}  // namespace ccixfer::host
