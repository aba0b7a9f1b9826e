// EthNet over an Ethernet of this test's own: what is sent arrives as it was, what is refused, interfaces that go.
#include "transports/eth/eth_net.h"

#include <fmt/core.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "core/host/clock.h"
#include "core/host/descriptor.h"
#include "tests/unit/eth/own_lan.h"
#include "transports/eth/frame.h"

namespace ccixfer::eth {
namespace {

using datagram::Address;
using datagram::Datagram;
using datagram::Sent;
using testing::lan_mac;
using testing::lan_port;
using testing::lan_shell;
using Text = std::vector<std::byte>;

struct Events final : datagram::DatagramEvents {
  struct Answer {
    uint64_t query;
    Status status;
    Address address;
    std::string reason;
  };
  void received(std::span<const Datagram> batch) override {
    largest_batch = std::max(largest_batch, batch.size());
    for (const Datagram& datagram : batch) came.emplace_back(datagram.peer, Text(datagram.bytes.begin(), datagram.bytes.end()));
  }
  void resolved(uint64_t query, Status status, const Address& address, std::string_view reason) override {
    answers.push_back({query, status, address, std::string(reason)});
  }
  void writable() override { ++rooms; }
  void device_failed(std::string_view reason) override { failures.emplace_back(reason); }
  std::vector<std::pair<Address, Text>> came;
  std::vector<Answer> answers;
  std::vector<std::string> failures;
  size_t largest_batch = 0;
  int rooms = 0;
};

EthNetOptions on_port(int number, uint16_t id = 0) {
  EthNetOptions options;
  options.interface_name = lan_port(number);
  options.id = id;
  return options;
}

struct Host {
  explicit Host(const EthNetOptions& options) {
    auto made = EthNet::create(options, counters);
    if (!made) FAIL(made.error().message);
    net = std::move(*made);
  }
  // Waits on the handle, as a loop does: false when it was not readable in time.
  bool turn(int timeout_ms = 10'000) {
    net->set_deadline(never);
    pollfd handle{net->os_handle(), POLLIN, 0};
    const bool ready = ::poll(&handle, 1, timeout_ms) == 1;
    net->poll(host::SystemClock().now(), events);
    return ready;
  }
  template <typename Done>
  void until(const Done& done) {
    while (!done()) REQUIRE(turn());
  }
  [[nodiscard]] Address resolve(const std::string& uri) {
    const auto query = net->resolve(uri);
    REQUIRE(query);
    until([&] { return !events.answers.empty(); });
    const Events::Answer answer = events.answers.back();
    events.answers.clear();
    CHECK(answer.query == *query);
    REQUIRE(answer.status == Status::success);
    return answer.address;
  }
  Counters counters;
  std::unique_ptr<EthNet> net;
  Events events;
};

Text text(size_t size, uint32_t seed) {
  Text bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i * 7 + (i >> 8));
  return bytes;
}

void send_all(Host& host, const std::vector<Datagram>& datagrams) {
  std::span<const Datagram> rest = datagrams;
  while (!rest.empty()) {
    const Sent sent = host.net->send(rest.first(std::min(rest.size(), datagram::batch_datagrams_max)));
    REQUIRE(sent.stop != Sent::Stop::failed);
    rest = rest.subspan(sent.taken);
    if (sent.stop == Sent::Stop::again) REQUIRE(host.turn());
  }
}

std::string complaint(const EthNetOptions& options, ErrorKind kind) {
  Counters counters;
  const auto made = EthNet::create(options, counters);
  REQUIRE_FALSE(made);
  CHECK(made.error().kind == kind);
  return made.error().message;
}

// Somebody on the network who sends any bytes.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    REQUIRE(socket_);
    sockaddr_ll place{};
    place.sll_family = AF_PACKET;
    place.sll_ifindex = static_cast<int>(if_nametoindex(lan_port(port).c_str()));
    REQUIRE(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
  }
  void send(Bytes frame) const {
    REQUIRE(::send(socket_.get(), frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size()));
  }

 private:
  host::Descriptor socket_;
};

Text frame_of(const Name& to, const Name& from, size_t size) {
  const Header header = encode_header(to, from, size);
  Text frame(header.begin(), header.end());
  frame.resize(frame.size() + size, std::byte{0x55});
  return frame;
}

