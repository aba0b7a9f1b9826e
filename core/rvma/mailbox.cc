#include "core/rvma/mailbox.h"

#include <algorithm>
#include <limits>

namespace ccixfer::rvma {

void Buffer::cover(uint64_t begin, uint64_t end) {
  extent_bytes = std::max(extent_bytes, end);
  if (coverage_lost) return;
  (void)covered.add(begin, end);
  if (covered.ranges() > coverage_ranges_max) {
    coverage_lost = true;
    covered = {};
  }
}

void Mailbox::remember(const OperationKey& key, bool placed) {
  if (!history) history = std::make_unique<History>();
  history->add(key, epoch, placed);
}

Extent extent_of(const ports::RemoteRef& target, uint64_t length_bytes) {
  Extent extent{Status::success, target.offset_bytes, length_bytes};
  if (length_bytes == 0) {
    extent.status = Status::invalid;
    return extent;
  }
  if (target.put.total_bytes != 0) {
    extent.base_bytes = target.put.base_offset_bytes;
    extent.total_bytes = target.put.total_bytes;
    const bool inside = target.offset_bytes >= extent.base_bytes && length_bytes <= extent.total_bytes &&
                        target.offset_bytes - extent.base_bytes <= extent.total_bytes - length_bytes;
    if (!inside) extent.status = Status::invalid;
  }
  if (extent.total_bytes > std::numeric_limits<uint64_t>::max() - extent.base_bytes) extent.status = Status::mailbox_too_long;
  return extent;
}

}  // namespace ccixfer::rvma
