// Memory that is still being filled, from its beginning on, while others send it on: how far it is. One writer, who owns it; it
// outlives every operation and region that names it. Single-threaded.
// Its last byte counts as there only when the whole is known to be good, so that nobody ends an operation with bytes that turn out
// bad. Source: ITB p.2 (early re-injection); routing/router/README.md 'A fragment's way'.
#pragma once
#include <cstdint>

#include "core/ports/splice_pipe.h"

namespace ccixfer::ports {

struct FillProgress {
  uint64_t placed_bytes = 0;
  bool complete = false;  // all of it is there, and good
  bool failed = false;    // the rest will not come
  // What comes may stay in here instead of going into the memory; nullptr: no more of it does. The memory stays the place for what
  // the splice pipe has no room for, and for all of it once that happened.
  SplicePipe* splice_pipe = nullptr;
  uint64_t passed_bytes = 0;  // that came into the splice pipe and were not unloaded
  // It is read by one, once and in order: what has left through the splice pipe is nowhere any more.
  bool once = false;
  bool taken = false;  // by the one
  // Bytes [at, at + size) of `total` may be sent on.
  [[nodiscard]] bool ready(uint64_t at, uint64_t size, uint64_t total) const {
    return complete || (at + size <= placed_bytes && at + size < total);
  }
  // Where the splice pipe's bytes begin; those before are in the memory, or gone.
  [[nodiscard]] uint64_t splice_pipe_begin() const {
    return splice_pipe == nullptr ? placed_bytes : placed_bytes - splice_pipe->held_bytes();
  }
  // Into the memory with what the splice pipe holds, and with all that is still to come. `memory` is the whole of it.
  void leave_splice_pipe(MutableBytes memory) {
    const uint64_t held = splice_pipe->held_bytes();
    splice_pipe->unload(memory.subspan(static_cast<size_t>(splice_pipe_begin()), static_cast<size_t>(held)));
    passed_bytes -= held;
    splice_pipe = nullptr;
  }
};

}  // namespace ccixfer::ports
