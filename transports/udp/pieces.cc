#include "transports/udp/pieces.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace ccixfer::udp {
namespace {

constexpr uint64_t mapped_v4 = uint64_t{0xffff} << 32;  // ::ffff:a.b.c.d

uint64_t word_of(const in6_addr& address, size_t at) {
  uint64_t word = 0;
  for (size_t i = 0; i < sizeof word; ++i) word = word << 8 | address.s6_addr[at + i];
  return word;
}

bool is_mapped(const datagram::Address& address) { return address.high == 0 && address.low >> 32 == 0xffff; }

}  // namespace

datagram::Address address_of(const sockaddr_storage& from) {
  datagram::Address address;
  if (from.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &from, sizeof v4);
    address.low = mapped_v4 | ntohl(v4.sin_addr.s_addr);
    address.port = ntohs(v4.sin_port);
    return address;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &from, sizeof v6);
  address.high = word_of(v6.sin6_addr, 0);
  address.low = word_of(v6.sin6_addr, 8);
  address.port = ntohs(v6.sin6_port);
  address.scope = IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) ? v6.sin6_scope_id : 0;
  return address;
}

bool to_socket_address(const datagram::Address& address, int family, inet::Address& to) {
  if (family == AF_INET) {
    if (!is_mapped(address)) return false;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(address.port));
    v4.sin_addr.s_addr = htonl(static_cast<uint32_t>(address.low));
    std::memcpy(&to.storage, &v4, sizeof v4);
    to.size = sizeof v4;
    return true;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<uint16_t>(address.port));
  v6.sin6_scope_id = address.scope;
  for (size_t i = 0; i < 8; ++i) {
    v6.sin6_addr.s6_addr[i] = static_cast<uint8_t>(address.high >> (56 - 8 * i));
    v6.sin6_addr.s6_addr[8 + i] = static_cast<uint8_t>(address.low >> (56 - 8 * i));
  }
  std::memcpy(&to.storage, &v6, sizeof v6);
  to.size = sizeof v6;
  return true;
}

size_t piece_of(std::span<const datagram::Datagram> batch, bool joins) {
  CHECK(!batch.empty());
  if (!joins) return 1;
  const size_t length = batch[0].bytes.size();
  size_t bytes = length;
  size_t count = 1;
  while (count < batch.size() && count < segments_max && length > 0) {
    const datagram::Datagram& next = batch[count];
    if (next.peer != batch[0].peer || next.bytes.empty() || next.bytes.size() > length) break;
    bytes += next.bytes.size();
    if (bytes > joined_bytes_max) break;
    ++count;
    if (next.bytes.size() < length) break;  // a shorter one ends it
  }
  return count;
}

void OutPieces::fill(std::span<const datagram::Datagram> batch, int family, bool joins) {
  CHECK(batch.size() <= messages_.size());
  count_ = 0;
  for (size_t at = 0; at < batch.size();) {
    if (!to_socket_address(batch[at].peer, family, addresses_[count_])) return;
    const size_t datagrams = piece_of(batch.subspan(at), joins);
    for (size_t i = at; i < at + datagrams; ++i) {
      const Bytes bytes = batch[i].bytes;
      spans_[i] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    }
    msghdr& message = messages_[count_].msg_hdr;
    message = {};
    message.msg_name = &addresses_[count_].storage;
    message.msg_namelen = addresses_[count_].size;
    message.msg_iov = &spans_[at];
    message.msg_iovlen = datagrams;
    if (datagrams > 1) {
      message.msg_control = controls_[count_].bytes.data();
      message.msg_controllen = control_bytes;
      cmsghdr* control = CMSG_FIRSTHDR(&message);
      control->cmsg_level = SOL_UDP;
      control->cmsg_type = UDP_SEGMENT;
      control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
      const auto length = static_cast<uint16_t>(batch[at].bytes.size());
      std::memcpy(CMSG_DATA(control), &length, sizeof length);
    }
    datagrams_[count_++] = datagrams;
    at += datagrams;
  }
}

void cut_piece(const msghdr& message, Bytes piece, std::vector<datagram::Datagram>& out) {
  sockaddr_storage from{};
  if (message.msg_name == nullptr || (message.msg_flags & MSG_TRUNC) != 0) return;
  std::memcpy(&from, message.msg_name, std::min<size_t>(message.msg_namelen, sizeof from));
  if (from.ss_family != AF_INET && from.ss_family != AF_INET6) return;
  size_t length = piece.size();
  auto* readable = const_cast<msghdr*>(&message);  // CMSG_NXTHDR takes no other
  for (const cmsghdr* control = CMSG_FIRSTHDR(readable); control != nullptr;
       control = CMSG_NXTHDR(readable, const_cast<cmsghdr*>(control))) {
    if (control->cmsg_level != SOL_UDP || control->cmsg_type != UDP_GRO) continue;
    int told = 0;
    std::memcpy(&told, CMSG_DATA(control), sizeof told);
    if (told > 0) length = static_cast<size_t>(told);
  }
  const datagram::Address peer = address_of(from);
  while (!piece.empty()) {
    const size_t size = std::min(length, piece.size());
    out.push_back({peer, piece.first(size)});
    piece = piece.subspan(size);
  }
}

}  // namespace ccixfer::udp
