#include "app/recv/kept_times.h"

#include <limits>

namespace ccixfer::recv {
namespace {

using ports::FileTime;

constexpr int64_t any_odd_second = 1'000'000'001;

std::optional<FileTime> shown(ports::FileSystem& files, int fd, FileTime wanted) {
  ports::FileStat stat;
  if (files.set_mtime(fd, wanted) < 0 || files.fstat(fd, stat) < 0) return std::nullopt;
  return stat.mtime;
}

// The largest power of ten that the nanoseconds were cut to.
uint32_t grain_of(uint32_t nanoseconds) {
  uint32_t grain = 1;
  while (grain < ports::file_time_nanoseconds && nanoseconds % (grain * 10) != grain * 9) grain *= 10;
  return grain;
}

}  // namespace

FileTime TimeLimits::kept(FileTime wanted) const {
  if (wanted.seconds <= min_s) return {min_s, 0};
  if (wanted.seconds >= max_s) return {max_s, 0};
  if (grain_s > 1) return {wanted.seconds - wanted.seconds % grain_s, 0};
  return {wanted.seconds, wanted.nanoseconds - wanted.nanoseconds % grain_ns};
}

std::optional<TimeLimits> measure_time_limits(ports::FileSystem& files, int fd) {
  const auto first = shown(files, fd, {std::numeric_limits<int64_t>::min(), 0});
  const auto last = shown(files, fd, {std::numeric_limits<int64_t>::max(), 0});
  const auto middle = shown(files, fd, {any_odd_second, ports::file_time_nanoseconds - 1});
  if (!first || !last || !middle) return std::nullopt;
  TimeLimits limits{first->seconds, last->seconds};
  if (middle->seconds == any_odd_second - 1) {
    limits.grain_s = 2;
  } else if (middle->nanoseconds > 0) {
    limits.grain_ns = grain_of(middle->nanoseconds);
  } else {
    limits.grain_ns = ports::file_time_nanoseconds;
  }
  // One that wraps, or rounds in a way of its own, is not described by these numbers.
  if (limits.min_s >= any_odd_second || limits.max_s <= any_odd_second) return std::nullopt;
  for (const FileTime wanted : {FileTime{limits.min_s, 0}, FileTime{limits.max_s, 0}, FileTime{any_odd_second + 4, 123'456'789}}) {
    if (shown(files, fd, wanted) != limits.kept(wanted)) return std::nullopt;
  }
  return limits;
}

void KeptTimes::add(uint64_t device, std::optional<TimeLimits> limits) {
  const std::lock_guard lock(mutex_);
  limits_.insert_or_assign(device, limits);
}

bool KeptTimes::same(ports::FileSystem& files, uint64_t device, int parent, const std::string& scratch, FileTime stored,
                     FileTime wanted) {
  if (stored == wanted) return true;
  const std::lock_guard lock(mutex_);
  auto found = limits_.find(device);
  if (found == limits_.end()) {
    if (scratch.empty()) return false;
    ports::FileStat before;
    const bool has_stat = files.fstat(parent, before) >= 0;
    const int fd = files.open(parent, scratch, {.mode = ports::OpenMode::write, .create = true, .exclusive = true}, 0600);
    if (fd < 0) return false;
    found = limits_.emplace(device, measure_time_limits(files, fd)).first;
    files.close(fd);
    files.unlink_at(parent, scratch, false);
    if (has_stat) files.set_mtime(parent, before.mtime);
  }
  return found->second && found->second->kept(wanted) == stored;
}

}  // namespace ccixfer::recv
