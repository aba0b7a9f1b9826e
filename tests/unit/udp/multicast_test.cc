// Groups over sockets: of the loopback, and of two network namespaces that a child process makes, joined by a pair of virtual
// Ethernet interfaces.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cci/memory_table.h"
#include "core/host/clock.h"
#include "core/host/descriptor.h"
#include "core/host/entropy.h"
#include "tests/unit/connection/recorder.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/datagram/packets.h"
#include "transports/inet/uri.h"
#include "transports/udp/udp_net.h"

namespace ccixfer::udp {
namespace {

using ccixfer::testing::Buffer;
using ports::Attribute;
using ports::ConnectionId;

struct End {
  explicit End(const UdpNetOptions& options = {.listen_host = "127.0.0.1", .port = 0, .interface_name = {}})
      : transport({}, std::move(*UdpNet::create(options)), entropy, counters) {
    transport.bind(sink, memory);
  }
  explicit End(const std::string& host) : End(UdpNetOptions{.listen_host = host, .port = 0, .interface_name = {}}) {}

  [[nodiscard]] Result<ConnectionId> dial(const std::string& uri, Attribute attribute) {
    ports::DialRequest request;
    request.uri = uri;
    request.attribute = attribute;
    return transport.dial(request);
  }
  [[nodiscard]] Status send(ConnectionId id, const Buffer& message, uint64_t token) {
    const Bytes part(message);
    return transport.send(id, {&part, 1}, token);
  }
  host::SystemEntropy entropy;
  Counters counters;
  ccixfer::testing::Recorder sink;
  cci::MemoryTable memory{entropy, counters};
  datagram::DatagramTransport transport;
};

// Turns the ends, and waits on their handles as a loop does. False: nothing happened any more.
bool until(const std::vector<End*>& ends, const std::function<bool()>& done) {
  for (;;) {
    std::vector<pollfd> handles;
    for (End* end : ends) {
      end->transport.turn(host::SystemClock().now());
      end->transport.arm(never);
      handles.push_back({end->transport.os_handle(), POLLIN, 0});
    }
    if (done()) return true;
    if (::poll(handles.data(), handles.size(), 10'000) <= 0) return false;
  }
}

// A connection of a group that is up.
ConnectionId member(End& end, const std::string& uri, Attribute attribute) {
  const auto id = end.dial(uri, attribute);
  if (!id) FAIL(id.error().message);
  const size_t before = end.sink.connected.size();
  REQUIRE(until({&end}, [&] { return end.sink.connected.size() > before; }));
  REQUIRE(end.sink.connected.back().id == *id);
  REQUIRE(end.sink.connected.back().status == Status::success);
  return *id;
}

Buffer message(size_t size, uint8_t seed) {
  Buffer bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed + i * 7);
  return bytes;
}

// A socket by hand, of the loopback.
struct RawSocket {
  RawSocket() : fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const ip_mreqn by{{}, {htonl(INADDR_LOOPBACK)}, 0};
    REQUIRE(setsockopt(fd.get(), IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by) == 0);
    sockaddr_in place = address_of("127.0.0.1", 0);
    REQUIRE(bind(fd.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
    socklen_t size = sizeof place;
    REQUIRE(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&place), &size) == 0);
    port = ntohs(place.sin_port);
  }
  static sockaddr_in address_of(const std::string& host, uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
  }
  void send(const std::string& uri, Bytes bytes) const {
    const auto name = inet::parse_uri("udp", uri);
    REQUIRE(name);
    const sockaddr_in to = address_of(name->host, name->port);
    REQUIRE(sendto(fd.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) ==
            static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] size_t arrived() const {  // so far, and nobody else reads them
    size_t count = 0;
    std::array<std::byte, 2000> bytes;
    while (recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) >= 0) ++count;
    return count;
  }
  host::Descriptor fd;
  uint16_t port = 0;
};

// Nobody else on this host has it: the program's number is in the group, and the port was free a moment ago.
std::string group_of_ours(uint32_t n = 0) {
  const auto pid = static_cast<uint32_t>(getpid());
  return fmt::format("udp://239.{}.{}.{}:{}", 64 + n, pid >> 8 & 0xff, pid & 0xff, RawSocket().port);
}

Buffer packet(datagram::PacketKind kind, const Buffer& body, size_t pad_to = 0) {
  Buffer bytes;
  wire::Writer out(bytes);
  datagram::begin_packet(out, {kind, datagram::packet_version, 0, 5, 77, 0});
  out.bytes(body);
  if (bytes.size() + datagram::packet_check_bytes < pad_to) out.zeros(pad_to - datagram::packet_check_bytes - bytes.size());
  datagram::end_packet(out);
  return bytes;
}

Buffer hello() {
  datagram::Hello usual;
  usual.attempt = 1;
  usual.offer = {1408, 16, 8};
  usual.datagram_bytes = datagram::datagram_bytes_min;
  Buffer body;
  wire::Writer out(body);
  datagram::encode(out, usual);
  return packet(datagram::PacketKind::hello, body, datagram::hello_bytes_min);
}

}  // namespace

TEST_CASE("udp_multicast__one_sends__all_members_of_this_host_have_each_message_once") {
  End sender, a, b, stranger;
  const std::string uri = group_of_ours();
  const ConnectionId to_group = member(sender, uri, Attribute::multicast_send);
  member(a, uri, Attribute::multicast_receive);
  member(b, uri, Attribute::multicast_receive);
  member(b, group_of_ours(1), Attribute::multicast_receive);
  const std::vector<End*> all{&sender, &a, &b, &stranger};
  const size_t most = sender.transport.max_send_bytes();
  const std::vector<size_t> sizes{0, 1, 1000, 1420, most};
  for (size_t i = 0; i < sizes.size(); ++i) {
    REQUIRE(sender.send(to_group, message(sizes[i], static_cast<uint8_t>(i)), i) == Status::success);
    // One after the other: the order is not promised.
    REQUIRE(until(all, [&] { return a.sink.messages.size() > i && b.sink.messages.size() > i; }));
    CHECK(a.sink.messages.back() == message(sizes[i], static_cast<uint8_t>(i)));
    CHECK(b.sink.messages.back() == message(sizes[i], static_cast<uint8_t>(i)));
    CHECK(sender.sink.completions.size() == i + 1);
    CHECK(sender.sink.completions.back().status == Status::success);
  }
  CHECK(sender.send(to_group, message(most + 1, 0), 9) == Status::message_size);
  CHECK(a.sink.messages.size() == sizes.size());
  CHECK(b.sink.messages.size() == sizes.size());
  CHECK(stranger.sink.messages.empty());
  CHECK(sender.sink.messages.empty());
}

// A sender's datagrams arrive in the order in which they left, so what is sent last shows that all before it was dealt with.
TEST_CASE("udp_multicast__hellos_and_garbage_to_a_group__counted_and_never_answered") {
  End a;
  const std::string uri = group_of_ours();
  member(a, uri, Attribute::multicast_receive);
  const RawSocket raw;
  raw.send(uri, hello());
  raw.send(uri, packet(datagram::PacketKind::data, message(30, 1)));
  raw.send(uri, packet(datagram::PacketKind::handshake, message(30, 1)));
  raw.send(uri, packet(datagram::PacketKind::gone, {}));
  raw.send(uri, message(40, 1));
  raw.send(uri, {});  // nothing, and not counted
  Buffer cut = packet(datagram::PacketKind::group, message(50, 2));
  cut.pop_back();
  raw.send(uri, cut);
  raw.send(uri, packet(datagram::PacketKind::group, message(20'000, 2)));
  const Buffer good = packet(datagram::PacketKind::group, message(50, 3));
  for (int i = 0; i < 3; ++i) raw.send(uri, good);  // one message, said again
  RawSocket().send(uri, good);                      // the same of another sender
  REQUIRE(until({&a}, [&] { return a.sink.messages.size() == 2; }));
  CHECK(a.sink.messages[0] == message(50, 3));
  CHECK(a.counters.get(Counter::datagrams_rejected) == 7);
  CHECK(a.counters.get(Counter::datagrams_duplicate) == 2);
  CHECK(a.counters.get(Counter::bytes_out) == 0);
  CHECK(a.sink.requests.empty());
  CHECK(raw.arrived() == 0);
}

// The kernel lets datagrams of a group that anybody on the host has joined in at every socket of all addresses, unless told not to.
TEST_CASE("udp_multicast__a_listener_on_every_address_with_the_groups_port__takes_none_of_its_hellos") {
  for (const char* everywhere : {"0.0.0.0", "*"}) {
    CAPTURE(everywhere);
    End listener(everywhere);
    const uint16_t port = inet::parse_uri("udp", listener.transport.uri())->port;
    const std::string uri = group_of_ours();
    const std::string group = inet::parse_uri("udp", uri)->host;
    End other;  // joins the group, with another port
    member(other, uri, Attribute::multicast_receive);
    const RawSocket raw;
    raw.send(inet::format_uri("udp", group, port), hello());
    raw.send(inet::format_uri("udp", "127.0.0.1", port), hello());
    REQUIRE(until({&listener}, [&] { return listener.counters.get(Counter::bytes_out) > 0; }));
    CHECK(listener.counters.get(Counter::bytes_in) == hello().size());
    CHECK(raw.arrived() == 1);
  }
}

TEST_CASE("udp_multicast__a_packet_of_a_group_to_the_endpoints_own_address__rejected") {
  End a;
  const RawSocket raw;
  raw.send(a.transport.uri(), packet(datagram::PacketKind::group, message(50, 1)));
  raw.send(a.transport.uri(), hello());
  REQUIRE(until({&a}, [&] { return a.counters.get(Counter::bytes_out) > 0; }));
  CHECK(a.counters.get(Counter::datagrams_rejected) == 1);
  CHECK(a.sink.messages.empty());
}

TEST_CASE("udp_multicast__a_member_that_left__gets_nothing_more_and_may_come_back") {
  End sender, a, b;
  const std::string uri = group_of_ours();
  const ConnectionId to_group = member(sender, uri, Attribute::multicast_send);
  const ConnectionId first = member(a, uri, Attribute::multicast_receive);
  member(b, uri, Attribute::multicast_receive);
  a.transport.disconnect(first);
  for (uint8_t i = 0; i < 3; ++i) {
    REQUIRE(sender.send(to_group, message(10, i), i) == Status::success);
    REQUIRE(until({&sender, &a, &b}, [&] { return b.sink.messages.size() == i + 1u; }));
    CHECK(a.sink.messages.empty());
  }
  CHECK(a.transport.hops(first).empty());
  const ConnectionId again = member(a, uri, Attribute::multicast_receive);
  CHECK(again != first);
  CHECK(a.transport.hops(again)[0].node == uri);
  CHECK(a.transport.peer(again).address == inet::parse_uri("udp", uri)->host);
  REQUIRE(sender.send(to_group, message(10, 9), 9) == Status::success);
  REQUIRE(until({&sender, &a, &b}, [&] { return a.sink.messages.size() == 1; }));
  CHECK(a.sink.disconnected.empty());
  // What was sent before its sender left arrives.
  REQUIRE(sender.send(to_group, message(10, 8), 8) == Status::success);
  sender.transport.disconnect(to_group);
  CHECK(sender.send(to_group, message(10, 8), 10) == Status::not_found);
  REQUIRE(until({&sender, &a, &b}, [&] { return a.sink.messages.size() == 2 && sender.sink.completions.size() == 5; }));
}

TEST_CASE("udp_multicast__names_and_calls_that_cannot_be__refused_with_a_reason") {
  End a;
  const auto refusal = [&](const std::string& uri, Attribute attribute) {
    const auto id = a.dial(uri, attribute);
    REQUIRE_FALSE(id);
    return id.error();
  };
  for (const Attribute attribute : {Attribute::multicast_send, Attribute::multicast_receive}) {
    for (const char* uri : {"udp://127.0.0.1:7000", "udp://240.0.0.1:7000", "udp://223.255.255.255:7000", "udp://[fe80::1]:7000",
                            "udp://localhost:7000"}) {
      CAPTURE(uri);
      CHECK(refusal(uri, attribute).kind == ErrorKind::usage);
      CHECK(refusal(uri, attribute).message.find("not a group") != std::string::npos);
    }
    CHECK(refusal("udp://239.1.2.3", attribute).message.find("no port") != std::string::npos);
    CHECK(refusal("tcp://239.1.2.3:7000", attribute).kind == ErrorKind::usage);
    CHECK(refusal("udp://[ff15::1]:7000", attribute).kind == ErrorKind::network);
    CHECK(refusal("udp://[ff15::1]:7000", attribute).message.find("an address of IPv4 only") != std::string::npos);
  }
  // A group of one interface, and an end that has none of its own.
  End of_all("*");
  for (const char* uri : {"udp://[ff12::77]:7000", "udp://[ff02::77]:7000"}) {
    for (const Attribute attribute : {Attribute::multicast_send, Attribute::multicast_receive}) {
      const auto id = of_all.dial(uri, attribute);
      REQUIRE_FALSE(id);
      CHECK(id.error().kind == ErrorKind::usage);
      CHECK(id.error().message.find("a group of one interface") != std::string::npos);
    }
  }
  CHECK_FALSE(of_all.dial("udp://[ff12::77%lo]:7000", Attribute::multicast_send));
  // An end of every address has the port of the group.
  const std::string uri = group_of_ours();
  const auto port = inet::parse_uri("udp", uri)->port;
  End everywhere(UdpNetOptions{.listen_host = "0.0.0.0", .port = port, .interface_name = "lo"});
  const auto taken = everywhere.dial(uri, Attribute::multicast_receive);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().kind == ErrorKind::network);
  CHECK(taken.error().message.find("in use") != std::string::npos);
  // A peer is not dialled by a group's name.
  REQUIRE(a.dial(uri, Attribute::reliable_ordered));
  REQUIRE(until({&a}, [&] { return !a.sink.connected.empty(); }));
  CHECK(a.sink.connected[0].status == Status::unreachable);
  CHECK(a.sink.connected[0].reason.find("is a group and no peer") != std::string::npos);
}

TEST_CASE("udp_multicast__hops__one_unless_an_option_says_more") {
  for (const int hops : {0, 9}) {
    UdpNetOptions options{.listen_host = "127.0.0.1", .port = 0, .interface_name = {}};
    if (hops != 0) options.group_hops = hops;
    End sender(options);
    const std::string uri = group_of_ours();
    const auto name = inet::parse_uri("udp", uri);
    const host::Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const sockaddr_in place = RawSocket::address_of(name->host, name->port);
    REQUIRE(bind(fd.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
    const ip_mreqn joined{place.sin_addr, {htonl(INADDR_LOOPBACK)}, 0};
    const int on = 1;
    REQUIRE(setsockopt(fd.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &joined, sizeof joined) == 0);
    REQUIRE(setsockopt(fd.get(), IPPROTO_IP, IP_RECVTTL, &on, sizeof on) == 0);
    const ConnectionId to_group = member(sender, uri, Attribute::multicast_send);
    REQUIRE(sender.send(to_group, message(10, 1), 1) == Status::success);
    REQUIRE(until({&sender}, [&] { return !sender.sink.completions.empty(); }));
    std::array<std::byte, 100> bytes;
    alignas(cmsghdr) std::array<std::byte, 100> control;
    iovec part{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    REQUIRE(recvmsg(fd.get(), &header, 0) == 46);
    const cmsghdr* told = CMSG_FIRSTHDR(&header);
    REQUIRE(told != nullptr);
    REQUIRE(told->cmsg_type == IP_TTL);
    int ttl = 0;
    std::memcpy(&ttl, CMSG_DATA(told), sizeof ttl);
    CHECK(ttl == (hops == 0 ? 1 : hops));
  }
}

namespace {

// What a child ends with.
enum Ending : int {
  fine = 0,
  no_namespace = 10,
  no_interfaces = 11,
  no_member = 12,
  not_delivered = 13,
  wrong_limit = 14,
  heard_elsewhere = 15
};

bool shell(const std::string& commands) { return std::system(("set -e\n" + commands).c_str()) == 0; }

// REQUIRE is of the parent only.
std::optional<ConnectionId> join_in_child(End& end, const std::string& uri, Attribute attribute) {
  const auto id = end.dial(uri, attribute);
  if (!id) fmt::print(stderr, "{}\n", id.error().message);
  if (!id || !until({&end}, [&] { return !end.sink.connected.empty(); })) return std::nullopt;
  return *id;
}

// `hosts`: of the sender, and of the receivers in the other namespace.
Ending group_over(int space_of_a, int space_of_b, const std::string& sender_host, const std::vector<std::string>& hosts,
                  const std::string& uri, size_t longest) {
  if (setns(space_of_a, CLONE_NEWNET) != 0) return no_namespace;
  End sender(sender_host);
  const auto to_group = join_in_child(sender, uri, Attribute::multicast_send);
  if (setns(space_of_b, CLONE_NEWNET) != 0) return no_namespace;
  std::vector<std::unique_ptr<End>> members;
  std::vector<End*> all{&sender};
  for (const std::string& host : hosts) {
    members.push_back(std::make_unique<End>(host));
    all.push_back(members.back().get());
    if (!join_in_child(*members.back(), uri, Attribute::multicast_receive)) return no_member;
  }
  if (!to_group) return no_member;
  if (sender.send(*to_group, message(longest + 1, 0), 1) != Status::message_size) return wrong_limit;
  // The interface says in its own time that it has joined, and messages before that are lost.
  uint8_t sent = 0;
  const auto done = [&] { return std::ranges::all_of(members, [](const auto& each) { return !each->sink.messages.empty(); }); };
  while (!done()) {
    if (++sent == 100 || sender.send(*to_group, message(longest, sent), sent) != Status::success) return not_delivered;
    if (!until(all, [&] { return sender.sink.completions.size() == sent; })) return not_delivered;
    std::vector<pollfd> handles;
    for (const auto& each : members) handles.push_back({each->transport.os_handle(), POLLIN, 0});
    static_cast<void>(::poll(handles.data(), handles.size(), 100));
  }
  for (const auto& each : members) {
    if (each->sink.messages.front().size() != longest) return wrong_limit;
  }
  return fine;
}

// A member on one interface hears nothing of what comes to its group on another one, where somebody else has joined it.
Ending apart(int space_of_a, int space_of_b, const std::string& sender_host, const std::string& there, const std::string& elsewhere,
             const std::string& uri, size_t longest) {
  if (setns(space_of_b, CLONE_NEWNET) != 0) return no_namespace;
  End other(elsewhere);
  if (!join_in_child(other, uri, Attribute::multicast_receive)) return no_member;
  const Ending ending = group_over(space_of_a, space_of_b, sender_host, {there}, uri, longest);
  if (ending != fine) return ending;
  for (int i = 0; i < 100; ++i) other.transport.turn(host::SystemClock().now());
  return other.sink.messages.empty() ? fine : heard_elsewhere;
}

int run_in_namespaces() {
  if (unshare(CLONE_NEWNET) != 0) return no_namespace;
  const int space_of_a = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const pid_t keeper = fork();
  if (keeper == 0) {
    pause();
    _exit(0);
  }
  const bool made = space_of_a >= 0 && keeper > 0 && unshare(CLONE_NEWNET) == 0 &&
                    shell(fmt::format("ip link set lo up\nip link add b0 type veth peer name a0 netns {}\nip link set b0 up\n"
                                      "ip addr add 10.77.0.2/24 dev b0\nip addr add fd77::2/64 dev b0 nodad\n"
                                      "ip route add 224.0.0.0/4 dev b0\n"
                                      "ip link add b1 type veth peer name a1 netns {}\nip link set b1 up\n"
                                      "ip addr add 10.78.0.2/24 dev b1\nip addr add fd78::2/64 dev b1 nodad\n",
                                      keeper, keeper));
  if (keeper > 0) {
    kill(keeper, SIGKILL);
    waitpid(keeper, nullptr, 0);
  }
  const int space_of_b = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (!made || space_of_b < 0 || setns(space_of_a, CLONE_NEWNET) != 0 ||
      !shell("ip link set lo up\nip link set a0 up\nip addr add 10.77.0.1/24 dev a0\nip addr add fd77::1/64 dev a0 nodad\n"
             "ip route add 224.0.0.0/4 dev a0\n"
             "ip link set a1 up\nip addr add 10.78.0.1/24 dev a1\nip addr add fd78::1/64 dev a1 nodad\n"))
    return no_interfaces;
  const std::string v4 = "udp://239.77.1.2:7000";
  const std::string v6 = "udp://[ff15::77]:7000";
  // Two of one address, and one of every address; then a sender of every address, of both families.
  Ending ending = group_over(space_of_a, space_of_b, "10.77.0.1", {"10.77.0.2", "10.77.0.2", "0.0.0.0"}, v4, 1420);
  if (ending == fine) ending = group_over(space_of_a, space_of_b, "*", {"10.77.0.2", "*"}, v4, 1420);
  if (ending == fine) ending = group_over(space_of_a, space_of_b, "fd77::1", {"fd77::2", "fd77::2", "*"}, v6, 1416);
  if (ending == fine) ending = group_over(space_of_a, space_of_b, "fd77::1", {"fd77::2"}, "udp://[ff12::77]:7000", 1416);
  if (ending == fine) ending = apart(space_of_a, space_of_b, "10.78.0.1", "10.78.0.2", "10.77.0.2", v4, 1420);
  if (ending == fine) ending = apart(space_of_a, space_of_b, "fd78::1", "fd78::2", "fd77::2", v6, 1416);
  if (ending != fine) return ending;
  if (setns(space_of_a, CLONE_NEWNET) != 0 || !shell("ip link set a0 mtu 1300")) return no_interfaces;
  ending = group_over(space_of_a, space_of_b, "10.77.0.1", {"10.77.0.2"}, v4, 1300 - 28 - 36);
  if (ending == fine) ending = group_over(space_of_a, space_of_b, "*", {"10.77.0.2"}, v4, 1300 - 28 - 36);
  return ending;
}

}  // namespace

TEST_CASE("udp_multicast__two_hosts__ipv4_and_ipv6_of_one_address_and_of_every_address") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(run_in_namespaces());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  const int ending = WEXITSTATUS(status);
  if (ending == no_namespace) {
    WARN("no network namespace can be made: run this as root");
    return;
  }
  CHECK(ending == fine);
}

}  // namespace ccixfer::udp