// What `in_child` returns, from a child process, as its exit code.
int in_child(const std::function<int()>& run) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(run());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("eth_net__batches__arrive_whole_and_in_order_and_the_answer_goes_back") {
  EthNetOptions dials = on_port(0);
  dials.listen = false;
  Host a(dials);
  Host b(on_port(1, 7));
  CHECK(b.net->uri() == "eth://" + lan_mac(1) + ":7");
  CHECK(a.net->uri().empty());
  CHECK_FALSE(a.net->takes_strangers());
  CHECK(a.net->name().id >= 32768);
  CHECK(a.net->datagram_bytes_max() == 1492);
  const Address peer = a.resolve(b.net->uri());
  std::vector<Text> texts;
  std::vector<Datagram> datagrams;
  for (uint32_t i = 0; i < 300; ++i) texts.push_back(text(i % 9 == 8 ? 1 + i % 40 : 1492, i));
  for (const Text& one : texts) datagrams.push_back({peer, one});
  send_all(a, datagrams);
  b.until([&] { return b.events.came.size() == texts.size(); });
  for (size_t i = 0; i < texts.size(); ++i) CHECK(b.events.came[i].second == texts[i]);
  CHECK(b.events.largest_batch <= datagram::batch_datagrams_max);
  CHECK(b.net->host_of(b.events.came[0].first) == lan_mac(0));
  CHECK(a.net->uri_of(peer) == b.net->uri());
  const Text answer = text(10, 5);
  const Datagram back{b.events.came[0].first, answer};
  CHECK(b.net->send({&back, 1}).taken == 1);
  a.until([&] { return !a.events.came.empty(); });
  CHECK(a.events.came[0].first == peer);
  CHECK(a.events.came[0].second == answer);
  CHECK(a.counters.get(Counter::datagrams_rejected) == 0);
  CHECK(b.counters.get(Counter::datagrams_rejected) == 0);
}

TEST_CASE("eth_net__ids_of_one_interface__each_gets_its_own_frames_only") {
  Host a(on_port(0));
  Host one(on_port(1, 1));
  Host two(on_port(1, 256));  // the same two bytes, swapped
  const Address to_one = a.resolve(one.net->uri());
  const Address to_two = a.resolve(two.net->uri());
  const Text first = text(100, 1);
  const Text second = text(200, 2);
  send_all(a, {{to_one, first}, {to_two, second}, {to_one, first}});
  one.until([&] { return one.events.came.size() == 2; });
  two.until([&] { return two.events.came.size() == 1; });
  while (one.turn(0)) {
  }
  CHECK(one.events.came.size() == 2);
  CHECK(two.events.came[0].second == second);
}

TEST_CASE("eth_net__an_id__belongs_to_one_process_until_that_ends_however_it_ends") {
  auto first = std::make_unique<Host>(on_port(1, 7));
  CHECK(complaint(on_port(1, 7), ErrorKind::network) == fmt::format("cannot listen on eth://{}:7: another process has the id 7 on "
                                                                    "port1: give another id",
                                                                    lan_mac(1)));
  Host other_interface(on_port(2, 7));
  Host other_id(on_port(1, 8));
  first.reset();
  Host again(on_port(1, 7));
  // A process that is killed leaves nothing behind.
  const int told = in_child([] {
    Counters counters;
    auto made = EthNet::create(on_port(3, 7), counters);
    if (!made) return 1;
    raise(SIGKILL);
    return 2;
  });
  CHECK(told == -1);
  Host after_death(on_port(3, 7));
}

TEST_CASE("eth_net__frames_that_are_not_as_they_must_be__are_counted_and_harm_nothing") {
  Host b(on_port(1, 7));
  const Stranger stranger(0);
  const Name to = b.net->name();
  const Name from{*parse_mac(lan_mac(0)), 9};
  const auto spoiled = [&](size_t at, uint8_t value) {
    Text frame = frame_of(to, from, 100);
    frame[at] = std::byte{value};
    return frame;
  };
  std::vector<Text> bad{spoiled(14, 2), spoiled(15, 1), spoiled(20, 101), spoiled(20, 99)};
  Text cut = frame_of(to, from, 100);
  cut.resize(20);
  bad.push_back(cut);
  // A tag of VLAN 5, which the kernel takes out before a socket sees the frame.
  Text tagged = frame_of(to, from, 100);
  tagged.insert(tagged.begin() + 12, {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{5}});
  bad.push_back(tagged);
  for (const Text& frame : bad) stranger.send(frame);
  stranger.send(frame_of(to, from, 100));
  b.until([&] { return !b.events.came.empty(); });
  CHECK(b.events.came.size() == 1);
  CHECK(b.counters.get(Counter::datagrams_rejected) == bad.size());
  // What is for others never comes into the ring.
  stranger.send(spoiled(16, 8));
  stranger.send(spoiled(13, 0xB6));
  Text to_all = frame_of(to, from, 100);
  std::fill_n(to_all.begin(), 6, std::byte{0xFF});
  stranger.send(to_all);
  stranger.send(frame_of(to, from, 101));
  b.until([&] { return b.events.came.size() == 2; });
  CHECK(b.counters.get(Counter::datagrams_rejected) == bad.size());
}

