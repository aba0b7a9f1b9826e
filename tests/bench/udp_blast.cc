// Bare datagrams of UDP as fast as they go, for `./do bench` to stand beside ccixfer over udp: one end sends batches with sendmmsg
// and segmentation offload (UDP_SEGMENT), and the other one takes them with recvmmsg and UDP_GRO. No acknowledgement, no check, no
// look at what is in them: the least that any protocol over UDP can cost. What is lost does not count. Both ends go through as much
// memory as ccixfer's bench moves (16 operations of 4 MiB): what stays in a cache is no transfer.
//   udp_blast take ADDRESS PORT DATAGRAM_BYTES             says "ready"; after a second without one it prints the bytes a second
//   udp_blast send ADDRESS PORT DATAGRAM_BYTES SECONDS
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t joined_bytes_max = 65'507;  // of UDP over IPv4
constexpr size_t joined_max = 64;            // segments of one call: UDP_MAX_SEGMENTS of older kernels
constexpr unsigned batch = 16;
constexpr int buffer_bytes = 8 << 20;
constexpr size_t memory_bytes = 16 * (size_t{4} << 20);

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int socket_of(const sockaddr_in& place, int option, int value) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || setsockopt(fd, SOL_UDP, option, &value, sizeof value) != 0) die("socket");
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0) die("SO_RCVBUFFORCE");
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0) die("SO_SNDBUFFORCE");
  const auto join = option == UDP_GRO ? bind : connect;
  if (join(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) die("address");
  return fd;
}

// Buffers of `bytes` for one call, each time the next ones of the memory.
class Batch {
 public:
  explicit Batch(size_t bytes) : bytes_(bytes), memory_(memory_bytes) {
    for (unsigned i = 0; i < batch; ++i) {
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  mmsghdr* next() {
    for (iovec& part : parts_) {
      if (at_ + bytes_ > memory_.size()) at_ = 0;
      part = {memory_.data() + at_, bytes_};
      at_ += bytes_;
    }
    return messages_.data();
  }
  [[nodiscard]] size_t taken_bytes(unsigned i) const { return messages_[i].msg_len; }

 private:
  const size_t bytes_;
  std::vector<char> memory_;
  size_t at_ = 0;
  std::array<iovec, batch> parts_{};
  std::array<mmsghdr, batch> messages_{};
};

int take(const sockaddr_in& place) {
  const int fd = socket_of(place, UDP_GRO, 1);
  Batch room(1u << 16);
  std::puts("ready");
  std::fflush(stdout);
  uint64_t bytes = 0;
  Clock::time_point first, last;
  for (;;) {
    const int count = recvmmsg(fd, room.next(), batch, MSG_DONTWAIT, nullptr);
    if (count < 0 && errno != EAGAIN) die("recvmmsg");
    if (count < 0) {
      pollfd readable{fd, POLLIN, 0};
      if (poll(&readable, 1, bytes == 0 ? 20'000 : 1'000) == 0) break;
      continue;
    }
    last = Clock::now();
    if (bytes == 0) first = last;
    for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) bytes += room.taken_bytes(i);
  }
  if (bytes == 0) return 1;
  std::printf("%.0f\n", static_cast<double>(bytes) / std::chrono::duration<double>(last - first).count());
  return 0;
}

int send_all(const sockaddr_in& place, size_t datagram_bytes, double seconds) {
  const int fd = socket_of(place, UDP_SEGMENT, static_cast<int>(datagram_bytes));
  Batch full(datagram_bytes * std::min(joined_bytes_max / datagram_bytes, joined_max));
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    if (sendmmsg(fd, full.next(), batch, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED) die("sendmmsg");
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view command = count > 1 ? words[1] : "";
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (count >= 5 && inet_pton(AF_INET, words[2], &place.sin_addr) == 1) {
    place.sin_port = htons(static_cast<uint16_t>(std::atoi(words[3])));
    const auto bytes = static_cast<size_t>(std::atoi(words[4]));
    if (command == "take" && count == 5) return take(place);
    if (command == "send" && count == 6 && bytes > 0 && bytes <= joined_bytes_max)
      return send_all(place, bytes, std::atof(words[5]));
  }
  std::fputs("udp_blast take ADDRESS PORT DATAGRAM_BYTES | send ADDRESS PORT DATAGRAM_BYTES SECONDS\n", stderr);
  return 2;
}
