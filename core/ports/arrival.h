// Memory that is still being filled, from its beginning on, while others send it on: how far it is. One writer, who owns it; it
// outlives every operation and region that names it. Single-threaded.
// Its last byte counts as there only when the whole is known to be good, so that nobody ends an operation with bytes that turn out
// bad. Source: ITB p.2 (early re-injection); architecture 'A fragment's way through a router'.
#pragma once
#include <cstdint>

namespace ccixfer::ports {

struct Arrival {
  uint64_t placed_bytes = 0;
  bool complete = false;  // all of it is there, and good
  bool failed = false;    // the rest will not come
  // Bytes [at, at + size) of `total` may be sent on.
  [[nodiscard]] bool ready(uint64_t at, uint64_t size, uint64_t total) const {
    return complete || (at + size <= placed_bytes && at + size < total);
  }
};

}  // namespace ccixfer::ports
