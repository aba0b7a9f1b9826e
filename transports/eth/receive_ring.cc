#include "transports/eth/receive_ring.h"

#include <linux/if_packet.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/base/check.h"

namespace ccixfer::eth {
namespace {

constexpr uint16_t vlan_id_bits = 0x0FFF;

// The kernel writes it last, and takes the slot back when it is 0.
std::atomic_ref<uint32_t> status_of(std::byte* slot) {
  static_assert(offsetof(tpacket2_hdr, tp_status) == 0);
  return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(slot));
}

constexpr size_t aligned(size_t bytes) { return (bytes + slot_alignment - 1) / slot_alignment * slot_alignment; }

}  // namespace

// Where the kernel puts a frame: behind its own fields, their alignment, and room for a header of 16 bytes.
static_assert(aligned(aligned(sizeof(tpacket2_hdr)) + sizeof(sockaddr_ll) + 16) <= slot_overhead_bytes);
static_assert(slot_alignment == TPACKET_ALIGNMENT);

RingShape ring_shape(uint32_t frame_bytes_max, size_t ring_bytes) {
  RingShape shape;
  shape.slot_bytes = (frame_bytes_max + slot_overhead_bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
  CHECK(shape.slot_bytes <= ring_block_bytes);
  shape.blocks = std::max<uint32_t>(1, static_cast<uint32_t>(ring_bytes / ring_block_bytes));
  return shape;
}

std::byte* ReceiveRing::slot(uint32_t index) const {
  const uint32_t block = index / shape_.slots_per_block();
  const uint32_t in_block = index % shape_.slots_per_block();
  return memory_.data() + size_t{block} * ring_block_bytes + size_t{in_block} * shape_.slot_bytes;
}

std::optional<RawFrame> ReceiveRing::next() {
  if (held_ == shape_.slots()) return std::nullopt;
  std::byte* const at = slot(next_);
  const uint32_t status = status_of(at).load(std::memory_order_acquire);
  if ((status & TP_STATUS_USER) == 0) return std::nullopt;
  tpacket2_hdr told{};
  std::memcpy(&told, at, sizeof told);
  RawFrame frame;
  frame.lost_some = (status & TP_STATUS_LOSING) != 0;
  sockaddr_ll from{};
  std::memcpy(&from, at + aligned(sizeof told), sizeof from);
  // A tag of VLAN 0 only tells a priority: the frame is of no VLAN.
  const bool is_tagged = (status & TP_STATUS_VLAN_VALID) != 0 && (told.tp_vlan_tci & vlan_id_bits) != 0;
  frame.is_for_this_host = from.sll_pkttype == PACKET_HOST && !is_tagged;
  const bool is_inside =
      told.tp_mac >= aligned(sizeof told) + sizeof from && size_t{told.tp_mac} + told.tp_snaplen <= shape_.slot_bytes;
  frame.is_whole = is_inside && told.tp_snaplen == told.tp_len;
  if (frame.is_whole) frame.bytes = Bytes(at + told.tp_mac, told.tp_snaplen);
  next_ = after(next_);
  ++held_;
  return frame;
}

void ReceiveRing::release() {
  for (; held_ > 0; --held_) {
    status_of(slot(first_held_)).store(TP_STATUS_KERNEL, std::memory_order_release);
    first_held_ = after(first_held_);
  }
}

}  // namespace ccixfer::eth
