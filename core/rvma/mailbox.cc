#include "core/rvma/mailbox.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"

namespace ccixfer::rvma {

void Buffer::advance(BufferEvent event) {
  const std::optional<BufferState> next = next_state(state, event);
  CHECK(next.has_value());
  state = *next;
}

uint64_t Buffer::cover(uint64_t begin, uint64_t end) {
  extent_bytes = std::max(extent_bytes, end);
  if (coverage_lost) return end - begin;
  const uint64_t fresh = covered.add(begin, end);
  if (covered.ranges() > coverage_ranges_max) {
    coverage_lost = true;
    covered = {};
  }
  return fresh;
}

void Mailbox::remember(const OperationKey& key, bool told_epoch, bool placed) {
  if (!history) history = std::make_unique<History>();
  history->add(key, epoch, told_epoch, placed);
}

Held* Mailbox::find_held(const OperationKey& key) const {
  const auto found = std::find_if(held.begin(), held.end(), [&](const auto& h) { return h->key == key; });
  return found == held.end() ? nullptr : found->get();
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
