#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/host/file_system.h"

namespace ccixfer::host {

bool PosixFileSystem::has_group(uint32_t gid) {
  if (::getegid() == gid) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return std::find(groups.begin(), groups.end(), gid) != groups.end();
}

}  // namespace ccixfer::host
