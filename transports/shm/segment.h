// The memory of one stream: a sealed memfd that two processes have mapped, with a ring for each direction. The acceptor makes it
// and passes the descriptor; the dialler adopts it.
// Guarantees: an adopted segment can be touched anywhere at any time without a fault, whatever the peer does with its descriptor:
// it is a memfd of ordinary pages, of the very size, and sealed against growing, shrinking and other seals. (A hole that is punched
// reads as zeros, which the rings take for a broken peer.)
// Errors: create: network, with the system's words (no memory, no descriptor). adopt: network, in words, when it is anything else;
// whose fault that is, is the peer's. Ownership: unmapped with this object. Movable. Source: memfd_create(2), fcntl(2) 'File
// Sealing'.
#pragma once
#include <cstddef>

#include "core/base/result.h"
#include "core/host/descriptor.h"
#include "transports/shm/ring.h"

namespace ccixfer::shm {

inline constexpr size_t ring_bytes_min = 4u << 10;
inline constexpr size_t ring_bytes_max = 4u << 20;

// A power of two within the bounds.
[[nodiscard]] bool is_ring_size(size_t ring_bytes);

class Segment {
 public:
  Segment() = default;
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;

  [[nodiscard]] static Result<Segment> create(size_t ring_bytes);  // is_ring_size
  [[nodiscard]] static Result<Segment> adopt(host::Descriptor memory, size_t ring_bytes);
  // Of a descriptor that a peer passed. If it is not, any further call on it, and closing it, may wait for whomever it is of.
  [[nodiscard]] static bool is_shared_memory(int descriptor);

  // 0: what the dialler writes; 1: what the acceptor writes.
  [[nodiscard]] RingMemory ring(size_t direction) const;
  // To be passed to the peer. Needed no more once it is.
  [[nodiscard]] int descriptor() const { return memory_.get(); }
  void close_descriptor() { memory_.reset(); }

 private:
  [[nodiscard]] Result<void> map(size_t ring_bytes);

  host::Descriptor memory_;
  std::byte* begin_ = nullptr;
  size_t ring_bytes_ = 0;
};

}  // namespace ccixfer::shm
