#include "transports/shm/doorbell.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "core/base/units.h"

namespace ccixfer::shm {

using host::Descriptor;

namespace {

constexpr std::string_view scheme = "shm://";
constexpr std::string_view prefix = "ccixfer/shm/";

struct FirstWords {
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t ring_bytes = 0;
};
static_assert(sizeof(FirstWords) == 16);
constexpr std::array<char, 8> magic{'c', 'c', 'i', 'x', 's', 'h', 'm', '\n'};
constexpr uint32_t version = 1;

struct Address {
  sockaddr_un socket{};
  socklen_t size = 0;
};

Address address_of(std::string_view name) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  static_assert(1 + prefix.size() + name_bytes_max <= sizeof address.socket.sun_path);
  char* at = address.socket.sun_path + 1;
  at = std::copy(prefix.begin(), prefix.end(), at);
  at = std::copy(name.begin(), name.end(), at);
  address.size = static_cast<socklen_t>(at - reinterpret_cast<char*>(&address.socket));
  return address;
}

Descriptor open_socket() { return Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

// Closing what a stranger passed may take as long as the stranger likes (a file of a file system of its own), so a thread does it.
// If so many are stuck already, it stays open.
void close_aside(int descriptor) {
  constexpr int closing_max = 8;
  static std::atomic<int> closing{0};
  if (closing.fetch_add(1) >= closing_max) {
    closing.fetch_sub(1);
    return;
  }
  try {
    std::thread([descriptor] {
      close(descriptor);
      closing.fetch_sub(1);
    }).detach();
  } catch (const std::system_error&) {
    closing.fetch_sub(1);  // no thread is left: it stays open
  }
}

// What came with a message.
struct Passed {
  static constexpr size_t max = 4;
  std::array<int, max> descriptors{};
  size_t count = 0;
};

Passed passed_with(msghdr& message) {
  Passed passed;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count && passed.count < Passed::max; ++i)
      std::memcpy(&passed.descriptors[passed.count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
  }
  return passed;
}

}  // namespace

bool is_name(std::string_view name) {
  const auto may_be = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= name_bytes_max && std::all_of(name.begin(), name.end(), may_be);
}

Result<std::string> parse_uri(std::string_view uri) {
  if (!uri.starts_with(scheme) || !is_name(uri.substr(scheme.size()))) {
    return fail(ErrorKind::usage,
                fmt::format("not an address: {}: write shm://NAME, of letters, digits, '.', '_' and '-'", printable(uri)));
  }
  return std::string(uri.substr(scheme.size()));
}

std::string format_uri(std::string_view name) { return fmt::format("{}{}", scheme, name); }

Result<Descriptor> listen_at(const std::string& name, int backlog) {
  const auto cannot = [&](int error) {
    const std::string why = error == EADDRINUSE ? "the name is in use" : std::generic_category().message(error);
    return fail(ErrorKind::network, fmt::format("cannot listen on {}: {}", format_uri(name), why));
  };
  Descriptor fd = open_socket();
  if (!fd) return cannot(errno);
  const Address address = address_of(name);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.socket), address.size) != 0) return cannot(errno);
  if (listen(fd.get(), backlog) != 0) return cannot(errno);
  return fd;
}

Descriptor dial_name(const std::string& name) {
  Descriptor fd = open_socket();
  const Address address = address_of(name);
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.socket), address.size) == 0) return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

std::optional<PeerProcess> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer) return std::nullopt;
  return PeerProcess{peer.uid, peer.pid};
}

bool pass_segment(int socket, const Segment& segment) {
  FirstWords words{magic, version, static_cast<uint32_t>(segment.ring(0).capacity_bytes)};
  iovec span{&words, sizeof words};
  const int descriptor = segment.descriptor();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
  msghdr message{};
  message.msg_iov = &span;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof words);
}

std::optional<Result<Segment>> take_segment(int socket) {
  FirstWords words;
  iovec span{&words, sizeof words};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(Passed::max * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &span;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (n == 0 || (n < 0 && errno == ECONNRESET)) {
    return fail(ErrorKind::network, "the listener closed the connection");
  }
  if (n < 0) return fail(ErrorKind::network, std::generic_category().message(errno));
  const Passed passed = passed_with(message);
  const bool fits = n == static_cast<ssize_t>(sizeof words) && words.magic == magic && passed.count == 1;
  if (fits && words.version == version && Segment::is_shared_memory(passed.descriptors[0]))
    return Segment::adopt(Descriptor(passed.descriptors[0]), words.ring_bytes);
  for (size_t i = 0; i < passed.count; ++i) close_aside(passed.descriptors[i]);
  if (fits && words.version != version)
    return fail(ErrorKind::network, fmt::format("the peer speaks version {} of shm, and this end {}", words.version, version));
  return fail(ErrorKind::network, "the peer does not speak shm");
}

void ring(int socket) {
  const char byte = 0;
  // A full socket has rung already, and one that is closed has nobody to wake.
  static_cast<void>(send(socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void silence(int socket) {
  constexpr int reads_max = 4;  // a peer may ring for as long as we listen
  std::array<char, 256> bytes;
  for (int i = 0; i < reads_max && recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

}  // namespace ccixfer::shm
