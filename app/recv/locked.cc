#include "app/recv/locked.h"

#include <algorithm>

#include "app/recv/held.h"

namespace ccixfer::recv {

bool is_locked(const ports::FileStat& stat, uint32_t uid) {
  return uid != 0 && stat.uid == uid && (stat.mode & owner_looks) != owner_looks;
}

bool leads_into_locked(ports::FileSystem& files, int root, std::string_view path, uint32_t uid) {
  for (size_t end = 0; end < path.size();) {
    end = std::min(path.size(), path.find('/', end == 0 ? 0 : end + 1));
    const int fd = files.open(root, path.substr(0, end), {.directory = true, .anchor = true}, 0);
    if (fd < 0) return false;
    const HeldFile directory(files, fd);
    ports::FileStat stat;
    if (files.fstat(fd, stat) < 0) return false;
    if (is_locked(stat, uid)) return true;
  }
  return false;
}

}  // namespace ccixfer::recv
