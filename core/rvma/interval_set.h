// A set of bytes as sorted, disjoint, non-adjacent ranges [begin, end). Placement in order, or in any order without gaps left
// behind, keeps it at a few ranges whatever the count of fragments. Bounds: the caller's, by ranges().
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ccixfer::rvma {

class IntervalSet {
 public:
  // Adds [begin, end), begin < end; returns how many of its bytes were not in the set before.
  uint64_t add(uint64_t begin, uint64_t end);
  [[nodiscard]] bool contains(uint64_t begin, uint64_t end) const;  // all of [begin, end)
  [[nodiscard]] size_t ranges() const { return ranges_.size(); }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  uint64_t drop_lowest();  // CHECKs: not empty; returns the end of the range that is gone

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  std::vector<Range> ranges_;
};

}  // namespace ccixfer::rvma
