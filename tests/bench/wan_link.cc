// An emulated wide-area link between two network interfaces: rate, delay, random loss, a queue of bounded length. The kernel's own
// (netem) is not everywhere, and needs to be loaded.
//   wan_link prepare IF...                                         offloads off: what crosses the link are packets of the MTU
//   wan_link join IF_A IF_B RATE_MBPS ONE_WAY_MS LOSS_PERCENT QUEUE_KB SEED    prints "ready", then passes packets until it is
//   ended
// Each direction is a thread: a packet leaves the queue when those before it have, at the rate, and arrives one_way_ms later. A
// packet that comes to a full queue is dropped, and each other one by chance.
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t packet_bytes_max = 2048;
constexpr size_t batch = 64;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "wan_link: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void prepare(const char* name) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  for (const uint32_t command : {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM}) {
    ethtool_value off{command, 0};
    ifreq request{};
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&off);
    if (ioctl(fd, SIOCETHTOOL, &request) != 0) fail(std::string("offloads of ") + name);
  }
}

int open_interface(const char* name) {
  const int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
  if (fd < 0) fail("packet socket");
  const int one = 1;
  const int buffer = 64 << 20;
  if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0) fail("ignore outgoing");
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(name));
  if (address.sll_ifindex == 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail(name);
  return fd;
}

struct Link {
  double bytes_per_ns = 0;
  int64_t one_way_ns = 0;
  double loss = 0;
  double queue_bytes = 0;
};

struct Packet {
  int64_t arrives_at = 0;
  size_t size = 0;
  std::array<char, packet_bytes_max> bytes;
};

class Direction {
 public:
  Direction(int from, int to, const Link& link, uint64_t seed) : from_(from), to_(to), link_(link), random_(seed) {}

  void run() {
    for (;;) {
      const bool took = take();
      const bool gave = give();
      if (!took && !gave) rest();
    }
  }

 private:
  bool take() {
    for (size_t i = 0; i < batch; ++i) {
      spans_[i] = {came_[i].data(), packet_bytes_max};
      messages_[i] = {};
      messages_[i].msg_hdr.msg_iov = &spans_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
    const int count = recvmmsg(from_, messages_.data(), batch, MSG_DONTWAIT, nullptr);
    const int64_t now = now_ns();
    for (int i = 0; i < count; ++i) {
      const size_t size = messages_[static_cast<size_t>(i)].msg_len;
      if (std::uniform_real_distribution<>(0, 1)(random_) < link_.loss) continue;
      free_at_ = std::max(free_at_, static_cast<double>(now));
      if ((free_at_ - static_cast<double>(now)) * link_.bytes_per_ns + static_cast<double>(size) > link_.queue_bytes) continue;
      free_at_ += static_cast<double>(size) / link_.bytes_per_ns;
      Packet& packet = waiting_.emplace_back();
      packet.arrives_at = static_cast<int64_t>(free_at_) + link_.one_way_ns;
      packet.size = size;
      std::memcpy(packet.bytes.data(), came_[static_cast<size_t>(i)].data(), size);
    }
    return count > 0;
  }
  bool give() {
    const int64_t now = now_ns();
    size_t count = 0;
    while (count < batch && count < waiting_.size() && waiting_[count].arrives_at <= now) {
      spans_[count] = {waiting_[count].bytes.data(), waiting_[count].size};
      messages_[count] = {};
      messages_[count].msg_hdr.msg_iov = &spans_[count];
      messages_[count].msg_hdr.msg_iovlen = 1;
      ++count;
    }
    if (count == 0) return false;
    int sent = sendmmsg(to_, messages_.data(), static_cast<unsigned>(count), 0);
    if (sent <= 0) sent = 1;  // the interface does not take it
    waiting_.erase(waiting_.begin(), waiting_.begin() + sent);
    return true;
  }
  void rest() {
    const int64_t left = waiting_.empty() ? 100'000'000 : waiting_.front().arrives_at - now_ns();
    if (left <= 0) return;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    pollfd ready{from_, POLLIN, 0};
    ppoll(&ready, 1, &timeout, nullptr);
  }

  const int from_, to_;
  const Link link_;
  std::mt19937_64 random_;
  double free_at_ = 0;
  std::deque<Packet> waiting_;
  std::array<std::array<char, packet_bytes_max>, batch> came_;
  std::array<iovec, batch> spans_;
  std::array<mmsghdr, batch> messages_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "prepare" && argc > 2) {
    for (int i = 2; i < argc; ++i) prepare(argv[i]);
    return 0;
  }
  if (what != "join" || argc != 9) {
    std::fprintf(stderr, "usage: wan_link prepare IF... | join IF_A IF_B RATE_MBPS ONE_WAY_MS LOSS_PERCENT QUEUE_KB SEED\n");
    return 2;
  }
  const Link link{std::atof(argv[4]) / 8000, static_cast<int64_t>(std::atof(argv[5]) * 1e6), std::atof(argv[6]) / 100,
                  std::atof(argv[7]) * 1000};
  const auto seed = static_cast<uint64_t>(std::atoll(argv[8]));
  const int a = open_interface(argv[2]);
  const int b = open_interface(argv[3]);
  std::puts("ready");
  std::fflush(stdout);
  const auto there = std::make_unique<Direction>(a, b, link, seed);
  const auto back = std::make_unique<Direction>(b, a, link, seed + 1);
  std::thread other([&] { back->run(); });
  there->run();
}
