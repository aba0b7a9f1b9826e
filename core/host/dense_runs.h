// Which parts of files in memory (tmpfs) have no hole: the kernel finds the next hole by looking at each page before it, so what it
// said is kept. tmpfs knows its holes to the page. What was only allocated (fallocate) counts as one too.
// Memory: a constant; what is forgotten is asked for again. Thread-safe.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/ports/file_system.h"

namespace ccixfer::host {

class DenseRuns {
 public:
  // Whether that part of an open file has a hole, or is not all in the file. True where it cannot be told.
  [[nodiscard]] bool has_hole(int fd, uint64_t offset_bytes, size_t bytes);

 private:
  static constexpr size_t runs_max = 32;
  // The file as it was when it was asked: a hole that is made later changes its time.
  struct Run {
    uint64_t device = 0, inode = 0;
    ports::FileTime change;
    uint64_t begin = 0, end = 0;  // nothing but data; nothing is known where both are the same
  };
  [[nodiscard]] Run known(const Run& file);
  void keep(const Run& run);

  std::mutex mutex_;
  std::array<Run, runs_max> runs_;
  size_t next_ = 0;
};

}  // namespace ccixfer::host
