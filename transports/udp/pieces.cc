#include "transports/udp/pieces.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "transports/udp/multicast.h"

namespace ccixfer::udp {
namespace {

constexpr uint64_t mapped_v4 = uint64_t{0xffff} << 32;  // ::ffff:a.b.c.d

uint64_t word_of(const in6_addr& address, size_t at) {
  uint64_t word = 0;
  for (size_t i = 0; i < sizeof word; ++i) word = word << 8 | address.s6_addr[at + i];
  return word;
}

in6_addr to_in6(uint64_t high, uint64_t low) {
  in6_addr address{};
  for (size_t i = 0; i < 8; ++i) {
    address.s6_addr[i] = static_cast<uint8_t>(high >> (56 - 8 * i));
    address.s6_addr[8 + i] = static_cast<uint8_t>(low >> (56 - 8 * i));
  }
  return address;
}

// The control messages of one piece, one after the other, in room that is enough for all of them.
class ControlWriter {
 public:
  explicit ControlWriter(MutableBytes room) : room_(room) {}
  template <typename T>
  void add(int level, int type, const T& value) {
    CHECK(used_ + CMSG_SPACE(sizeof(T)) <= room_.size());
    auto* control = reinterpret_cast<cmsghdr*>(room_.data() + used_);
    control->cmsg_level = level;
    control->cmsg_type = type;
    control->cmsg_len = CMSG_LEN(sizeof(T));
    std::memcpy(CMSG_DATA(control), &value, sizeof value);
    used_ += CMSG_SPACE(sizeof(T));
  }
  void finish(msghdr& message) const {
    message.msg_control = used_ > 0 ? room_.data() : nullptr;
    message.msg_controllen = used_;
  }

 private:
  MutableBytes room_;
  size_t used_ = 0;
};

}  // namespace

bool is_v4(const datagram::Address& address) { return address.high == 0 && address.low >> 32 == 0xffff; }

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
    if (!is_v4(address)) return false;
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
  v6.sin6_addr = to_in6(address.high, address.low);
  std::memcpy(&to.storage, &v6, sizeof v6);
  to.size = sizeof v6;
  return true;
}

size_t piece_of(std::span<const datagram::Datagram> batch, Joins joins) {
  CHECK(!batch.empty());
  const datagram::Address& peer = batch[0].peer;
  if (!joins.of(peer) || is_group(peer)) return 1;
  const size_t length = batch[0].bytes.size();
  size_t bytes = length;
  size_t count = 1;
  while (count < batch.size() && count < segments_max && length > 0) {
    const datagram::Datagram& next = batch[count];
    const bool one_way = next.peer == peer && next.peer.our_high == peer.our_high && next.peer.our_low == peer.our_low;
    if (!one_way || next.bytes.empty() || next.bytes.size() > length) break;
    bytes += next.bytes.size();
    if (bytes > joined_bytes_max) break;
    ++count;
    if (next.bytes.size() < length) break;  // a shorter one ends it
  }
  return count;
}

void OutPieces::fill(std::span<const datagram::Datagram> batch, int family, Joins joins) {
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
    ControlWriter control(controls_[count_].bytes);
    if (datagrams > 1) control.add(SOL_UDP, UDP_SEGMENT, static_cast<uint16_t>(batch[at].bytes.size()));
    const datagram::Address& peer = batch[at].peer;
    if (peer.our_high != 0 || peer.our_low != 0) {
      if (family == AF_INET) {
        in_pktinfo from{};
        from.ipi_spec_dst.s_addr = htonl(static_cast<uint32_t>(peer.our_low));
        control.add(IPPROTO_IP, IP_PKTINFO, from);
      } else {
        control.add(IPPROTO_IPV6, IPV6_PKTINFO, in6_pktinfo{to_in6(peer.our_high, peer.our_low), 0});
      }
    }
    control.finish(message);
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
  datagram::Address peer = address_of(from);
  auto* readable = const_cast<msghdr*>(&message);  // CMSG_NXTHDR takes no other
  for (const cmsghdr* control = CMSG_FIRSTHDR(readable); control != nullptr;
       control = CMSG_NXTHDR(readable, const_cast<cmsghdr*>(control))) {
    if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO) {
      int told = 0;
      std::memcpy(&told, CMSG_DATA(control), sizeof told);
      if (told > 0) length = static_cast<size_t>(told);
    } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
      in_pktinfo ours{};
      std::memcpy(&ours, CMSG_DATA(control), sizeof ours);
      peer.our_low = mapped_v4 | ntohl(ours.ipi_addr.s_addr);
    } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo ours{};
      std::memcpy(&ours, CMSG_DATA(control), sizeof ours);
      peer.our_high = word_of(ours.ipi6_addr, 0);
      peer.our_low = word_of(ours.ipi6_addr, 8);
    }
  }
  while (!piece.empty()) {
    const size_t size = std::min(length, piece.size());
    out.push_back({peer, piece.first(size)});
    piece = piece.subspan(size);
  }
}

}  // namespace ccixfer::udp
