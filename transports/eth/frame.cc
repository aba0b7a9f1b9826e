#include "transports/eth/frame.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/wire/cursor.h"

namespace ccixfer::eth {
namespace {

void put_mac(std::byte* to, const Mac& mac) { std::memcpy(to, mac.data(), mac.size()); }

Mac mac_at(Bytes frame, size_t offset) {
  Mac mac{};
  std::memcpy(mac.data(), frame.data() + offset, mac.size());
  return mac;
}

}  // namespace

Header encode_header(const Name& to, const Name& from, size_t datagram_bytes) {
  CHECK(datagram_bytes > 0 && datagram_bytes <= UINT16_MAX);
  Header header{};
  put_mac(header.data(), to.mac);
  put_mac(header.data() + 6, from.mac);
  header[ethertype_offset] = static_cast<std::byte>(ethertype >> 8);
  header[ethertype_offset + 1] = static_cast<std::byte>(ethertype & 0xFF);
  header[14] = static_cast<std::byte>(frame_version);
  wire::store_little<uint16_t>(header.data() + destination_id_offset, to.id);
  wire::store_little<uint16_t>(header.data() + 18, from.id);
  wire::store_little<uint16_t>(header.data() + 20, static_cast<uint16_t>(datagram_bytes));
  return header;
}

std::optional<Decoded> decode_frame(Bytes frame, const Name& to) {
  if (frame.size() <= header_bytes) return std::nullopt;
  const std::byte* at = frame.data();
  const bool is_ours = at[ethertype_offset] == static_cast<std::byte>(ethertype >> 8) &&
                       at[ethertype_offset + 1] == static_cast<std::byte>(ethertype & 0xFF) &&
                       at[14] == static_cast<std::byte>(frame_version) && at[15] == std::byte{0};
  const Name is_for{mac_at(frame, 0), wire::load_little<uint16_t>(at + destination_id_offset)};
  if (!is_ours || is_for != to) return std::nullopt;
  Decoded decoded;
  decoded.from = {mac_at(frame, 6), wire::load_little<uint16_t>(at + 18)};
  // Nobody else has our own address: what bears it was made up, or came back to us in a loop of the network.
  if (!is_unicast(decoded.from.mac) || decoded.from.mac == to.mac || decoded.from.id == 0) return std::nullopt;
  const size_t length = wire::load_little<uint16_t>(at + 20);
  const size_t told = header_bytes + length;
  if (length == 0 || told > frame.size() || frame.size() > std::max(told, padded_bytes_max)) return std::nullopt;
  decoded.datagram = frame.subspan(header_bytes, length);
  return decoded;
}

}  // namespace ccixfer::eth
