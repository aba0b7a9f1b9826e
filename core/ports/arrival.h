// Memory that is still being filled, from its beginning on, while others send it on: how far it is. One writer, who owns it; it
// outlives every operation and region that names it. Single-threaded.
// Its last byte counts as there only when the whole is known to be good, so that nobody ends an operation with bytes that turn out
// bad. Source: ITB p.2 (early re-injection); routing/router/README.md 'A fragment's way'.
#pragma once
#include <cstdint>

#include "core/ports/conduit.h"

namespace ccixfer::ports {

struct Arrival {
  uint64_t placed_bytes = 0;
  bool complete = false;  // all of it is there, and good
  bool failed = false;    // the rest will not come
  // What comes may stay in here instead of going into the memory; nullptr: no more of it does. The memory stays the place for what
  // the conduit has no room for, and for all of it once that happened.
  Conduit* conduit = nullptr;
  uint64_t passed_bytes = 0;  // that came into the conduit and were not unloaded
  // It is read by one, once and in order: what has left through the conduit is nowhere any more.
  bool once = false;
  bool taken = false;  // by the one
  // Bytes [at, at + size) of `total` may be sent on.
  [[nodiscard]] bool ready(uint64_t at, uint64_t size, uint64_t total) const {
    return complete || (at + size <= placed_bytes && at + size < total);
  }
  // Where the conduit's bytes begin; those before are in the memory, or gone.
  [[nodiscard]] uint64_t conduit_from() const { return conduit == nullptr ? placed_bytes : placed_bytes - conduit->held_bytes(); }
  // Into the memory with what the conduit holds, and with all that is still to come. `memory` is the whole of it.
  void leave_conduit(MutableBytes memory) {
    const uint64_t held = conduit->held_bytes();
    conduit->unload(memory.subspan(static_cast<size_t>(conduit_from()), static_cast<size_t>(held)));
    passed_bytes -= held;
    conduit = nullptr;
  }
};

}  // namespace ccixfer::ports