// Frames that this host sends itself are no peer's, whatever they say.
TEST_CASE("eth_net__a_frame_of_its_own_interface__is_not_taken") {
  Host b(on_port(1, 7));
  const Stranger on_the_same_interface(1);
  const Stranger elsewhere(0);
  const Name from{*parse_mac(lan_mac(0)), 9};
  on_the_same_interface.send(frame_of(b.net->name(), from, 100));
  elsewhere.send(frame_of(b.net->name(), from, 101));
  b.until([&] { return !b.events.came.empty(); });
  CHECK(b.events.came.size() == 1);
  CHECK(b.events.came[0].second.size() == 101);
  CHECK(b.counters.get(Counter::datagrams_rejected) == 0);
}

TEST_CASE("eth_net__two_ends_of_one_interface__are_told_that_they_cannot_meet") {
  Host a(on_port(1));
  Host b(on_port(1, 7));
  REQUIRE(a.net->resolve(b.net->uri()));
  a.until([&] { return !a.events.answers.empty(); });
  CHECK(a.events.answers[0].status == Status::unreachable);
  CHECK(a.events.answers[0].reason ==
        fmt::format(
            "eth://{}:7: that is this end's own interface, port1, and Ethernet brings no frame back to it: use tcp on one host",
            lan_mac(1)));
  const auto malformed = a.net->resolve("eth://h:7");
  REQUIRE_FALSE(malformed);
  CHECK(malformed.error().kind == ErrorKind::usage);
}

TEST_CASE("eth_net__more_than_a_poll_takes__comes_with_the_next_ones") {
  Host a(on_port(0));
  Host b(on_port(1, 7));
  const Address peer = a.resolve(b.net->uri());
  const Text fine = text(200, 1);
  constexpr size_t count = 2 * frames_per_poll_max + 10;
  send_all(a, std::vector<Datagram>(count, Datagram{peer, fine}));
  b.turn();
  CHECK(b.events.came.size() <= frames_per_poll_max);
  b.until([&] { return b.events.came.size() == count; });
}

TEST_CASE("eth_net__a_ring_that_is_full__drops_are_counted") {
  Host a(on_port(0));
  EthNetOptions small = on_port(1, 7);
  small.ring_bytes = 1;  // one block
  Host b(small);
  const Address peer = a.resolve(b.net->uri());
  const Text fine = text(1000, 1);
  constexpr size_t count = 200;
  send_all(a, std::vector<Datagram>(count, Datagram{peer, fine}));
  b.until([&] { return !b.events.came.empty(); });
  const size_t before = b.events.came.size();
  CHECK(before < count);
  send_all(a, {{peer, fine}});  // the first that comes after them tells of them
  b.until([&] { return b.events.came.size() == before + 1; });
  CHECK(b.counters.get(Counter::datagrams_dropped) == count - before);
}

