// RVMA at the target: mailboxes, each a queue of posted buffers of which only the head is written: receiver-steered (by offset) or
// receiver-managed (one put after the other, like a socket). A mailbox number is exact: one lookup, no wildcards, no arithmetic.
//
// Guarantees, whatever the order, duplication or splitting of the puts: a fragment is placed and counted at most once; an
// operation binds to one epoch at its first fragment; a buffer publishes only when its threshold is reached and every bound
// operation has been placed whole or aborted; buffers publish in epoch order; nothing late lands in the next epoch. An
// acknowledgement says that the bytes are placed (or held), never that an epoch is complete.
// Single-threaded: one table belongs to one thread, which is why exactly one crosses a threshold (buffer_state.h). Only completion
// records are read by other threads. Errors: a peer's puts are refused with a status and counted; the owner's calls answer a
// status. Bounds: Limits. Source: RVMA §III.A-C, §IV.B-F; core/rvma/README.md. Deviations: a put carries an offset (III.C leaves
// it out, III.B needs it); a managed put is one piece: it does not straddle two buffers, as a byte stream would.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/counters.h"
#include "core/base/status.h"
#include "core/base/time.h"
#include "core/ports/rma_target.h"
#include "core/rvma/completion_record.h"

namespace ccixfer::rvma {

enum class ThresholdType : uint8_t { operations, bytes };
enum class Placement : uint8_t {
  steered,  // at the put's offset in the head
  managed   // behind the put that came before, whatever the offset; one that does not fit into the rest of the head ends it
};
// A put for which no buffer is posted.
enum class WhenEmpty : uint8_t {
  nack,       // mailbox_empty: come again
  hold,       // kept in memory of the table, at most held_bytes_max a mailbox, placed when a buffer is posted; beyond it: nack
  catch_all,  // goes to the catch-all mailbox, if there is one
  drop        // discarded without an answer
};

struct MailboxOptions {
  uint64_t key = 0;  // every put must carry it; a generation: a mailbox that was closed is not opened again with the same one
  ThresholdType type = ThresholdType::operations;
  uint64_t threshold = 1;     // default for its buffers. 0, or bytes over the buffer's length: completed by increment_epoch only
  bool negative_acks = true;  // false: what is refused gets no answer (Status::withheld); holds after close() too
  Placement placement = Placement::steered;
  bool unique = false;  // bytes: each byte of the buffer counts once. Else overlapping puts count gross
  WhenEmpty when_empty = WhenEmpty::nack;
  bool hints = false;           // who was refused for want of a buffer is told once there is one (next_hint)
  uint32_t retired_max = 0;     // completed buffers kept for get, buffer_pointers and rewind, until posted again or released
  uint64_t held_bytes_max = 0;  // when_empty = hold
  // Quotas, of every source and of every connection; 0: none. Of operations bound or held at a time, and of bytes in one buffer.
  uint32_t operations_per_source_max = 0;
  uint64_t bytes_per_source_max = 0;
};

struct PostOptions {
  uint64_t context = 0;
  std::optional<uint64_t> threshold{};  // else the mailbox's
  std::optional<ThresholdType> type{};
  CompletionRecord* record = nullptr;  // told there, and only there; else through next_completion()
};

struct Completion {
  std::byte* buffer = nullptr;  // head of the completed buffer; nullptr: cancelled
  uint64_t length_bytes = 0;    // extent: the high-water mark
  uint64_t count = 0;           // bytes or operations counted
  uint64_t bytes = 0;           // bytes counted
  uint64_t epoch = 0;
  uint64_t mailbox = 0;
  uint64_t address = 0;             // the number that the last put was sent to: in a catch-all it is another one
  uint64_t context = 0;             // the poster's
  Status status = Status::success;  // success, or cancelled
  bool has_holes = false;
};

struct CompletedBuffer {
  MutableBytes memory;  // as posted, with what the application wrote into it since
  uint64_t length_bytes = 0;
  uint64_t epoch = 0;
};

class MailboxTable {
 public:
  struct Limits {
    uint32_t mailboxes_max = 1u << 20;
    uint32_t buffers_per_mailbox_max = 1024;
    uint32_t operations_per_buffer_max = 4096;
    uint32_t nacks_per_second = 0;              // negative acknowledgements to one connection; more are withheld. 0: no limit
    uint32_t closed_remembered_max = 1u << 16;  // an older closed mailbox is answered as one that never was
    bool unknown_nacks = true;                  // false: puts to unknown mailboxes get no answer
  };
  MailboxTable(Limits limits, Counters& counters);
  ~MailboxTable();
  MailboxTable(const MailboxTable&) = delete;
  MailboxTable& operator=(const MailboxTable&) = delete;
  // Needed when somebody waits in the kernel for a record; outlives the table.
  void set_waker(RecordWaker* waker);

