// Bare frames over AF_PACKET as fast as they go, for `./do bench` to stand beside ccixfer over eth: one end sends batches of frames
// with sendmmsg, and the other one takes them from a mapped ring. No acknowledgement, no check, no look at what is in them: the
// least that any protocol in Ethernet frames can cost. What is lost does not count.
//   eth_blast take INTERFACE MTU                says "ready"; after a second without a frame it prints the bytes of payload a
//   second eth_blast send INTERFACE MTU MAC SECONDS    frames full of payload
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint16_t ethertype = 0x88B6;  // the second one for local experiments
constexpr size_t header_bytes = ETH_HLEN;
constexpr unsigned block_bytes = 1u << 16;
constexpr unsigned blocks = 64;
constexpr unsigned batch = 64;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int bound_socket(const char* interface, int fd) {
  sockaddr_ll place{};
  place.sll_family = AF_PACKET;
  place.sll_protocol = htons(ethertype);
  place.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) die("bind");
  return fd;
}

int take(const char* interface, unsigned mtu) {
  const int fd = socket(AF_PACKET, SOCK_RAW, 0);
  const int version = TPACKET_V2;
  if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0) die("socket");
  tpacket_req shape{};
  shape.tp_frame_size = (mtu + 14 + 96 + 15) / 16 * 16;
  shape.tp_block_size = block_bytes;
  shape.tp_block_nr = blocks;
  const unsigned in_block = block_bytes / shape.tp_frame_size;
  shape.tp_frame_nr = in_block * blocks;
  if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &shape, sizeof shape) != 0) die("ring");
  void* const memory = mmap(nullptr, size_t{block_bytes} * blocks, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) die("mmap");
  bound_socket(interface, fd);
  std::puts("ready");
  std::fflush(stdout);
  uint64_t bytes = 0;
  Clock::time_point first, last;
  for (unsigned at = 0;;) {
    auto* const slot = reinterpret_cast<tpacket2_hdr*>(static_cast<char*>(memory) + size_t{at / in_block} * block_bytes +
                                                       size_t{at % in_block} * shape.tp_frame_size);
    if ((__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) == 0) {
      pollfd readable{fd, POLLIN, 0};
      if (poll(&readable, 1, bytes == 0 ? 20'000 : 1'000) == 0) break;
      continue;
    }
    last = Clock::now();
    if (bytes == 0) first = last;
    bytes += slot->tp_len - header_bytes;
    __atomic_store_n(&slot->tp_status, static_cast<unsigned>(TP_STATUS_KERNEL), __ATOMIC_RELEASE);
    at = at + 1 == shape.tp_frame_nr ? 0 : at + 1;
  }
  if (bytes == 0) return 1;
  std::printf("%.0f\n", static_cast<double>(bytes) / std::chrono::duration<double>(last - first).count());
  return 0;
}

int send_frames(const char* interface, unsigned mtu, const char* mac, double seconds) {
  const int fd = bound_socket(interface, socket(AF_PACKET, SOCK_RAW, 0));
  std::vector<unsigned char> frame(header_bytes + mtu, 'x');
  if (std::sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &frame[0], &frame[1], &frame[2], &frame[3], &frame[4], &frame[5]) != 6)
    die("MAC");
  frame[12] = ethertype >> 8;
  frame[13] = ethertype & 0xFF;
  iovec part{frame.data(), frame.size()};
  std::array<mmsghdr, batch> messages{};
  for (mmsghdr& message : messages) {
    message.msg_hdr.msg_iov = &part;
    message.msg_hdr.msg_iovlen = 1;
  }
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    if (sendmmsg(fd, messages.data(), batch, 0) < 0 && errno != ENOBUFS) die("sendmmsg");
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view command = count > 1 ? words[1] : "";
  if (command == "take" && count == 4) return take(words[2], static_cast<unsigned>(std::atoi(words[3])));
  if (command == "send" && count == 6)
    return send_frames(words[2], static_cast<unsigned>(std::atoi(words[3])), words[4], std::atof(words[5]));
  std::fputs("eth_blast take INTERFACE MTU | send INTERFACE MTU MAC SECONDS\n", stderr);
  return 2;
}
