#include "app/recv/locked.h"

#include <algorithm>

#include "app/recv/held.h"

namespace ccixfer::recv {

namespace {

bool lacks(const ports::FileStat& stat, uint32_t uid, uint32_t rights) {
  return uid != 0 && stat.uid == uid && (stat.mode & rights) != rights;
}

}  // namespace

bool is_locked(const ports::FileStat& stat, uint32_t uid) { return lacks(stat, uid, owner_looks); }
bool is_read_only(const ports::FileStat& stat, uint32_t uid) { return lacks(stat, uid, owner_writes); }

MadeWritable::MadeWritable(ports::FileSystem& files, int directory, uint32_t uid) : files_(files), directory_(directory) {
  ports::FileStat stat;
  if (uid == 0 || files_.fstat(directory, stat) < 0 || !is_read_only(stat, uid)) return;
  if (files_.set_mode(directory, stat.mode | owner_writes) >= 0) mode_before_ = stat.mode;
}

MadeWritable::~MadeWritable() {
  if (mode_before_) files_.set_mode(directory_, *mode_before_);
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
