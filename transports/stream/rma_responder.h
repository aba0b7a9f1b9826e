// The RMA operations that the peer initiated, at the target: every write is bracketed with the RmaTarget's begin and end, memory is
// asked for again at each call, refused and revoked ones are discarded. Slots are the peer's, bounded by the negotiated
// rmas_in_flight_max. In: decoded frames of the peer; false means a violation of the protocol (unknown or doubled operation, gap,
// contradiction). Out: replies in order, at most two for each slot, so they never block one another. Source: CCI §III.C; RVMA
// §III.B.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/ports/rma_target.h"
#include "core/wire/rma_frames.h"

namespace ccixfer::stream {

class RmaResponder {
 public:
  struct Reply {
    bool write = false;
    wire::RmaEnd end;
  };

  void open(uint32_t slots_max, uint64_t connection) {
    slots_max_ = slots_max;
    connection_ = connection;
  }
  void leave() { leaving_ = true; }  // our application disconnected: every operation is answered `disconnected`

  // A chunk begins; its payload follows through write_span and written().
  [[nodiscard]] bool chunk(const wire::RmaWrite& frame, uint32_t payload_bytes, ports::RmaTarget& target);
  // Memory for the next bytes of the chunk of this slot, at most `size`. Empty: discard them.
  [[nodiscard]] MutableBytes write_span(uint32_t slot, size_t size, ports::RmaTarget& target);
  void written(uint32_t slot, size_t bytes, ports::RmaTarget& target);

  // On true the operation is either refused (a reply is due) or its slot is in `to_read`, to be sent from.
  [[nodiscard]] bool request(const wire::RmaRead& frame, ports::RmaTarget& target);
  // A read whose next chunk has not arrived here yet lets the others pass, until resume().
  [[nodiscard]] std::optional<uint32_t> next_to_read(uint64_t chunk_bytes, const ports::RmaTarget& target);
  void resume();
  struct Chunk {
    wire::RmaReadData frame;
    uint32_t bytes = 0;
  };
  // The header of the next chunk of a read; 0 bytes: revoked, its end is due instead.
  [[nodiscard]] Chunk next_chunk(uint32_t slot, uint64_t chunk_bytes, ports::RmaTarget& target);
  // Memory from `offset` on, at most `size`. Empty: revoked; the promised bytes go out as zeros and the end says so.
  [[nodiscard]] Bytes read_span(uint32_t slot, uint64_t offset, size_t size, ports::RmaTarget& target);
  // Whether this read goes on after `done` bytes, with a chunk that is here.
  [[nodiscard]] bool continues(uint32_t slot, uint64_t done_bytes, const ports::RmaTarget& target) const;
  // Of the memory read, if it may have bytes in a splice pipe.
  [[nodiscard]] const ports::FillProgress* fill_of(uint32_t slot, const ports::RmaTarget& target) const;
  void chunk_sent(uint32_t slot, uint32_t bytes, ports::RmaTarget& target);  // the slot returns to `to_read`, or its end is due

  [[nodiscard]] bool reply_due() const { return work_ != nullptr && !work_->replies.empty(); }
  [[nodiscard]] bool read_due() const { return work_ != nullptr && !work_->to_read.empty(); }
  [[nodiscard]] Reply next_reply();  // frees the slot
  // The connection is over: every ticket goes back, incomplete, but those of which the network has bytes.
  void abandon(ports::RmaTarget& target);

  // Memory that goes by reference: its ticket goes back when the peer's network has acknowledged all that was taken of it.
  // Positions are of the bytes that the network took of the connection.
  [[nodiscard]] bool lend(uint32_t slot, ports::RmaTarget& target);  // false: it is copied
  void given(uint32_t slot, uint64_t position);
  [[nodiscard]] bool holds() const { return work_ != nullptr && !work_->held.empty(); }
  void acknowledged(uint64_t position, ports::RmaTarget& target);
  // The peer has acknowledged all up to `position`. Whether somebody waits for memory of which bytes beyond that went out. A read
  // under way whose memory is wanted ends.
  [[nodiscard]] bool owes(uint64_t position, ports::RmaTarget& target);
  void closed(ports::RmaTarget& target);  // the network refers to nothing any more

 private:
  struct Work;
  enum class Kind : uint8_t { none, write, read };
  struct Operation {
    Kind kind = Kind::none;
    bool admitted = false;  // the ticket is held
    bool ended = false;     // its last reply is queued
    uint32_t id = 0;
    ports::OperationResult ending{Status::success};
    ports::Ticket ticket;
    ports::Handle handle;
    uint64_t target_offset_bytes = 0;
    uint64_t total_bytes = 0;
    uint64_t done_bytes = 0;
    bool lent = false;
    uint64_t lent_until = 0;
  };
  struct Held {  // a read that ended
    ports::Ticket ticket;
    uint64_t until = 0;
  };
  // Of the next chunk of an admitted read: so many, or the least where not all of them have arrived.
  [[nodiscard]] static uint64_t next_bytes(const Operation& operation, uint64_t chunk_bytes, const ports::RmaTarget& target);
  [[nodiscard]] Operation* free_slot(uint32_t id);
  void end_read(Operation& operation, ports::RmaTarget& target);
  void revoke_write(Operation& operation, ports::RmaTarget& target);
  void reply(Operation& operation, bool early);

  // From the peer's first operation on: most connections never have one.
  struct Work {
    std::vector<Operation> slots;
    RingBuffer<Reply> replies;
    RingBuffer<uint32_t> to_read;
    RingBuffer<uint32_t> waiting;  // for what has not arrived
    std::vector<Held> held;        // at most lent_reads_max and the slots
  };
  std::unique_ptr<Work> work_;
  uint32_t slots_max_ = 0;
  uint64_t connection_ = 0;
  bool leaving_ = false;
};

}  // namespace ccixfer::stream
