// What the table keeps of one mailbox: its posted buffers, of which the first may be written; the completed ones that are kept for
// get and rewind; the puts that are held until a buffer is posted. Internal to core/rvma.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/rvma/buffer_state.h"
#include "core/rvma/history.h"
#include "core/rvma/interval_set.h"
#include "core/rvma/mailbox_table.h"
#include "core/rvma/operation.h"

namespace ccixfer::rvma {

inline constexpr size_t coverage_ranges_max = 16384;  // past it a completion says has_holes without looking; unique refuses
inline constexpr size_t held_operations_max = 1024;   // of a mailbox
inline constexpr size_t hints_owed_max = 64;          // of a mailbox

// What one source, or one connection, has in a buffer. Kept only with a quota.
struct Usage {
  uint32_t operations = 0;  // bound
  uint64_t bytes = 0;       // bound or placed in this buffer
};

struct Buffer {
  MutableBytes memory;
  uint64_t context = 0;
  CompletionRecord* record = nullptr;
  ThresholdType type = ThresholdType::operations;
  uint64_t threshold = 0;  // 0: manual
  BufferState state = BufferState::queued;
  bool cancel = false;           // revoked by close or rewind: it comes back cancelled
  uint64_t cancelled_epoch = 0;  // that it was in
  uint32_t placing = 0;          // fragments that hold a ticket
  uint64_t operations = 0;       // counted
  uint64_t bytes = 0;            // counted: gross, or each byte once (unique)
  uint64_t extent_bytes = 0;     // high-water mark
  uint64_t cursor_bytes = 0;     // managed: where the next put goes
  uint64_t address = 0;          // that the last put was sent to
  IntervalSet covered;
  bool coverage_lost = false;
  std::unordered_map<OperationKey, Operation, OperationKeyHash> bound;
  std::unordered_map<uint64_t, Usage> by_source;
  std::unordered_map<uint64_t, Usage> by_connection;

  void advance(BufferEvent event);               // CHECKs: the table of buffer_state.h has it
  uint64_t cover(uint64_t begin, uint64_t end);  // bytes that nobody had placed before
  [[nodiscard]] uint64_t count() const { return type == ThresholdType::bytes ? bytes : operations; }
  [[nodiscard]] bool touched() const { return extent_bytes > 0 || !bound.empty() || cursor_bytes > 0; }
  [[nodiscard]] bool has_holes() const { return coverage_lost || (extent_bytes > 0 && !covered.contains(0, extent_bytes)); }
};

// A put that waits in memory of ours, whole or in part.
struct Held {
  OperationKey key;
  uint64_t epoch = 0;  // told, or any_epoch; once it is placed, where
  Operation operation;
  std::vector<std::byte> memory;
  bool dropped = false;  // aborted, or the mailbox was closed or rewound: what is still being placed into it is discarded

  Held(const OperationKey& k, uint64_t e, const Operation& o) : key(k), epoch(e), operation(o), memory(o.total_bytes()) {}
};

struct HintOwed {
  uint32_t transport = 0;
  uint64_t connection = 0;
  uint64_t address = 0;  // that the refused put was sent to
  friend bool operator==(const HintOwed&, const HintOwed&) = default;
};

struct Retired {
  CompletedBuffer buffer;
  uint64_t id = 0;  // of the table, never used again
};

// Without buffers, history and puts held this is all that a mailbox costs.
struct Mailbox {
  MailboxOptions options;
  uint64_t number = 0;
  uint64_t epoch = 0;  // of the head, posted or not
  uint32_t incarnation = 0;
  bool closed = false;
  std::list<Buffer> buffers;
  std::unique_ptr<History> history;
  std::list<std::shared_ptr<Held>> held;  // in order of arrival
  uint64_t held_bytes = 0;
  RingBuffer<Retired> retired;  // oldest first
  std::vector<HintOwed> hints_owed;

  [[nodiscard]] Past past(const OperationKey& key, uint64_t told_epoch) const {
    return history ? history->find(key, told_epoch) : Past{};
  }
  void remember(const OperationKey& key, bool told_epoch, bool placed);
  [[nodiscard]] Held* find_held(const OperationKey& key) const;
  [[nodiscard]] bool has_quota() const { return options.operations_per_source_max > 0 || options.bytes_per_source_max > 0; }
};

// Where a put lies in the buffer, checked for overflow but not yet against a buffer.
struct Extent {
  Status status = Status::success;
  uint64_t base_bytes = 0;
  uint64_t total_bytes = 0;
};
[[nodiscard]] Extent extent_of(const ports::RemoteRef& target, uint64_t length_bytes);

}  // namespace ccixfer::rvma
