// Memory that the network refers to instead of copying: how far the peer's network has acknowledged it, and what happens when its
// owner wants it back. Regions of ours that peers read go back as their bytes are acknowledged; a connection whose peer does not go
// on is reset, in bounded time (lent_stall_max, lent_wait_max). Private to this room; single-threaded.
#pragma once
#include "transports/stream/engine.h"

namespace ccixfer::stream {

class LentMemory final : public ports::Lender {
 public:
  LentMemory(Engine& engine, StreamNet& net) : engine_(engine), net_(net) {}

  [[nodiscard]] uint64_t acknowledged_bytes(const Connection& c) const;  // by the peer's network
  void settle() override;
  void turn();                             // looks at who keeps memory that is wanted back
  [[nodiscard]] Instant deadline() const;  // `now`: something is wanted that was not

 private:
  void look_at(Connection& c);

  Engine& engine_;
  StreamNet& net_;
  uint64_t wants_seen_ = 0;  // of memory that its owner wants back
  Instant look_at_ = never;  // when to look again
};

}  // namespace ccixfer::stream
