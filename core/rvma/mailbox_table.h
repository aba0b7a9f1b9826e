// RVMA at the target: mailboxes, each a queue of posted buffers of which only the head is written (receiver-steered, by
// offset). Here is what a receiver of files needs: OPS and BYTES thresholds, epochs, completions, close; managed mode, rewind,
// get and catch-all are the next issue's and have their place in Options and Status.
//
// Guarantees, whatever the order, duplication or splitting of the puts: a fragment is placed and counted at most once; an
// operation binds to one epoch at its first fragment; a buffer publishes only when its threshold is reached and every bound
// operation has been placed whole or aborted; buffers publish in epoch order; nothing late lands in the next epoch.
// Single-threaded. Bounds: mailboxes_max, buffers_per_mailbox_max, operations bound per buffer_max.
// Source: RVMA §III.A-C, §IV.B-D; rvma-and-itb.md part 1. Deviation: a put carries an offset (III.C leaves it out, III.B needs it).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/bytes.h"
#include "core/base/counters.h"
#include "core/base/status.h"
#include "core/ports/rma_target.h"

namespace ccixfer::rvma {

enum class ThresholdType : uint8_t { operations, bytes };

struct MailboxOptions {
  uint64_t key = 0;  // every put must carry it; a generation: a reopened mailbox gets another
  ThresholdType type = ThresholdType::operations;
  uint64_t threshold = 1;  // default for its buffers; 0: completed by inc_epoch only
  bool negative_acks = true;
};

// One cache line, as the paper's completion pointer and length. `buffer` is stored last.
struct alignas(64) Completion {
  std::byte* buffer = nullptr;  // head of the completed buffer; nullptr: cancelled
  uint64_t length_bytes = 0;    // extent: the high-water mark
  uint64_t count = 0;           // bytes or operations counted
  uint64_t epoch = 0;
  uint64_t mailbox = 0;
  uint64_t context = 0;             // the poster's
  Status status = Status::success;  // success, or cancelled
  bool has_holes = false;
};
static_assert(sizeof(Completion) == 64);

class MailboxTable {
 public:
  struct Limits {
    uint32_t mailboxes_max = 1u << 20;
    uint32_t buffers_per_mailbox_max = 1024;
    uint32_t operations_per_buffer_max = 4096;
  };
  MailboxTable(Limits limits, Counters& counters);
  ~MailboxTable();
  MailboxTable(const MailboxTable&) = delete;
  MailboxTable& operator=(const MailboxTable&) = delete;

  [[nodiscard]] Status open(uint64_t mailbox, const MailboxOptions& options);  // busy: it is open already
  // The buffer stays the caller's memory and must outlive its completion. It gets the epoch after the last posted one.
  [[nodiscard]] Status post(uint64_t mailbox, MutableBytes buffer, uint64_t context);
  // All posted buffers come back cancelled through next_completion(), once nobody is placing into them.
  [[nodiscard]] Status close(uint64_t mailbox);
  [[nodiscard]] Status increment_epoch(uint64_t mailbox);               // hands the head over as it is; again: no buffer posted
  [[nodiscard]] std::optional<uint64_t> epoch(uint64_t mailbox) const;  // of the head
  [[nodiscard]] bool closing(uint64_t mailbox) const;                   // closed, some connection still in a buffer
  // The completed buffers of all mailboxes, each once, in the order of completion.
  [[nodiscard]] std::optional<Completion> next_completion();

  // The transport's side, through core/cci's MemoryTable.
  ports::Admission begin_write(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes);
  MutableBytes write_span(ports::Ticket ticket, uint64_t at_bytes);
  Status end_write(ports::Ticket ticket, bool complete);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::rvma
