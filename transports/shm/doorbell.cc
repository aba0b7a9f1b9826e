#include "transports/shm/doorbell.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

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

// Else the kernel throws a byte "out of band" away unread, with the descriptors that came with it.
void keep_in_line(int socket) {
  const int on = 1;
  static_cast<void>(setsockopt(socket, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
}

Descriptor open_socket() {
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) keep_in_line(fd.get());
  return fd;
}

// The descriptor that came with a message; -1: none.
int passed_with(msghdr& message) {
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (part == nullptr || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS || part->cmsg_len < CMSG_LEN(sizeof(int)))
    return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
  return descriptor;
}

// Since Linux 6.16. Who connects to a listener that has it off can pass none from the first byte on.
void refuse_descriptors(int socket) {
  constexpr int pass_rights = 83;  // SO_PASSRIGHTS
  const int off = 0;
  static_cast<void>(setsockopt(socket, SOL_SOCKET, pass_rights, &off, sizeof off));
}

enum class Rang : uint8_t { nothing, bytes, descriptors, unknown };

// Forgets bytes that rang. Those that came with descriptors stay where they are: the kernel closes what it throws away, in the
// thread that reads or closes the socket. A look does not, and tells of them (MSG_CTRUNC).
Rang take_bells(int socket) {
  std::array<char, 256> bytes;
  iovec span{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &span;
  message.msg_iovlen = 1;
  const ssize_t n = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == ECONNRESET ? Rang::nothing : Rang::unknown;
  if (n == 0) return Rang::nothing;
  if ((message.msg_flags & MSG_CTRUNC) != 0) return Rang::descriptors;
  return recv(socket, bytes.data(), static_cast<size_t>(n), MSG_DONTWAIT) == n ? Rang::bytes : Rang::unknown;
}

constexpr int bells_taken_max = 4;  // a peer may ring for as long as we listen

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
  refuse_descriptors(fd.get());
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

Descriptor accept_at(int listener) {
  Descriptor fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) keep_in_line(fd.get());
  return fd;
}

// The words are looked at, with room for one descriptor, and taken once all is as it should be. Whatever else came stays in the
// socket, and whoever closes that knows how.
std::optional<Result<Segment>> take_segment(int socket, Closer& closer) {
  FirstWords words;
  iovec span{&words, sizeof words};
  alignas(cmsghdr) std::array<char, CMSG_LEN(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &span;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (n == 0 || (n < 0 && errno == ECONNRESET)) {
    return fail(ErrorKind::network, "the listener closed the connection");
  }
  if (n < 0) return fail(ErrorKind::network, std::generic_category().message(errno));
  Descriptor passed(passed_with(message));
  const bool alone = passed && (message.msg_flags & MSG_CTRUNC) == 0;
  const bool fits = n == static_cast<ssize_t>(sizeof words) && words.magic == magic && alone;
  if (fits && words.version == version && Segment::is_shared_memory(passed.get())) {
    Result<Segment> segment = Segment::adopt(std::move(passed), words.ring_bytes);
    if (segment && recv(socket, &words, sizeof words, MSG_DONTWAIT) != n)
      return fail(ErrorKind::network, std::generic_category().message(errno));
    return segment;
  }
  if (passed) closer.close(std::move(passed));
  if (fits && words.version != version)
    return fail(ErrorKind::network, fmt::format("the peer speaks version {} of shm, and this end {}", words.version, version));
  return fail(ErrorKind::network, "the peer does not speak shm");
}

void ring(int socket) {
  const char byte = 0;
  // A full socket has rung already, and one that is closed has nobody to wake.
  static_cast<void>(send(socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

bool silence(int socket) {
  Rang rang = Rang::bytes;
  for (int i = 0; i < bells_taken_max && rang == Rang::bytes; ++i) rang = take_bells(socket);
  return rang != Rang::descriptors;
}

// After a shutdown the kernel takes no more for this socket, so one that is empty stays so.
bool end(int socket) {
  static_cast<void>(shutdown(socket, SHUT_RDWR));
  Rang rang = Rang::bytes;
  for (int i = 0; i < bells_taken_max && rang == Rang::bytes; ++i) rang = take_bells(socket);
  return rang == Rang::nothing;
}

}  // namespace ccixfer::shm
