#include "transports/eth/socket.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "transports/datagram/limits.h"
#include "transports/eth/frame.h"

namespace ccixfer::eth {
namespace {

constexpr int send_buffer_bytes = 8 << 20;  // wanted; the system may grant less (net.core.wmem_max)

std::string words_of(int error) { return std::generic_category().message(error); }

bool set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value) == 0; }

tl::unexpected<Error> no_right(const Interface& interface) {
  return fail(
      ErrorKind::usage,
      fmt::format("no right to raw Ethernet on {}: eth needs the capability CAP_NET_RAW when it starts: run it as root, give the "
                  "program the capability (setcap cap_net_raw+ep FILE), or use udp or tcp",
                  interface.name));
}

// Of no protocol, so that nothing comes before there is a filter.
host::Descriptor make_socket() { return host::Descriptor(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

// ENOSYS: a process that has confined itself, as a router that reads its configuration again.
bool is_refused(int error) { return error == EPERM || error == EACCES || error == ENOSYS; }

Result<uint32_t> mtu_of(int fd, const Interface& interface) {
  ifreq request{};
  interface.name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (ioctl(fd, SIOCGIFMTU, &request) != 0)
    return fail(ErrorKind::network, fmt::format("the interface {} is gone: {}", interface.name, words_of(errno)));
  return static_cast<uint32_t>(std::max(0, request.ifr_mtu));
}

// Only frames to this endpoint come into the ring. A frame that is too short to name an endpoint is let through, so that it is
// counted and not lost in silence; what this host sends itself is not.
bool attach_filter(int fd, const Mac& mac, uint16_t id) {
  const auto mac_high = static_cast<uint32_t>(mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3]);
  const auto mac_low = static_cast<uint32_t>(mac[4] << 8 | mac[5]);
  const auto id_swapped = static_cast<uint32_t>((id & 0xFFu) << 8 | id >> 8);  // the kernel loads big-endian
  std::array<sock_filter, 14> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mac_high, 0, 11),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mac_low, 0, 9),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ethertype_offset),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ethertype, 0, 7),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 5, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, header_bytes, 0, 2),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, destination_id_offset),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, id_swapped, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog attached{static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &attached, sizeof attached) == 0 && set(fd, SOL_SOCKET, SO_LOCK_FILTER, 1);
}

bool make_ring(int fd, const RingShape& shape) {
  tpacket_req request{};
  request.tp_block_size = ring_block_bytes;
  request.tp_block_nr = shape.blocks;
  request.tp_frame_size = shape.slot_bytes;
  request.tp_frame_nr = shape.slots();
  return set(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2) &&
         setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) == 0;
}

}  // namespace

Mapping::~Mapping() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

bool may_use_raw_frames() { return static_cast<bool>(make_socket()) || !is_refused(errno); }

Result<Socket> open_socket(const Interface& interface, uint16_t id, size_t ring_bytes) {
  const auto cannot = [&](const char* what) {
    return fail(ErrorKind::network, fmt::format("{} {}: {}", what, interface.name, words_of(errno)));
  };
  Socket made;
  made.descriptor = make_socket();
  const int fd = made.descriptor.get();
  if (!made.descriptor) {
    if (is_refused(errno)) return no_right(interface);
    return cannot("no packet socket for");
  }
  const auto mtu = mtu_of(fd, interface);
  if (!mtu) return tl::unexpected(mtu.error());
  constexpr auto mtu_min = static_cast<uint32_t>(datagram::datagram_bytes_min + own_header_bytes);
  if (*mtu < mtu_min) {
    return fail(ErrorKind::usage,
                fmt::format("the MTU of {} is {} bytes, and eth needs {}: raise it (ip link set {} mtu 1500), or use tcp",
                            interface.name, *mtu, mtu_min, interface.name));
  }
  made.datagram_bytes_max = std::min(*mtu - static_cast<uint32_t>(own_header_bytes), datagram::datagram_bytes_max);
  made.shape = ring_shape(static_cast<uint32_t>(header_bytes) + made.datagram_bytes_max, ring_bytes);
  if (!make_ring(fd, made.shape)) return cannot("no receive ring for");
  void* const memory = mmap(nullptr, made.shape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return cannot("no receive ring for");
  made.mapping = Mapping({static_cast<std::byte*>(memory), made.shape.bytes()});
  static_cast<void>(set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1));  // the filter knows them too
  if (!attach_filter(fd, interface.mac, id)) return cannot("no filter for");
  if (!set(fd, SOL_SOCKET, SO_SNDBUFFORCE, send_buffer_bytes)) static_cast<void>(set(fd, SOL_SOCKET, SO_SNDBUF, send_buffer_bytes));
  sockaddr_ll place{};
  place.sll_family = AF_PACKET;
  place.sll_protocol = htons(ethertype);
  place.sll_ifindex = static_cast<int>(interface.index);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) return cannot("cannot listen on the interface");
  // An interface that is down is bound to, and the socket has an error to tell of it.
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    return fail(ErrorKind::network,
                fmt::format("the interface {} is down: bring it up first (ip link set {} up)", interface.name, interface.name));
  }
  return made;
}

uint32_t take_drops(int descriptor) {
  tpacket_stats told{};
  socklen_t size = sizeof told;
  return getsockopt(descriptor, SOL_PACKET, PACKET_STATISTICS, &told, &size) == 0 ? told.tp_drops : 0;
}

}  // namespace ccixfer::eth
