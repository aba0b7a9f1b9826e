// Buffers that a network still refers to, because a peer has not acknowledged bytes that were read
// from them. They belong to no fragment any more, and are not in the pool yet. The transports let
// go of them as peers acknowledge, or reset the connection (stream::lent_wait_max): what a peer is
// still sent of a connection that is over must be its own data, not that of whoever has the buffer
// next. Single-threaded.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/ports/handle.h"
#include "routing/router/fragment_pool.h"

namespace ccixfer::routing {

class LentBuffers {
 public:
  // Whether the network still refers to bytes of a region that was deregistered.
  using InUse = std::function<bool(const ports::Handle&)>;
  LentBuffers(FragmentPool& pool, InUse in_use) : pool_(pool), in_use_(std::move(in_use)) {}
  // To the pool as soon as it may. A region of kind none: at once.
  void give(uint8_t data_class, memory::Loan buffer, const ports::Handle& region);
  bool return_free();  // true: some went to the pool

 private:
  struct Lent {
    ports::Handle region;
    uint8_t data_class = 0;
    memory::Loan buffer;
  };
  FragmentPool& pool_;
  InUse in_use_;
  std::vector<Lent> lent_;
};

}  // namespace ccixfer::routing
