// The ring of slots in which the kernel puts the frames that came (PACKET_RX_RING, TPACKET_V2), and which this process reads in its
// own memory, without a system call. Version 2 and not 3, because it tells of each frame at once, where version 3 may keep one back
// until a block is full or a timer has run out.
// Ownership: the memory is the caller's, and outlives the ring. A frame is valid until release(). The kernel's words are checked
// against the slot all the same, so that no mistake of either reads elsewhere.
// Source: Linux, Documentation/networking/packet_mmap.rst.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/bytes.h"

namespace ccixfer::eth {

inline constexpr uint32_t ring_block_bytes = 64u << 10;  // slots never lie across the end of a block
inline constexpr uint32_t slot_overhead_bytes = 96;      // the kernel's own fields before a frame, and their alignment
inline constexpr uint32_t slot_alignment = 16;

struct RingShape {
  uint32_t slot_bytes = 0;
  uint32_t blocks = 0;
  [[nodiscard]] uint32_t slots_per_block() const { return ring_block_bytes / slot_bytes; }
  [[nodiscard]] uint32_t slots() const { return blocks * slots_per_block(); }
  [[nodiscard]] size_t bytes() const { return size_t{blocks} * ring_block_bytes; }
};
// For frames of up to frame_bytes_max, in about ring_bytes of memory, and one block at least.
[[nodiscard]] RingShape ring_shape(uint32_t frame_bytes_max, size_t ring_bytes);

struct RawFrame {
  Bytes bytes;            // from the destination MAC on; empty when is_whole is not so
  bool is_whole = false;  // not cut to fit into its slot
  // The kernel says that it is for this host. A frame of a VLAN that has no interface here is not, though its MAC address is ours:
  // the kernel has taken its tag out by now.
  bool is_for_this_host = false;
  bool lost_some = false;  // frames before it found no free slot: ask the socket how many
};

class ReceiveRing {
 public:
  ReceiveRing() = default;
  // `memory`: shape.bytes() of it, aligned to a page.
  ReceiveRing(MutableBytes memory, const RingShape& shape) : memory_(memory), shape_(shape) {}

  // The next frame that has come, in the order of their coming; nullopt: no more has. At most slots() between two releases.
  [[nodiscard]] std::optional<RawFrame> next();
  void release();  // gives the slots of all frames that next() told back to the kernel

 private:
  [[nodiscard]] std::byte* slot(uint32_t index) const;
  [[nodiscard]] uint32_t after(uint32_t index) const { return index + 1 == shape_.slots() ? 0 : index + 1; }
  MutableBytes memory_;
  RingShape shape_;
  uint32_t next_ = 0;
  uint32_t first_held_ = 0;
  uint32_t held_ = 0;
};

}  // namespace ccixfer::eth
