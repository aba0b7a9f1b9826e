// One Ethernet frame of ours, with one datagram in it. Ethernet's own fields are big-endian, and ours little-endian:
//
//   offset  0  destination MAC, 6 bytes | 6 source MAC, 6 bytes | 12 ethertype u16
//          14  version u8 | 15 zero u8 | 16 destination id u16 | 18 source id u16 | 20 length u16
//          22  the datagram, `length` bytes | padding
//
// The length is told because Ethernet pads a frame to 60 bytes. Nothing is believed because it stands in a header: whoever is on
// the network can write any of them. Pure. A decoded datagram points into the frame.
// Source: IEEE 802.3, and 802 for the ethertype, which it leaves for local experiments.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/bytes.h"
#include "transports/eth/name.h"

namespace ccixfer::eth {

inline constexpr uint16_t ethertype = 0x88B5;  // IEEE 802 Local Experimental Ethertype 1
inline constexpr uint8_t frame_version = 1;
inline constexpr size_t ethernet_header_bytes = 14;
inline constexpr size_t own_header_bytes = 8;
inline constexpr size_t header_bytes = ethernet_header_bytes + own_header_bytes;
inline constexpr size_t destination_id_offset = 16;  // where the filter in the kernel looks
inline constexpr size_t ethertype_offset = 12;
// A frame is padded to 60 bytes. A network card or switch that takes a VLAN tag off may leave 4 more.
inline constexpr size_t padded_bytes_max = 64;

using Header = std::array<std::byte, header_bytes>;

// datagram_bytes: 1 to UINT16_MAX.
[[nodiscard]] Header encode_header(const Name& to, const Name& from, size_t datagram_bytes);

struct Decoded {
  Name from;
  Bytes datagram;
};

// Of a frame as it came, beginning with its destination MAC, to the endpoint `to`. nullopt: it is short, of another version, for
// somebody else, from an address that no other interface can have, empty, or its length is not what it says.
[[nodiscard]] std::optional<Decoded> decode_frame(Bytes frame, const Name& to);

}  // namespace ccixfer::eth
