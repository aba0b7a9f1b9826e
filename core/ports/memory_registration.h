// Registered memory as a network's card sees it. A card moves only bytes of memory that was registered with it before, and every
// operation names a key. Networks without such a card need no keys: there a key is none, and registering costs nothing.
#pragma once
#include <cstdint>

#include "core/ports/handle.h"

namespace ccixfer::ports {

struct MemoryKey {
  uint64_t value = 0;  // 0: none
  [[nodiscard]] explicit operator bool() const { return value != 0; }
  friend bool operator==(const MemoryKey&, const MemoryKey&) = default;
};

// What a card may do with memory, besides reading it for operations of this end.
struct MemoryAccess {
  bool we_write = false;  // reads of this end: where a peer's card does it, the peer is told a key that lets it write
  bool peers_read = false;
  bool peers_write = false;  // what they write or put is placed there
};

// The memory of this end in an RMA. `region` and `offset_bytes` are of the MemoryTable, for transports that are made of endpoints.
// `key` is what the transport itself gave for the registered memory that the region is in, or is a part of.
struct LocalRegion {
  Handle region;
  uint64_t offset_bytes = 0;
  MemoryKey key;
};

}  // namespace ccixfer::ports
