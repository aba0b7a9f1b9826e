#include "core/rvma/nack_limit.h"

#include <algorithm>

namespace ccixfer::rvma {

bool NackLimit::allow(uint64_t connection, Instant now) {
  if (per_second_ == 0) return true;
  auto found = buckets_.find(connection);
  if (found == buckets_.end()) {
    make_room();
    found = buckets_.emplace(connection, Bucket{now, 0}).first;
  }
  Bucket& bucket = found->second;
  bucket.used = ++stamp_;
  uses_.push_back({connection, stamp_});
  if (uses_.size() > 4 * connections_max) {  // forget the uses that others followed
    uses_.erase_if([&](const Use& use) {
      const auto at = buckets_.find(use.connection);
      return at == buckets_.end() || at->second.used != use.stamp;
    });
  }
  const Duration one = std::chrono::nanoseconds(1'000'000'000 / per_second_);
  const Instant after = std::max(bucket.full_at, now) + one;
  if (after - now > std::chrono::seconds(1)) return false;
  bucket.full_at = after;
  return true;
}

void NackLimit::make_room() {
  while (buckets_.size() >= connections_max) {
    const Use use = uses_.front();
    uses_.drop_front();
    const auto at = buckets_.find(use.connection);
    if (at != buckets_.end() && at->second.used == use.stamp) buckets_.erase(at);
  }
}

}  // namespace ccixfer::rvma
