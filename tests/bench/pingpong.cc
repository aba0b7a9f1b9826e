// A bare TCP ping-pong, for `./do bench` to stand beside ccixfer's messages: one message there, one back, both ends waiting the
// same way. No framing, no loop, no checks of content: the least that any protocol over TCP can cost.
//   pingpong serve spin|poll              prints its port, serves one peer
//   pingpong ask PORT BYTES COUNT spin|poll   prints the median half round trip in ns, after a tenth more as warm-up
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void no_delay(int fd) {
  const int one = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) die("TCP_NODELAY");
}

// All of it, or false at the end of the stream.
bool receive(int fd, std::vector<char>& into, bool spin) {
  for (size_t at = 0; at < into.size();) {
    if (!spin) {
      pollfd waiting{fd, POLLIN, 0};
      if (poll(&waiting, 1, -1) < 0 && errno != EINTR) die("poll");
    }
    const ssize_t n = recv(fd, into.data() + at, into.size() - at, MSG_DONTWAIT);
    if (n == 0) return false;
    if (n > 0) at += static_cast<size_t>(n);
    if (n < 0 && errno != EAGAIN && errno != EINTR) die("recv");
  }
  return true;
}

void transmit(int fd, const std::vector<char>& from) {
  if (send(fd, from.data(), from.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(from.size())) die("send");
}

int serve(bool spin) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, 1) != 0) die("listen");
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) die("getsockname");
  std::printf("%u\n", ntohs(address.sin_port));
  std::fflush(stdout);
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) die("accept");
  no_delay(fd);
  uint32_t bytes = 0;
  if (recv(fd, &bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes) die("recv");
  std::vector<char> message(bytes);
  while (receive(fd, message, spin)) transmit(fd, message);
  return 0;
}

int ask(uint16_t port, uint32_t bytes, size_t count, bool spin) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) die("connect");
  no_delay(fd);
  if (send(fd, &bytes, sizeof bytes, 0) != sizeof bytes) die("send");
  std::vector<char> message(bytes, 'x');
  std::vector<std::chrono::nanoseconds> took;
  for (size_t i = 0; i < count + count / 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    transmit(fd, message);
    if (!receive(fd, message, spin)) return 1;
    if (i >= count / 10) took.push_back(std::chrono::steady_clock::now() - start);
  }
  std::sort(took.begin(), took.end());
  std::printf("%lld\n", static_cast<long long>(took[(took.size() - 1) / 2].count() / 2));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 3) return serve(std::string_view(argv[2]) == "spin");
  if (what == "ask" && argc == 6 && std::atoi(argv[3]) > 0 && std::atoi(argv[4]) > 0) {
    return ask(static_cast<uint16_t>(std::atoi(argv[2])), static_cast<uint32_t>(std::atoi(argv[3])),
               static_cast<size_t>(std::atoi(argv[4])), std::string_view(argv[5]) == "spin");
  }
  std::fprintf(stderr, "pingpong serve spin|poll\npingpong ask PORT BYTES COUNT spin|poll\n");
  return 1;
}
