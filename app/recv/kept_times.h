// What a file system makes of a time that it is given: ext4 ends in 2446, XFS in 2038 or 2486, vfat
// counts in steps of two seconds, CIFS in steps of 100 ns. A file counts as unchanged although its time
// could not be kept as it was wanted; otherwise every run would send it. No call tells these limits,
// so each file system is measured once, with a file made for it. Thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/ports/file_system.h"

namespace ccixfer::recv {

struct TimeLimits {
  int64_t min_s, max_s;   // what is at or beyond them becomes these, without nanoseconds
  uint32_t grain_s = 1;   // seconds are multiples of it, and nanoseconds 0 when it is more than 1
  uint32_t grain_ns = 1;  // nanoseconds are multiples of it
  [[nodiscard]] ports::FileTime kept(ports::FileTime wanted) const;
};

// By setting the times of that open file, which is nobody's; nullopt: the file system is not one of those described above.
[[nodiscard]] std::optional<TimeLimits> measure_time_limits(ports::FileSystem& files, int fd);

class KeptTimes {
 public:
  void add(uint64_t device, std::optional<TimeLimits> limits);
  // Whether a file of `device` that was given the time `wanted` would show `stored`. A file system that is not known yet is
  // measured with a file `scratch` in the directory `parent`; without a name it counts as one that keeps every time.
  [[nodiscard]] bool same(ports::FileSystem& files, uint64_t device, int parent, const std::string& scratch, ports::FileTime stored,
                          ports::FileTime wanted);

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::optional<TimeLimits>> limits_;  // by device: as many as are mounted below the root
};

}  // namespace ccixfer::recv
