// What the table keeps of one mailbox and of its buffers. Internal to core/rvma.
//
// Only the head buffer is ever written. Its states, and what moves it on:
//   filling -> closing   the threshold was reached: nothing new binds, the bound operations are waited for
//   filling, closing -> revoked   increment_epoch or close: nothing is placed any more, only those placing are waited for
//   closing -> published   no operation is bound
//   revoked -> published   nobody is placing
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "core/rvma/history.h"
#include "core/rvma/interval_set.h"
#include "core/rvma/mailbox_table.h"
#include "core/rvma/operation.h"

namespace ccixfer::rvma {

inline constexpr size_t coverage_ranges_max = 16384;  // past it a completion says has_holes without looking

enum class BufferState : uint8_t { filling, closing, revoked };

struct Buffer {
  MutableBytes memory;
  uint64_t context = 0;
  BufferState state = BufferState::filling;
  uint32_t placing = 0;       // fragments that hold a ticket
  uint64_t count = 0;         // bytes or operations, gross
  uint64_t extent_bytes = 0;  // high-water mark
  IntervalSet covered;
  bool coverage_lost = false;
  std::unordered_map<OperationKey, Operation, OperationKeyHash> bound;

  void cover(uint64_t begin, uint64_t end);
  [[nodiscard]] bool has_holes() const { return coverage_lost || (extent_bytes > 0 && !covered.contains(0, extent_bytes)); }
};

// Without buffers and without history this is all that a mailbox costs.
struct Mailbox {
  MailboxOptions options;
  uint64_t number = 0;
  uint64_t epoch = 0;  // of the head, posted or not
  bool closed = false;
  std::list<Buffer> buffers;
  std::unique_ptr<History> history;

  [[nodiscard]] Outcome outcome(const OperationKey& key) const { return history ? history->find(key) : Outcome::unknown; }
  void remember(const OperationKey& key, bool placed);
};

// Where a put lies in the buffer, checked for overflow but not yet against a buffer.
struct Extent {
  Status status = Status::success;
  uint64_t base_bytes = 0;
  uint64_t total_bytes = 0;
};
[[nodiscard]] Extent extent_of(const ports::RemoteRef& target, uint64_t length_bytes);

}  // namespace ccixfer::rvma
