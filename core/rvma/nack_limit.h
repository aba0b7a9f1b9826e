// How many negative acknowledgements a connection may draw: a bucket each of one second's worth, refilled with time. A hostile
// connection uses up its own. Pure: `now` is an argument, and never goes backwards. Bounds: connections_max; past it the bucket
// that was used longest ago goes, and its connection starts with a full one. Source: RVMA §III.C (negative acknowledgements must
// not help whoever floods).
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/base/ring_buffer.h"
#include "core/base/time.h"

namespace ccixfer::rvma {

class NackLimit {
 public:
  static constexpr size_t connections_max = 4096;
  explicit NackLimit(uint32_t per_second) : per_second_(per_second) {}  // 0: no limit

  [[nodiscard]] bool allow(uint64_t connection, Instant now);
  [[nodiscard]] size_t connections() const { return buckets_.size(); }

 private:
  struct Bucket {
    Instant full_at{};  // when it will be full again
    uint64_t used = 0;  // stamp of the last use
  };
  void make_room();

  uint32_t per_second_;
  uint64_t stamp_ = 0;
  std::unordered_map<uint64_t, Bucket> buckets_;
  struct Use {
    uint64_t connection = 0;
    uint64_t stamp = 0;
  };
  RingBuffer<Use> uses_;  // oldest first; those that are not their bucket's last are skipped
};

}  // namespace ccixfer::rvma
