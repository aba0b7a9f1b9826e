// Where a file has holes, and what their content hashes to: so that holes are neither read nor sent.
// A file system that knows no holes has none. Errors: whatever is not known to be a hole counts as data.
// Single-threaded; one object for each reader.
#pragma once
#include <cstdint>

#include "core/base/hash.h"
#include "core/ports/file_system.h"

namespace ccixfer::session {

class HoleFinder {
 public:
  HoleFinder(ports::FileSystem& files, int fd) : files_(files), fd_(fd) {}
  // Nothing but a hole in [offset, offset + bytes). Ask with ascending offsets: one call of the file system for each run of data.
  [[nodiscard]] bool is_hole(uint64_t offset_bytes, uint64_t bytes);
  // Where the next data begin, at or after that offset; ~0: only a hole follows.
  [[nodiscard]] uint64_t next_data(uint64_t offset_bytes);

 private:
  ports::FileSystem& files_;
  const int fd_;
  uint64_t asked_from_ = 0, begin_ = 0, end_ = 0;  // data in [begin_, end_), and none in [asked_from_, begin_)
  bool asked_ = false;
};

// XXH3-128 of so many zeros, at most piece_bytes.
[[nodiscard]] Hash128 hash_of_zeros(uint64_t bytes);
[[nodiscard]] bool is_all_zeros(Bytes data);

}  // namespace ccixfer::session
