// The pieces of the peers' operations that our card has: it posts them, some at a time for each connection, straight from and into
// the memory of the target where the card knows it, else by way of staging; and it knows what memory the card uses for whom when
// somebody wants it back. Private to this room; single-threaded.
#pragma once
#include <vector>

#include "core/base/slot_table.h"
#include "transports/rdma/engine.h"
#include "transports/rdma/registered_memory.h"
#include "transports/rdma/staging.h"

namespace ccixfer::rdma {

class Pieces {
 public:
  Pieces(Engine& engine, RdmaNet& net, const RegisteredMemory& memory);

  void post(Connection& c);
  // Of a piece of this connection. What a peer's card has refused is that peer's fault.
  void completed(Connection& c, uint64_t tag, WorkStatus status);
  // The pair is closed: the card has none of it any more.
  void forget(Connection& c);
  // Nothing writes into this memory any more once it returns. A connection whose card does not let go of it in time is broken.
  void withdraw(Bytes memory);

 private:
  struct Piece {
    uint32_t connection = 0;
    uint32_t slot = 0;  // of the operation
    bool write = false;
    bool staged = false;
    uint32_t staging = 0;
    uint64_t offset_bytes = 0;
    MutableBytes local;  // what the card uses
    PairId pair = 0;
  };
  [[nodiscard]] bool post_one(Connection& c, const RmaIn::Piece& piece);
  void release(uint32_t index);

  Engine& engine_;
  RdmaNet& net_;
  const RegisteredMemory& memory_;
  const uint32_t piece_bytes_;
  Staging staging_;
  NamedSlots<Piece> pieces_;           // tags are their names
  std::vector<uint32_t> for_staging_;  // connections that wait for a slot; perhaps gone since
};

}  // namespace ccixfer::rdma
