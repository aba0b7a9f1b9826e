// Where a file has holes, and what their content hashes to: so that holes are neither read nor sent.
// A file system that knows no holes has none. Errors: whatever is not known to be a hole counts as data.
// HoleFinder says what the file system tells. That may be wrong of what was written a moment ago (OpenZFS told of holes where
// data were not on the disk yet, its issue 15526), so whoever leaves holes of a file out goes by find_holes().
// Single-threaded; one object for each reader.
#pragma once
#include <cstdint>
#include <vector>

#include "app/session/messages.h"
#include "core/base/hash.h"
#include "core/ports/file_system.h"

namespace ccixfer::session {

class HoleFinder {
 public:
  HoleFinder(ports::FileSystem& files, int fd) : files_(files), fd_(fd) {}
  // Whether there is nothing but a hole in [offset, offset + bytes). Asked with ascending offsets, it calls the file system once
  // for each run of data.
  [[nodiscard]] bool is_hole(uint64_t offset_bytes, uint64_t bytes);
  // Where the next data begin, at or after that offset; ~0: only a hole follows.
  [[nodiscard]] uint64_t next_data(uint64_t offset_bytes);

 private:
  ports::FileSystem& files_;
  const int fd_;
  uint64_t asked_from_ = 0, begin_ = 0, end_ = 0;  // data in [begin_, end_), and none in [asked_from_, begin_)
  bool asked_ = false;
};

inline constexpr size_t hole_runs_max = 1u << 20;  // of a file with more runs of holes, all that follows counts as data

// Runs of pieces of an open file that are holes, ascending. Nothing of them is read: so the file is written to the disk first if it
// may have holes, and none is believed where more of the file is allocated than the pieces with data can explain.
[[nodiscard]] std::vector<Want::Range> find_holes(ports::FileSystem& files, int fd, uint64_t size_bytes);

// Whether a piece is in one of the runs. Ask with ascending numbers.
class HoleRuns {
 public:
  explicit HoleRuns(std::vector<Want::Range> runs) : runs_(std::move(runs)) {}
  [[nodiscard]] bool has(uint64_t piece) {
    while (at_ < runs_.size() && runs_[at_].first + runs_[at_].count <= piece) ++at_;
    return at_ < runs_.size() && runs_[at_].first <= piece;
  }

 private:
  const std::vector<Want::Range> runs_;
  size_t at_ = 0;
};

// XXH3-128 of so many zeros, at most piece_bytes.
[[nodiscard]] Hash128 hash_of_zeros(uint64_t bytes);
[[nodiscard]] bool is_all_zeros(Bytes data);

}  // namespace ccixfer::session