  // --- The owner's side: the paper's Init_window, Post_buffer, Close_Win, Win_inc_epoch, Win_get_epoch, Win_get_buf_ptrs ---

  // busy: it is open already. mailbox_key: it was closed with this very key, and stale puts would find it.
  [[nodiscard]] Status open(uint64_t mailbox, const MailboxOptions& options);
  // The buffer (and the record) stay the caller's memory and must outlive the completion; with retired_max, until it is posted
  // again, released, or pushed out by later ones. It gets the epoch after the last posted one. range: too small for a held put.
  [[nodiscard]] Status post(uint64_t mailbox, MutableBytes buffer, const PostOptions& options);
  [[nodiscard]] Status post(uint64_t mailbox, MutableBytes buffer, uint64_t context) {
    return post(mailbox, buffer, PostOptions{.context = context});
  }
  // All posted buffers come back cancelled, once nobody is placing into them: through next_completion() with a null buffer, or in
  // their records with status cancelled. Later puts are discarded, with or without an answer.
  [[nodiscard]] Status close(uint64_t mailbox);
  [[nodiscard]] Status increment_epoch(uint64_t mailbox);               // hands the head over as it is; again: no buffer posted
  [[nodiscard]] std::optional<uint64_t> epoch(uint64_t mailbox) const;  // of the head
  // The last completed buffers that are kept, newest first; returns how many.
  [[nodiscard]] size_t buffer_pointers(uint64_t mailbox, std::span<CompletedBuffer> out) const;
  // The epoch goes back to `epoch`: what was completed since comes back in `undone`, oldest first; older ones stay for get. A head
  // that was begun comes back cancelled, posted buffers that nobody touched stay. Puts with a handle from before are refused from
  // now on. range: not an epoch of the past, or its buffer is not kept. busy: the head is on its way out.
  [[nodiscard]] Status rewind(uint64_t mailbox, uint64_t epoch, std::vector<CompletedBuffer>& undone);
  // A kept buffer is the owner's memory alone again: a get of it ends. not_found: it is not kept.
  [[nodiscard]] Status release(uint64_t mailbox, const std::byte* buffer);
  // A dead source's bound and held operations, but for those in the middle of a fragment: nobody waits for the rest. Returns how
  // many.
  size_t abort_source(uint64_t mailbox, uint64_t source);
  // What a peer needs to put: number, key and incarnation. Kind none: no such mailbox.
  [[nodiscard]] ports::Handle handle(uint64_t mailbox) const;
  [[nodiscard]] bool closing(uint64_t mailbox) const;  // closed, some connection still in a buffer
  // Where puts to unknown mailboxes go (to none, after close() of it), whatever key they carry.
  void set_catch_all(std::optional<uint64_t> mailbox);
  // The completed buffers of all mailboxes that were posted without a record, each once, in the order of completion.
  [[nodiscard]] std::optional<Completion> next_completion();

  // --- The transport's side, through core/cci's MemoryTable ---
  void turn(Instant now);  // before the puts of this turn; for the limit of negative acknowledgements
  // `connection` is whose quota the put uses, next to its source's; `transport`, whom a hint for that connection is for.
  ports::Admission begin_write(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes, uint32_t transport = 0);
  MutableBytes write_span(ports::Ticket ticket, uint64_t at_bytes);
  ports::OperationResult end_write(ports::Ticket ticket, bool complete);
  // get: of the last completed buffer, while it is kept; never counts. mailbox_empty: there is none.
  ports::Admission begin_read(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes);
  Bytes read_span(ports::Ticket ticket, uint64_t at_bytes);
  void end_read(ports::Ticket ticket);
  // The connections of this transport whose put was refused as mailbox_empty, and not silently, since the last buffer was posted.
  [[nodiscard]] bool hint_waits(uint32_t transport) const;
  [[nodiscard]] std::optional<ports::Hint> next_hint(uint32_t transport);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::rvma
