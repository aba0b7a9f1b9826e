// Datagrams and the pieces of them that one call of the kernel takes or brings. A piece is one datagram, or several neighbours of
// one address and one length (the last may be shorter), which the kernel or the card cuts apart (UDP_SEGMENT) or joined (UDP_GRO).
// Private to this room; no system call, so tests need no socket.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/datagram/datagram_net.h"
#include "transports/inet/address.h"

namespace ccixfer::udp {

// What Linux takes in one piece (UDP_MAX_SEGMENTS, and what fits an IP packet).
inline constexpr size_t segments_max = 64;
inline constexpr size_t joined_bytes_max = 65507;

// IPv4 addresses are mapped into IPv6, whatever the socket's family: a peer has one name.
[[nodiscard]] datagram::Address address_of(const sockaddr_storage& from);
// For a socket of `family`. False: it cannot reach such an address.
[[nodiscard]] bool to_socket_address(const datagram::Address& address, int family, inet::Address& to);

[[nodiscard]] bool is_v4(const datagram::Address& address);

// To which peers several datagrams leave as one piece.
struct Joins {
  bool v4 = true;
  bool v6 = true;
  [[nodiscard]] bool& of(const datagram::Address& peer) { return is_v4(peer) ? v4 : v6; }
};

// How many of `batch`, from its first on, leave as one piece.
[[nodiscard]] size_t piece_of(std::span<const datagram::Datagram> batch, Joins joins);

// The messages of one sendmmsg. Their pointers lead into it and into the datagrams: it stays where it is until the call is over.
class OutPieces {
 public:
  // Takes `batch` apart for a socket of `family`. One whose address the socket cannot reach ends it.
  void fill(std::span<const datagram::Datagram> batch, int family, Joins joins);
  [[nodiscard]] std::span<mmsghdr> messages() { return std::span(messages_).first(count_); }
  [[nodiscard]] size_t datagrams_in(size_t piece) const { return datagrams_[piece]; }

 private:
  static constexpr size_t control_bytes = CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(in6_pktinfo));
  struct Control {
    alignas(cmsghdr) std::array<std::byte, control_bytes> bytes;
  };
  size_t count_ = 0;
  std::array<mmsghdr, datagram::batch_datagrams_max> messages_{};
  std::array<inet::Address, datagram::batch_datagrams_max> addresses_{};
  std::array<iovec, datagram::batch_datagrams_max> spans_{};
  std::array<Control, datagram::batch_datagrams_max> controls_{};
  std::array<size_t, datagram::batch_datagrams_max> datagrams_{};
};

// Room for the control messages of one piece that comes.
inline constexpr size_t control_in_bytes =
    CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo));

// The datagrams of a piece that came, cut as its control message says, appended to `out`. A piece that was cut short or has another
// address family than ours has none.
void cut_piece(const msghdr& message, Bytes piece, std::vector<datagram::Datagram>& out);

}  // namespace ccixfer::udp
