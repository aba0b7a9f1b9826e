#include "core/host/dense_runs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace ccixfer::host {
namespace {

// Nobody reads from the descriptor's own offset.
uint64_t next_hole(int fd, uint64_t from_bytes) {
  const off_t hole = ::lseek(fd, static_cast<off_t>(from_bytes), SEEK_HOLE);
  return hole < 0 ? from_bytes : static_cast<uint64_t>(hole);
}

}  // namespace

bool DenseRuns::has_hole(int fd, uint64_t offset_bytes, size_t bytes) {
  struct stat now {};
  if (::fstat(fd, &now) < 0) return true;
  const auto size_bytes = static_cast<uint64_t>(now.st_size);
  if (offset_bytes > size_bytes || bytes > size_bytes - offset_bytes) return true;
  Run run{now.st_dev, now.st_ino, {now.st_ctim.tv_sec, static_cast<uint32_t>(now.st_ctim.tv_nsec)}, 0, 0};
  run = known(run);
  if (run.begin <= offset_bytes && offset_bytes + bytes <= run.end) return false;
  // Pieces come in any order, and most files have no hole at all: then one look is enough for all of them.
  if (run.begin == run.end) run.end = next_hole(fd, run.begin);
  if (offset_bytes + bytes > run.end || offset_bytes < run.begin) {
    run.begin = offset_bytes;
    run.end = next_hole(fd, offset_bytes);
  }
  keep(run);
  return offset_bytes + bytes > run.end;
}

DenseRuns::Run DenseRuns::known(const Run& file) {
  const std::lock_guard lock(mutex_);
  const auto same = [&file](const Run& run) {
    return run.inode == file.inode && run.device == file.device && run.change == file.change;
  };
  const auto found = std::find_if(runs_.begin(), runs_.end(), same);
  return found == runs_.end() ? file : *found;
}

void DenseRuns::keep(const Run& run) {
  const std::lock_guard lock(mutex_);
  const auto same = [&run](const Run& other) { return other.inode == run.inode && other.device == run.device; };
  auto place = std::find_if(runs_.begin(), runs_.end(), same);
  if (place == runs_.end()) {
    place = runs_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ = (next_ + 1) % runs_max;
  }
  *place = run;
}

}  // namespace ccixfer::host