TEST_CASE("eth_net__handle__readable_for_what_came_and_at_the_deadline_and_else_not") {
  Host a(on_port(0));
  Host b(on_port(1, 7));
  const Address peer = a.resolve(b.net->uri());
  while (b.turn(0)) {
  }
  CHECK_FALSE(b.turn(0));
  const Text fine = text(100, 1);
  send_all(a, {{peer, fine}});
  CHECK(b.turn());
  CHECK(b.events.came.size() == 1);
  while (b.turn(0)) {
  }
  b.net->set_deadline(after(host::SystemClock().now(), std::chrono::milliseconds(5)));
  pollfd handle{b.net->os_handle(), POLLIN, 0};
  CHECK(::poll(&handle, 1, 10'000) == 1);
}

TEST_CASE("eth_net__send_last__leaves_at_once") {
  Host a(on_port(0));
  Host b(on_port(1, 7));
  const Address peer = a.resolve(b.net->uri());
  const Text fine = text(200, 1);
  a.net->send_last(std::vector<Datagram>(64, Datagram{peer, fine}));
  a.net.reset();
  b.until([&] { return b.events.came.size() == 64; });
}

TEST_CASE("eth_net__an_interface_that_goes_down_or_away__is_a_device_that_failed") {
  const bool deleted = GENERATE(false, true);
  CAPTURE(deleted);
  static_cast<void>(lan_port(0));
  lan_shell("ip link add near type veth peer name far\nip link set near up\nip link set far up\n");
  EthNetOptions options;
  options.interface_name = "near";
  Host a(options);
  options.interface_name = "far";
  Host b(options);
  const Address peer = a.resolve(b.net->uri());
  const Text fine = text(100, 1);
  send_all(a, {{peer, fine}});
  b.until([&] { return b.events.came.size() == 1; });
  lan_shell(deleted ? "ip link del near\n" : "ip link set near down\n");
  a.until([&] { return !a.events.failures.empty(); });
  REQUIRE(a.events.failures.size() == 1);
  CHECK(a.events.failures[0] == fmt::format("{}: the interface near is down or gone: Network is down", a.net->uri()));
  const Datagram lost{peer, fine};
  CHECK(a.net->send({&lost, 1}).stop == Sent::Stop::failed);
  if (deleted) return;
  // Down and up again: it works, and another fall is told again.
  lan_shell("ip link set near up\n");
  send_all(a, {{peer, fine}});
  b.until([&] { return b.events.came.size() == 2; });
  lan_shell("ip link set near down\n");
  a.until([&] { return a.events.failures.size() == 2; });
  lan_shell("ip link del near\n");
}

TEST_CASE("eth_net__interfaces_that_cannot_be__refused_with_what_to_do") {
  static_cast<void>(lan_port(0));
  EthNetOptions options;
  const auto named = [&](const char* name) {
    options.interface_name = name;
    return options;
  };
  CHECK(complaint(named("none0"), ErrorKind::usage) == "no interface of this host has the name none0: see ccixfer devices");
  CHECK(complaint(named("lo"), ErrorKind::usage) == "lo is no Ethernet interface: name one that is, or use tcp");
  lan_shell(
      "ip link add short type veth peer name shorter\nip link set short mtu 1479\nip link set short up\nip link set shorter "
      "down\n");
  CHECK(complaint(named("short"), ErrorKind::usage) ==
        "the MTU of short is 1479 bytes, and eth needs 1480: raise it (ip link set short mtu 1500), or use tcp");
  CHECK(complaint(named("shorter"), ErrorKind::network) ==
        "the interface shorter is down: bring it up first (ip link set shorter up)");
  lan_shell("ip link set short mtu 1480\n");
  CHECK(Host(named("short")).net->datagram_bytes_max() == 1472);
  lan_shell("ip link set short mtu 9000\n");
  CHECK(Host(named("short")).net->datagram_bytes_max() == 8972);
  lan_shell("ip link del short\n");
  options.mac = parse_mac("02:00:00:00:00:99");
  CHECK(complaint(named("port1"), ErrorKind::usage) == "port1 has the MAC address " + lan_mac(1) + ", not 02:00:00:00:00:99");
  options.interface_name.clear();
  CHECK(complaint(options, ErrorKind::usage) ==
        "no interface of this host has the MAC address 02:00:00:00:00:99: see ccixfer devices");
  options.mac = parse_mac(lan_mac(1));
  options.id = 7;
  CHECK(Host(options).net->uri() == "eth://" + lan_mac(1) + ":7");
  // As the interface of a VLAN has the MAC address of the one that it stands on.
  lan_shell("ip link add twin address " + lan_mac(1) + " type veth peer name other\n");
  CHECK(complaint(options, ErrorKind::usage).find("both have the MAC address " + lan_mac(1) + ": name one of them") !=
        std::string::npos);
  lan_shell("ip link del twin\n");
}

TEST_CASE("eth_net__without_the_capability__says_what_is_missing_and_what_to_do") {
  const EthNetOptions options = on_port(1);
  const int told = in_child([&] {
    // Neither root nor anybody else: all capabilities go with the account.
    if (prctl(PR_SET_KEEPCAPS, 0) != 0 || setresuid(65534, 65534, 65534) != 0) {
      // In a user namespace of one account there is nobody else to become: a new one inside it has no right to this network.
      if (unshare(CLONE_NEWUSER) != 0) return 3;
    }
    Counters counters;
    const auto made = EthNet::create(options, counters);
    if (made) return 1;
    return made.error().kind == ErrorKind::usage &&
                   made.error().message ==
                       "no right to raw Ethernet on port1: eth needs the capability CAP_NET_RAW when it starts: run it "
                       "as root, give the program the capability (setcap cap_net_raw+ep FILE), or use udp or tcp"
               ? 0
               : 2;
  });
  CHECK(told == 0);
}

}  // namespace ccixfer::eth
