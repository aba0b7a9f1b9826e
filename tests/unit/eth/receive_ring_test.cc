// The receive ring over memory of the test, which writes what the kernel would.
#include "transports/eth/receive_ring.h"

#include <linux/if_packet.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace ccixfer::eth {
namespace {

struct Kernel {
  explicit Kernel(uint32_t frame_bytes_max, size_t ring_bytes)
      : shape(ring_shape(frame_bytes_max, ring_bytes)), memory(shape.bytes()) {
    ring = ReceiveRing(memory, shape);
  }
  std::byte* slot(uint32_t index) {
    return memory.data() + index / shape.slots_per_block() * size_t{ring_block_bytes} +
           index % shape.slots_per_block() * size_t{shape.slot_bytes};
  }
  [[nodiscard]] uint32_t status(uint32_t index) {
    uint32_t status = 0;
    std::memcpy(&status, slot(index), sizeof status);
    return status;
  }
  // A frame of `size` bytes of the value `fill` into the next slot; false: it is not free.
  bool put(size_t size, uint8_t fill, uint32_t more = 0, uint16_t tag = 0, uint8_t packet_type = PACKET_HOST) {
    if (status(next) != TP_STATUS_KERNEL) return false;
    tpacket2_hdr told{};
    told.tp_status = TP_STATUS_USER | more;
    told.tp_mac = 66;
    told.tp_len = told.tp_snaplen = static_cast<uint32_t>(size);
    told.tp_vlan_tci = tag;
    write(told);
    sockaddr_ll from{};
    from.sll_pkttype = packet_type;
    std::memcpy(slot(next) + 32, &from, sizeof from);
    std::memset(slot(next) + told.tp_mac, fill, size);
    step();
    return true;
  }
  void write(const tpacket2_hdr& told) { std::memcpy(slot(next), &told, sizeof told); }
  void step() { next = (next + 1) % shape.slots(); }

  RingShape shape;
  std::vector<std::byte> memory;
  ReceiveRing ring;
  uint32_t next = 0;
};

}  // namespace

TEST_CASE("receive_ring__shape__slots_hold_a_frame_and_blocks_hold_slots") {
  for (const uint32_t frame : {1494u, 1514u, 8994u}) {
    for (const size_t bytes : {size_t{1}, size_t{65536}, size_t{4} << 20}) {
      CAPTURE(frame, bytes);
      const RingShape shape = ring_shape(frame, bytes);
      CHECK(shape.slot_bytes >= frame + slot_overhead_bytes);
      CHECK(shape.slot_bytes % slot_alignment == 0);
      CHECK(shape.blocks == std::max<size_t>(1, bytes / ring_block_bytes));
      CHECK(size_t{shape.slots_per_block()} * shape.slot_bytes <= ring_block_bytes);
      CHECK(shape.slots() >= shape.blocks);
    }
  }
}

TEST_CASE("receive_ring__frames__come_in_order_across_blocks_and_around_the_end") {
  Kernel kernel(1514, size_t{2} * ring_block_bytes);
  const uint32_t slots = kernel.shape.slots();
  CHECK_FALSE(kernel.ring.next());
  uint8_t wanted = 0;
  uint8_t fill = 0;
  for (uint32_t round = 0; round < 5 * slots; round += 7) {
    for (int i = 0; i < 7; ++i, ++fill) REQUIRE(kernel.put(60 + fill, fill));
    for (int i = 0; i < 7; ++i, ++wanted) {
      const auto frame = kernel.ring.next();
      REQUIRE(frame);
      CHECK(frame->is_whole);
      CHECK(frame->is_for_this_host);
      CHECK_FALSE(frame->lost_some);
      REQUIRE(frame->bytes.size() == 60u + wanted);
      CHECK(frame->bytes.front() == std::byte{wanted});
      CHECK(frame->bytes.back() == std::byte{wanted});
    }
    CHECK_FALSE(kernel.ring.next());
    kernel.ring.release();
  }
}

TEST_CASE("receive_ring__a_slot__is_the_kernels_again_only_after_release") {
  Kernel kernel(1514, ring_block_bytes);
  const uint32_t slots = kernel.shape.slots();
  for (uint32_t i = 0; i < slots; ++i) REQUIRE(kernel.put(60, 1));
  CHECK_FALSE(kernel.put(60, 1));
  for (uint32_t i = 0; i < slots; ++i) REQUIRE(kernel.ring.next());
  // All are held: the first one is not told a second time, though it still says that it is full.
  CHECK_FALSE(kernel.ring.next());
  CHECK_FALSE(kernel.put(60, 1));
  kernel.ring.release();
  for (uint32_t i = 0; i < slots; ++i) CHECK(kernel.status(i) == TP_STATUS_KERNEL);
  CHECK(kernel.put(60, 2));
  CHECK(kernel.ring.next()->bytes.front() == std::byte{2});
}

TEST_CASE("receive_ring__vlans_other_hosts_and_losses__are_told") {
  Kernel kernel(1514, ring_block_bytes);
  REQUIRE(kernel.put(60, 1, TP_STATUS_VLAN_VALID, 0x2005));
  REQUIRE(kernel.put(60, 1, TP_STATUS_VLAN_VALID, 0x2000));  // a priority, and no VLAN
  REQUIRE(kernel.put(60, 1, TP_STATUS_LOSING));
  CHECK_FALSE(kernel.ring.next()->is_for_this_host);
  CHECK(kernel.ring.next()->is_for_this_host);
  const auto last = kernel.ring.next();
  CHECK(last->lost_some);
  CHECK(last->is_whole);
  for (const int type : {PACKET_OTHERHOST, PACKET_BROADCAST, PACKET_OUTGOING}) {
    REQUIRE(kernel.put(60, 1, 0, 0, static_cast<uint8_t>(type)));
    CHECK_FALSE(kernel.ring.next()->is_for_this_host);
  }
}

TEST_CASE("receive_ring__words_that_point_out_of_the_slot__give_no_bytes") {
  Kernel kernel(1514, ring_block_bytes);
  const uint32_t room = kernel.shape.slot_bytes;
  tpacket2_hdr good{};
  good.tp_status = TP_STATUS_USER;
  good.tp_mac = 66;
  good.tp_len = good.tp_snaplen = room - 66;
  std::vector<tpacket2_hdr> all(8, good);
  all[1].tp_snaplen = all[1].tp_len = room - 65;
  all[2].tp_len = room;  // cut
  all[3].tp_mac = sizeof(tpacket2_hdr) + sizeof(sockaddr_ll) - 1;
  all[4].tp_mac = 0;
  all[5].tp_mac = UINT16_MAX;
  all[6].tp_snaplen = all[6].tp_len = UINT32_MAX;
  all[7].tp_snaplen = all[7].tp_len = 0;
  for (const tpacket2_hdr& each : all) {
    kernel.write(each);
    kernel.step();
  }
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    const auto frame = kernel.ring.next();
    REQUIRE(frame);
    CHECK(frame->is_whole == (i == 0 || i == 7));
    CHECK(frame->bytes.size() == (i == 0 ? room - 66 : 0));
  }
}

}  // namespace ccixfer::eth
