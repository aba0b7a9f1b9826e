// The RMA operations that this end of a connection initiated. A pure machine: which may start (fences), which chunk goes out
// next, where what was read goes, how each operation ends. Slots are bounded by the negotiated rmas_in_flight_max. Guarantees: one
// end for each operation; local memory is not touched after it, whatever comes late or twice; a completion message is pushed only
// after success, and the operation ends when it was delivered; operations go out one after the other. A write is described before
// its first chunk, and again before its 3rd, its 17th and so on until the peer is known to know it: without its description a
// chunk can be placed nowhere, so the loss of one must not cost a flight. Source: CCI §III.C.
#pragma once
#include <optional>

#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "transports/datagram/chunks.h"
#include "transports/datagram/messages.h"

namespace ccixfer::datagram {

class RmaOut {
 public:
  // In the place of a chunk's index: the description of the write.
  static constexpr uint64_t description = ~uint64_t{0};
  using Ended = std::function<void(uint64_t token, ports::OperationResult)>;

  // `chunk_bytes`: the longest chunk (chunk_bytes_of) in the longest packet that both ends take.
  void open(uint32_t slots_max, uint32_t chunk_bytes);
  // Another machine of this connection has named operations, and none of them goes on: the generations of this one are above its.
  void go_on(uint64_t generation_most) { generation_before_ = generation_most; }
  [[nodiscard]] uint64_t generation_most() const;
  // The longest chunk that fits a packet from now on. Operations that are pushed later are cut so; longer chunks of earlier ones go
  // in parts.
  void fit(uint32_t chunk_bytes) { chunk_bytes_ = static_cast<uint16_t>(chunk_bytes); }
  [[nodiscard]] bool full() const { return operations_.in_use() >= slots_max_; }
  void push(const ports::RmaRequest& request, uint64_t token, uint64_t messages_issued);
  void start(uint64_t messages_ended);  // what no fence holds back
  // Whether a fence that is not passed yet is among the first `issued` operations: later messages wait for it.
  [[nodiscard]] uint64_t issued() const { return issued_; }
  [[nodiscard]] bool fence_before(uint64_t issued) const;

  [[nodiscard]] bool chunk_due();
  [[nodiscard]] size_t next_chunk_frame_bytes();  // only if chunk_due
  reliability::Carried take_chunk(wire::Writer& out, uint8_t carried_kind);
  // The token of a write that is to be told that its source is needed no more: every chunk of it has arrived.
  [[nodiscard]] std::optional<uint64_t> chunk_acked(uint64_t operation, const Piece& piece);
  void chunk_lost(uint64_t operation, const Piece& piece);
  [[nodiscard]] bool request_due();
  reliability::Carried take_request(wire::Writer& out, uint8_t carried_kind);
  void request_lost(uint64_t operation);

  // false: the peer's fault. Success pushes the completion message, if there is one.
  [[nodiscard]] bool data(const RmaReadDataFrame& frame, OutMessages& messages, Duration send_timeout, const Ended& ended);
  [[nodiscard]] bool end(const RmaEndFrame& frame, OutMessages& messages, Duration send_timeout, const Ended& ended);
  void announced(uint32_t slot, Status status, const Ended& ended);  // the completion message ended
  void fail_all(Status status, const Ended& ended);                  // in order of issue
  [[nodiscard]] bool empty() const { return active_ == 0 && waiting_.empty(); }

 private:
  enum class Phase : uint8_t { free, waiting, active, announcing };
  struct Operation {
    Phase phase = Phase::free;
    uint64_t generation = 0;
    bool write = false;
    bool fence = false;
    bool announces = false;
    bool local_completion = false;
    uint64_t token = 0;
    uint64_t issue = 0;
    ports::RemoteRef remote;
    Bytes source;
    MutableBytes destination;
    Grid grid;
    uint16_t cut_for_bytes = 0;  // chunk_bytes_ of then: as long as that many fit all its chunks do
    uint64_t messages_before = 0;
    ChunkWindow through;       // write: acked; read: placed
    uint64_t next = 0;         // write: the first chunk that never went out
    uint64_t describe_at = 0;  // write: before this chunk it is described (again)
    bool described = false;    // write: the peer knows it, or its only chunk says all
    bool one_frame = false;    // write: its only chunk and its description fit one packet
    std::vector<std::byte> announcement;
    ports::OperationResult ending;  // announcing: what the target said
  };
  struct Chunk {
    uint64_t operation = 0;
    Piece piece;  // its index may be `description`
  };
  // What a name of the peer's means: an operation that is active, one that is over (late: ignore), or nothing that we ever named.
  enum class Known : uint8_t { active, over, never };
  [[nodiscard]] Known look(uint64_t operation, bool write, Operation*& found);
  [[nodiscard]] uint64_t name(uint32_t slot) const { return operations_[slot].generation << 16 | slot; }
  [[nodiscard]] static bool is_missing(const Operation& operation, const Piece& piece);
  [[nodiscard]] size_t frame_bytes(const Chunk& chunk) const;
  [[nodiscard]] bool fits(const Chunk& chunk) const;
  void split(Operation& operation, const Chunk& chunk);
  [[nodiscard]] uint16_t told_chunk_bytes(const Operation& operation) const;
  [[nodiscard]] std::optional<Chunk> next_chunk();
  void finish(uint32_t slot, ports::OperationResult ending, OutMessages& messages, Duration send_timeout, const Ended& ended);
  void finish_slot(uint32_t slot, ports::OperationResult ending, const Ended& ended);

  SlotVector<Operation> operations_;
  RingBuffer<uint32_t> waiting_;
  RingBuffer<uint64_t> writes_;    // with chunks that never went out
  RingBuffer<Chunk> lost_;         // chunks to go out again
  RingBuffer<uint64_t> requests_;  // reads to ask for
  uint32_t slots_max_ = 0;
  uint16_t longest_chunk_bytes_ = 0;  // small, as each connection has them
  uint16_t chunk_bytes_ = 0;
  uint32_t active_ = 0;
  uint64_t generation_before_ = 0;  // what was named up to it is over
  uint64_t issued_ = 0;
};

}  // namespace ccixfer::datagram
