// The RMA operations that the peer initiated, at the target: every write is bracketed with the RmaTarget's begin and end, memory is
// asked for again for each chunk. Slots are the peer's, bounded by the negotiated rmas_in_flight_max.
// Guarantees: a chunk is placed at most once, and none after its operation's end was decided, whatever comes late, twice or out
// of order (a slot's generations rise; an older one is late). false of write() and read(): the peer broke the protocol. Source: CCI
// §III.C; RVMA §III.B.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/reliability/send_ledger.h"
#include "transports/datagram/chunks.h"
#include "transports/datagram/frames.h"

namespace ccixfer::datagram {

class RmaIn {
 public:
  // `chunk_bytes`: the longest chunk (chunk_bytes_of) in the longest packet that both ends take.
  void open(uint32_t slots_max, uint32_t chunk_bytes, uint64_t connection);
  // The longest chunk that fits a packet of ours from now on: longer ones go in parts.
  void fit(uint32_t chunk_bytes) { chunk_bytes_ = static_cast<uint16_t>(chunk_bytes); }
  // Of each slot the newest operation, where none goes on: its generation, and below it a bit for a write. Another machine goes on
  // there, so that what is late is known to be.
  using Generations = std::vector<uint64_t>;
  [[nodiscard]] std::unique_ptr<Generations> generations() const;  // nullptr: there was no operation
  void go_on(const Generations& generations);
  [[nodiscard]] bool is_quiet() const;  // no operation goes on, and the peer knows how each ended
  void leave() { leaving_ = true; }     // our application disconnected: every operation is answered `disconnected`

  [[nodiscard]] bool write(const RmaWriteFrame& frame, ports::RmaTarget& target);
  // Whether its description has come, or it can never be: of others no chunk can be taken yet.
  [[nodiscard]] bool knows(uint64_t operation) const;
  [[nodiscard]] bool write_more(const RmaWriteMoreFrame& frame, ports::RmaTarget& target);
  [[nodiscard]] bool read(const RmaReadFrame& frame, ports::RmaTarget& target);

  [[nodiscard]] bool reply_due();
  reliability::Carried take_reply(wire::Writer& out, uint8_t carried_kind);
  void reply_lost(uint64_t operation);

  [[nodiscard]] bool chunk_due();
  [[nodiscard]] size_t next_chunk_frame_bytes();  // only if chunk_due
  // nullopt: the memory was withdrawn, or is not filled so far; nothing was written, its reply is due.
  std::optional<reliability::Carried> take_chunk(wire::Writer& out, uint8_t carried_kind, ports::RmaTarget& target);
  void chunk_acked(uint64_t operation, const Piece& piece, ports::RmaTarget& target);
  void chunk_lost(uint64_t operation, const Piece& piece);

  void abandon(ports::RmaTarget& target);  // the connection is over: every ticket goes back, incomplete
  // What waits to go out: at most an answer and a read for each slot, whatever the peer begins anew without taking what it is sent.
  [[nodiscard]] size_t waiting() const { return replies_.size() + reads_.size(); }

 private:
  struct Operation {
    uint64_t generation = 0;  // of the newest in this slot; 0: none yet
    bool active = false;      // its end is not decided
    bool admitted = false;    // the ticket is held
    bool write = false;
    ports::OperationResult ending{Status::success};
    ports::Ticket ticket;
    ports::Handle handle;
    uint64_t target_offset_bytes = 0;
    Grid grid;
    uint64_t next = 0;                          // read: the first chunk that never went out
    ChunkWindow through;                        // write: placed; read: acked
    bool in_replies = false, in_reads = false;  // the slot is; which of its operations that concerns shows when its turn comes
  };
  struct Chunk {
    uint64_t operation = 0;
    Piece piece;
  };
  [[nodiscard]] Operation* slot_of(uint64_t operation);  // nullptr: beyond what was negotiated
  [[nodiscard]] Operation* current(uint64_t operation);  // nullptr: not the newest of its slot, or not active
  void begin(Operation& operation, uint64_t id, bool write, const Grid& grid, const ports::RemoteRef& remote);
  [[nodiscard]] Grid grid_of(uint64_t total_bytes, uint16_t told_chunk_bytes) const;
  [[nodiscard]] bool owes_reply(uint32_t slot) const;
  void queue_reply(uint32_t slot);
  void decide(Operation& operation, uint64_t id, ports::OperationResult ending);
  [[nodiscard]] bool take(Operation& operation, const RmaWriteMoreFrame& frame, ports::RmaTarget& target);
  void place(Operation& operation, const RmaWriteMoreFrame& frame, ports::RmaTarget& target);
  [[nodiscard]] bool take_in_parts(Operation& operation, const RmaWriteMoreFrame& frame, uint64_t index, ports::RmaTarget& target);
  [[nodiscard]] std::optional<Chunk> next_chunk();
  [[nodiscard]] size_t frame_bytes(const Operation& operation, const Chunk& chunk) const;
  [[nodiscard]] bool fits(const Operation& operation, const Chunk& chunk) const;
  void split(const Operation& operation, const Chunk& chunk);

  std::vector<Operation> operations_;
  RingBuffer<uint32_t> replies_;  // slots
  RingBuffer<uint32_t> reads_;    // slots, with chunks that never went out
  RingBuffer<Chunk> lost_;
  uint32_t slots_max_ = 0;
  uint16_t longest_chunk_bytes_ = 0;  // small, as each connection has them
  uint16_t chunk_bytes_ = 0;
  uint64_t connection_ = 0;
  bool leaving_ = false;
};

}  // namespace ccixfer::datagram
