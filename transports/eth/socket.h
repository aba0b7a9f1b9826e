// A packet socket that gets the frames of one endpoint only, with its receive ring. A filter in the kernel picks them, by the
// destination MAC, the ethertype and the destination id, and is locked.
// Errors: usage: no right to raw Ethernet, an MTU that is too small. network: the interface is down or gone, no memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/result.h"
#include "core/host/descriptor.h"
#include "transports/eth/interface.h"
#include "transports/eth/receive_ring.h"

namespace ccixfer::eth {

// Memory of a mapping, unmapped with its owner. Move-only.
class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(MutableBytes memory) : memory_(memory) {}
  Mapping(Mapping&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] MutableBytes memory() const { return memory_; }

 private:
  MutableBytes memory_;
};

struct Socket {
  host::Descriptor descriptor;  // nonblocking; what is sent through it leaves by the interface
  Mapping mapping;
  RingShape shape;
  uint32_t datagram_bytes_max = 0;
};

// Whether this process has the right to raw Ethernet, which open_socket needs.
[[nodiscard]] bool may_use_raw_frames();

[[nodiscard]] Result<Socket> open_socket(const Interface& interface, uint16_t id, size_t ring_bytes);

// How many frames found no free slot since this was asked last.
[[nodiscard]] uint32_t take_drops(int descriptor);

}  // namespace ccixfer::eth
