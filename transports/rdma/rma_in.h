// The RMA operations that the peer initiated, at the target. Every one is bracketed with the RmaTarget's begin and end, so that
// mailboxes, ranges, access and revocation are what they are on every network, and memory is asked for again for every piece. Small
// ones come and go in packets; of the others the peer has announced where its memory is, and this end's card moves them in pieces.
// The machine says which piece is next, and is told when the card is done with it; a ticket goes back only when the card has no
// piece of it any more, or its pair is closed. Slots are the peer's, bounded by the negotiated rmas_in_flight_max.
// In: decoded records of the peer; false means a violation of the protocol. Out: replies, one for each operation. Pure;
// single-threaded. Source: CCI §III.C; RVMA §III.B.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/ports/memory_registration.h"
#include "core/ports/rma_target.h"
#include "core/wire/rma_frames.h"
#include "transports/rdma/packets.h"

namespace ccixfer::rdma {

class RmaIn {
 public:
  struct Reply {
    bool write = false;
    wire::RmaEnd end;
  };
  struct Piece {
    uint32_t slot = 0;
    bool write = false;         // of the peer's: the card is to read it from there
    bool lent = false;          // the card may use the memory itself, for as long as it takes; always so of a write
    uint64_t offset_bytes = 0;  // in the operation
    MutableBytes memory;        // the target's
    uint64_t address = 0;       // the peer's
    uint32_t key = 0;
  };

  void open(uint32_t slots_max, uint64_t connection) {
    slots_max_ = slots_max;
    connection_ = connection;
  }
  // Our application has left: what goes on ends as `disconnected`, once the card is done with it, and so does what comes.
  void leave(ports::RmaTarget& target);

  [[nodiscard]] bool write(const wire::RmaWrite& frame, Bytes payload, ports::RmaTarget& target);
  [[nodiscard]] bool read(const wire::RmaRead& frame, ports::RmaTarget& target);
  [[nodiscard]] bool announced(const Announced& record, bool write, ports::RmaTarget& target);

  // The next piece to be moved, at most so long. Either it is posted, or the operation is refused, or it is asked for again later.
  [[nodiscard]] std::optional<Piece> next_piece(uint32_t piece_bytes, ports::RmaTarget& target);
  [[nodiscard]] bool piece_due() const { return work_ != nullptr && !work_->moving.empty(); }
  [[nodiscard]] ports::MemoryKey& found_before(uint32_t slot) { return work_->slots[slot].found_before; }
  void posted(const Piece& piece, size_t bytes);
  void refuse(const Piece& piece, Status status, ports::RmaTarget& target);
  // The card is done with a piece. `staged`: where the bytes of a write are, if not in the target's memory.
  void moved(uint32_t slot, uint64_t offset_bytes, size_t bytes, bool good, Bytes staged, ports::RmaTarget& target);
  void resume();  // what a read waited for has arrived

  [[nodiscard]] bool reply_due() const { return work_ != nullptr && !work_->replies.empty(); }
  [[nodiscard]] Reply next_reply();  // frees the slot
  [[nodiscard]] bool progress_due() const { return work_ != nullptr && !work_->progress.empty(); }
  [[nodiscard]] std::optional<Progress> next_progress();  // nullopt: it has ended meanwhile
  // Reads that are answered in a packet.
  [[nodiscard]] bool inline_read_due() const { return work_ != nullptr && !work_->inline_reads.empty(); }
  [[nodiscard]] uint64_t inline_read_bytes() const { return work_->slots[work_->inline_reads.front()].total_bytes; }
  struct InlineRead {
    wire::RmaReadData frame;
    Bytes bytes;  // until the read is ended; empty: revoked, and ended
  };
  [[nodiscard]] InlineRead begin_inline_read(ports::RmaTarget& target);
  void end_inline_read(const InlineRead& read, ports::RmaTarget& target);

  [[nodiscard]] bool idle() const { return work_ == nullptr || (work_->pieces == 0 && work_->replies.empty()); }
  // The pair is closed, the card touches nothing any more: every ticket goes back, incomplete.
  void abandon(ports::RmaTarget& target);

 private:
  enum class Kind : uint8_t { none, write, read };
  struct Operation {
    Kind kind = Kind::none;
    bool admitted = false;  // the ticket is held
    bool lent = false;
    bool ending = false;  // nothing more of it is to be moved, though not all of it was
    bool progress_due = false;
    uint32_t id = 0;
    uint32_t pieces = 0;  // that the card has
    ports::OperationResult result{Status::success};
    ports::Ticket ticket;
    uint64_t total_bytes = 0;
    uint64_t posted_bytes = 0;
    uint64_t moved_bytes = 0;
    uint64_t address = 0;
    uint32_t key = 0;
    ports::MemoryKey found_before;
  };
  // nullptr: a slot beyond what was negotiated, or of an operation that has not ended. Else one that is admitted or replied to.
  [[nodiscard]] Operation* begin(uint32_t id, bool write, uint64_t total_bytes, const ports::RemoteRef& remote,
                                 ports::RmaTarget& target);
  [[nodiscard]] static bool place(Operation& operation, uint64_t offset_bytes, Bytes bytes, ports::RmaTarget& target);
  void end_if_done(Operation& operation, ports::RmaTarget& target);
  void give_up(Operation& operation, ports::RmaTarget& target);
  void reply(Operation& operation);
  static void clear(Operation& operation);
  [[nodiscard]] uint32_t slot_of(const Operation& operation) const { return operation.id & 0xffff; }

  // From the peer's first operation on: most connections never have one.
  struct Work {
    std::vector<Operation> slots;
    RingBuffer<uint32_t> moving;   // with pieces to be posted; the first goes on until it has none
    RingBuffer<uint32_t> waiting;  // for what has not arrived
    RingBuffer<uint32_t> inline_reads;
    RingBuffer<uint32_t> progress;
    RingBuffer<Reply> replies;
    uint32_t pieces = 0;
  };
  std::unique_ptr<Work> work_;
  uint32_t slots_max_ = 0;
  uint64_t connection_ = 0;
  bool leaving_ = false;
};

}  // namespace ccixfer::rdma
