// UdpNet over sockets of the loopback: what is sent arrives as it was, names, full sockets, deadlines.
#include "transports/udp/udp_net.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "core/cci/memory_table.h"
#include "core/host/clock.h"
#include "core/host/descriptor.h"
#include "core/host/entropy.h"
#include "tests/unit/connection/recorder.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/inet/uri.h"

namespace ccixfer::udp {
namespace {

using datagram::Address;
using datagram::Datagram;
using datagram::Sent;
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
  std::vector<std::pair<Address, Text>> came;
  std::vector<Answer> answers;
  size_t largest_batch = 0;
  int rooms = 0;
};

struct Host {
  explicit Host(UdpNetOptions options = {.listen_host = "127.0.0.1", .port = 0, .interface_name = {}}) {
    auto made = UdpNet::create(options);
    REQUIRE(made);
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
  Address address_of(const Host& other) {
    const auto query = net->resolve(other.net->uri());
    REQUIRE(query);
    until([&] { return !events.answers.empty(); });
    const Events::Answer answer = events.answers.back();
    events.answers.clear();
    CHECK(answer.query == *query);
    CHECK(answer.status == Status::success);
    return answer.address;
  }
  std::unique_ptr<UdpNet> net;
  Events events;
};

Text text(size_t size, uint32_t seed) {
  Text bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i * 7 + (i >> 8));
  return bytes;
}

// All of them, waiting for room where there is none.
void send_all(Host& host, const std::vector<Datagram>& datagrams) {
  std::span<const Datagram> rest = datagrams;
  while (!rest.empty()) {
    const Sent sent = host.net->send(rest.first(std::min(rest.size(), datagram::batch_datagrams_max)));
    REQUIRE(sent.stop != Sent::Stop::failed);
    rest = rest.subspan(sent.taken);
    if (sent.stop == Sent::Stop::again) REQUIRE(host.turn());
  }
}

TEST_CASE("udp_net__batches_with_and_without_joining__arrive_whole_and_in_order") {
  for (const bool joins : {true, false}) {
    for (const char* to : {"127.0.0.1", "::1", "*"}) {
      CAPTURE(joins, to);
      Host a({.listen_host = "0.0.0.0", .port = 0, .interface_name = {}, .listen = false, .joins = joins});
      Host b({.listen_host = to, .port = 0, .interface_name = {}, .listen = true, .joins = joins});
      const auto port = inet::parse_uri("udp", b.net->uri())->port;
      const auto query = a.net->resolve(inet::format_uri("udp", std::string(to) == "*" ? "127.0.0.1" : to, port));
      REQUIRE(query);
      a.until([&] { return !a.events.answers.empty(); });
      REQUIRE(a.events.answers[0].status == Status::success);
      const Address peer = a.events.answers[0].address;
      std::vector<Text> texts;
      std::vector<Datagram> datagrams;
      for (uint32_t i = 0; i < 100; ++i) texts.push_back(text(i % 9 == 8 ? 700 : 1472, i));
      for (const Text& one : texts) datagrams.push_back({peer, one});
      send_all(a, datagrams);
      b.until([&] { return b.events.came.size() == texts.size(); });
      for (size_t i = 0; i < texts.size(); ++i) CHECK(b.events.came[i].second == texts[i]);
      CHECK(b.events.largest_batch <= datagram::batch_datagrams_max);
      // The answer goes where it came from.
      const Text answer = text(10, 5);
      const Datagram back{b.events.came[0].first, answer};
      CHECK(b.net->send({&back, 1}).taken == 1);
      a.until([&] { return !a.events.came.empty(); });
      CHECK(a.events.came[0].first == peer);
      CHECK(a.events.came[0].second == answer);
      CHECK(b.net->host_of(b.events.came[0].first) == (std::string(to) == "::1" ? "::1" : "127.0.0.1"));
      CHECK(a.net->uri_of(peer) == inet::format_uri("udp", std::string(to) == "*" ? "127.0.0.1" : to, port));
    }
  }
}

TEST_CASE("udp_net__the_longest_datagrams_of_the_loopback__arrive_joined") {
  Host a;
  Host b;
  CHECK(b.net->datagram_bytes_max() == 8972);
  const Address peer = a.address_of(b);
  std::vector<Text> texts;
  std::vector<Datagram> datagrams;
  for (uint32_t i = 0; i < 20; ++i) texts.push_back(text(8972, i));
  for (const Text& one : texts) datagrams.push_back({peer, one});
  send_all(a, datagrams);
  b.until([&] { return b.events.came.size() == texts.size(); });
  for (size_t i = 0; i < texts.size(); ++i) CHECK(b.events.came[i].second == texts[i]);
}

TEST_CASE("udp_net__datagram_bytes__of_ethernet_unless_all_peers_are_on_the_loopback") {
  CHECK(Host({.listen_host = "0.0.0.0", .port = 0, .interface_name = {}}).net->message_datagram_bytes() == 1472);
  CHECK(Host({.listen_host = "*", .port = 0, .interface_name = {}}).net->message_datagram_bytes() == 1472);
  CHECK(Host({.listen_host = "::1", .port = 0, .interface_name = {}}).net->message_datagram_bytes() == 8972);
  CHECK(Host({.listen_host = "", .port = 0, .interface_name = {}, .listen = false}).net->message_datagram_bytes() == 8972);
}

TEST_CASE("udp_net__names__each_has_one_answer") {
  Host a;
  for (const char* bad : {"", "udp://", "tcp://127.0.0.1:1", "udp://a", "udp://a:0", "udp://a:70000", "udp://[::1:5"}) {
    CAPTURE(bad);
    const auto query = a.net->resolve(bad);
    REQUIRE_FALSE(query);
    CHECK(query.error().kind == ErrorKind::usage);
  }
  std::set<uint64_t> queries;
  for (const char* good : {"udp://127.0.0.1:5", "udp://localhost:6", "udp://[::1]:7", "udp://127.0.0.1:5"}) {
    const auto query = a.net->resolve(good);
    REQUIRE(query);
    CHECK(*query != 0);
    CHECK(queries.insert(*query).second);
  }
  a.until([&] { return a.events.answers.size() == 4; });
  for (const Events::Answer& answer : a.events.answers) {
    CHECK(queries.erase(answer.query) == 1);
    // This socket is of IPv4.
    CHECK((answer.status == Status::success) == (answer.address.port != 7));
    CHECK(answer.reason.empty() == (answer.status == Status::success));
    if (answer.address.port == 6) CHECK(a.net->host_of(answer.address) == "127.0.0.1");
  }
}

TEST_CASE("udp_net__uris__what_it_listens_on_and_none_of_who_only_dials") {
  CHECK(Host({.listen_host = "", .port = 0, .interface_name = {}, .listen = false}).net->uris().empty());
  CHECK(Host({.listen_host = "", .port = 0, .interface_name = {}, .listen = false}).net->uri().empty());
  const Host one;
  const auto name = inet::parse_uri("udp", one.net->uri());
  REQUIRE(name);
  CHECK(name->host == "127.0.0.1");
  const Host all({.listen_host = "*", .port = 0, .interface_name = {}});
  REQUIRE_FALSE(all.net->uris().empty());
  for (const std::string& uri : all.net->uris()) CHECK(inet::parse_uri("udp", uri));
  const auto taken = UdpNet::create({.listen_host = "127.0.0.1", .port = name->port, .interface_name = {}});
  REQUIRE_FALSE(taken);
  CHECK(taken.error().kind == ErrorKind::network);
  CHECK(taken.error().message == "cannot listen on " + one.net->uri() + ": Address already in use");
  const auto nowhere = UdpNet::create({.listen_host = "192.0.2.1", .port = 0, .interface_name = {}});
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().kind == ErrorKind::network);
  const auto no_interface = UdpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = "none0"});
  REQUIRE_FALSE(no_interface);
  CHECK(no_interface.error().kind == ErrorKind::network);
}

// A listener of all addresses that is dialled at one of them answers from that one: who dialled believes no other.
TEST_CASE("udp_net__a_listener_of_all_addresses__answers_from_the_one_that_was_dialled") {
  for (const char* all : {"0.0.0.0", "*"}) {
    for (const char* dialled : {"127.0.0.1", "127.0.0.2", "127.7.7.7"}) {
      CAPTURE(all, dialled);
      Host a({.listen_host = "", .port = 0, .interface_name = {}, .listen = false});
      Host b({.listen_host = all, .port = 0, .interface_name = {}});
      const auto query = a.net->resolve(inet::format_uri("udp", dialled, inet::parse_uri("udp", b.net->uri())->port));
      REQUIRE(query);
      a.until([&] { return !a.events.answers.empty(); });
      const Address peer = a.events.answers[0].address;
      const Text fine = text(500, 1);
      const std::vector<Datagram> two(2, Datagram{peer, fine});
      send_all(a, two);
      b.until([&] { return b.events.came.size() == 2; });
      const std::vector<Datagram> back(2, Datagram{b.events.came[0].first, fine});
      send_all(b, back);
      a.until([&] { return a.events.came.size() == 2; });
      CHECK(a.events.came[0].first == peer);
      CHECK(a.events.came[1].first == peer);
    }
  }
}

TEST_CASE("udp_net__a_socket_of_one_address_of_ipv6__reaches_no_ipv4") {
  Host a({.listen_host = "::1", .port = 0, .interface_name = {}});
  REQUIRE(a.net->resolve("udp://127.0.0.1:5"));
  REQUIRE(a.net->resolve("udp://[::1]:5"));
  a.until([&] { return a.events.answers.size() == 2; });
  CHECK(a.events.answers[0].status == Status::unreachable);
  CHECK(a.events.answers[0].reason == "127.0.0.1: this end has an address of IPv6 only");
  CHECK(a.events.answers[1].status == Status::success);
}

// Whoever finds out the port of an end that only dials gets no answer, and leaves nothing behind.
TEST_CASE("udp_net__who_only_dials__takes_no_strangers") {
  CHECK_FALSE(Host({.listen_host = "", .port = 0, .interface_name = {}, .listen = false}).net->takes_strangers());
  struct Forwarding final : datagram::DatagramNet {  // of a UdpNet, which the transport owns: remembers whether it takes strangers
    explicit Forwarding(bool takes)
        : takes_(takes), net(std::move(*UdpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}}))) {}
    std::string_view scheme() const override { return net->scheme(); }
    std::string host_of(const Address& address) const override { return net->host_of(address); }
    std::string uri() const override { return net->uri(); }
    bool takes_strangers() const override { return takes_; }
    uint32_t datagram_bytes_max() const override { return net->datagram_bytes_max(); }
    Result<uint64_t> resolve(std::string_view uri) override { return net->resolve(uri); }
    Sent send(std::span<const Datagram> batch) override { return net->send(batch); }
    void send_last(std::span<const Datagram> batch) override { net->send_last(batch); }
    void poll(Instant now, datagram::DatagramEvents& events) override { net->poll(now, events); }
    void set_deadline(Instant at) override { net->set_deadline(at); }
    int os_handle() const override { return net->os_handle(); }
    const bool takes_;
    std::unique_ptr<UdpNet> net;
  };
  struct Sink final : ports::TransportSink {
    void on_connect_request(ports::ConnectionId, ports::Role, ports::Attribute, Bytes) override { ++requests; }
    void on_connected(ports::ConnectionId, Status, ports::ConnectionLimits, std::string_view) override {}
    void on_accepted(ports::ConnectionId, Status, ports::ConnectionLimits) override {}
    MutableBytes on_message_begin(ports::ConnectionId, uint32_t) override { return {}; }
    void on_message_end(ports::ConnectionId, bool) override {}
    void on_completion(ports::ConnectionId, uint64_t, ports::OperationResult) override {}
    void on_disconnected(ports::ConnectionId, Status, std::string_view) override {}
    void on_keepalive_timeout(ports::ConnectionId) override {}
    int requests = 0;
  };
  for (const bool takes : {true, false}) {
    CAPTURE(takes);
    host::SystemEntropy entropy;
    Counters counters, counters_of_stranger;
    Sink sink, sink_of_stranger;
    cci::MemoryTable memory(entropy, counters), memory_of_stranger(entropy, counters_of_stranger);
    datagram::DatagramTransport transport({}, std::make_unique<Forwarding>(takes), entropy, counters);
    datagram::DatagramTransport stranger({}, std::make_unique<Forwarding>(true), entropy, counters_of_stranger);
    transport.bind(sink, memory);
    stranger.bind(sink_of_stranger, memory_of_stranger);
    const std::string uri = transport.uri();
    ports::DialRequest request;
    request.uri = uri;
    REQUIRE(stranger.dial(request));
    while (sink.requests == 0 && counters.get(Counter::hello_rejected) == 0) {
      for (datagram::DatagramTransport* each : {&transport, &stranger}) each->turn(host::SystemClock().now());
    }
    CHECK((sink.requests > 0) == takes);
    CHECK((counters.get(Counter::bytes_out) > 0) == takes);
  }
}

// Nothing may be sent to all hosts of a network, and the kernel says so.
TEST_CASE("udp_net__a_peer_to_whom_this_host_may_not_send__the_end_of_the_dial_says_why") {
  using namespace std::chrono_literals;
  for (const Duration patience : {Duration(5s), Duration(60s)}) {
    host::SystemEntropy entropy;
    Counters counters;
    ccixfer::testing::Recorder sink;
    cci::MemoryTable memory(entropy, counters);
    auto net = UdpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}});
    REQUIRE(net);
    datagram::DatagramTransport transport({}, std::move(*net), entropy, counters);
    transport.bind(sink, memory);
    ports::DialRequest request;
    request.uri = "udp://255.255.255.255:9";
    request.timeout = patience;
    REQUIRE(transport.dial(request));
    Instant now = host::SystemClock().now();
    for (int turns = 0; turns < 1000 && sink.connected.empty(); ++turns) transport.turn(now += 100ms);
    REQUIRE(sink.connected.size() == 1);
    CHECK(sink.connected[0].status == (patience < 10s ? Status::timed_out : Status::unreachable));
    CHECK(sink.connected[0].reason.starts_with("this host cannot send there: "));
    CHECK(counters.get(Counter::datagrams_refused) > 0);
  }
}

// The kernel refuses a datagram that no interface can carry, and the others of the batch go on.
TEST_CASE("udp_net__what_the_kernel_refuses__fails_and_the_next_is_taken") {
  Host a;
  Host b;
  const Address peer = a.address_of(b);
  const Text too_long(66'000);
  const Text fine = text(100, 1);
  const std::vector<Datagram> batch{{peer, too_long}, {peer, fine}};
  const Sent sent = a.net->send(batch);
  CHECK(sent.taken == 0);
  CHECK(sent.stop == Sent::Stop::failed);
  CHECK(sent.error == EMSGSIZE);
  CHECK(a.net->send(std::span(batch).subspan(1)).taken == 1);
  b.until([&] { return !b.events.came.empty(); });
  CHECK(b.events.came[0].second == fine);
  const Datagram unreachable{Address{uint64_t{0x20010db8} << 32, 1, 5, 0}, fine};  // over a socket of IPv4
  CHECK(a.net->send({&unreachable, 1}).stop == Sent::Stop::failed);
}

// A socket of the kernel's that gets joined datagrams as they came, in one piece.
struct Plain {
  Plain() {
    const int on = 1;
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    REQUIRE(setsockopt(socket.get(), SOL_UDP, UDP_GRO, &on, sizeof on) == 0);
    REQUIRE(bind(socket.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
    REQUIRE(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size) == 0);
    address = Address{0, uint64_t{0xffff} << 32 | INADDR_LOOPBACK, ntohs(here.sin_port), 0};
  }
  [[nodiscard]] ssize_t piece_bytes() const {
    Text into(piece_bytes_max);
    return recv(socket.get(), into.data(), into.size(), 0);
  }
  host::Descriptor socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  Address address;
};

// Only a device that cannot cut pieces apart ends the joining. No address is to blame for that where the datagrams fail alone, too.
TEST_CASE("udp_net__an_address_to_which_nothing_can_be_sent__the_others_datagrams_stay_joined") {
  Host a;
  const Plain b;
  const Text fine = text(100, 1);
  const std::vector<Datagram> good(4, Datagram{b.address, fine});
  CHECK(a.net->send(good).taken == 4);
  REQUIRE(b.piece_bytes() == 400);
  Address nowhere = b.address;
  nowhere.port = 0;
  const std::vector<Datagram> bad(4, Datagram{nowhere, fine});
  CHECK(a.net->send(bad).stop == Sent::Stop::failed);
  CHECK(a.net->send(good).taken == 4);
  CHECK(b.piece_bytes() == 400);
}

// A dead port answers by ICMP: that is for nobody, and the socket goes on.
TEST_CASE("udp_net__nobody_at_the_port__changes_nothing") {
  Host a;
  Host b;
  Address peer = a.address_of(b);
  auto dead = std::make_unique<Host>();
  const Address dead_peer = a.address_of(*dead);
  dead.reset();
  const Text fine = text(100, 1);
  for (int i = 0; i < 5; ++i) {
    const Datagram lost{dead_peer, fine};
    CHECK(a.net->send({&lost, 1}).taken == 1);
    const Datagram one{peer, fine};
    CHECK(a.net->send({&one, 1}).taken == 1);
  }
  b.until([&] { return b.events.came.size() == 5; });
  const Datagram back{b.events.came[0].first, fine};
  CHECK(b.net->send({&back, 1}).taken == 1);
  a.until([&] { return a.events.came.size() == 1; });
}

TEST_CASE("udp_net__handle__readable_for_what_came_and_at_the_deadline_and_else_not") {
  Host a;
  Host b;
  const Address peer = a.address_of(b);
  while (b.turn(0)) {
  }
  CHECK_FALSE(b.turn(0));
  const Text fine = text(100, 1);
  const Datagram one{peer, fine};
  CHECK(a.net->send({&one, 1}).taken == 1);
  CHECK(b.turn());
  CHECK(b.events.came.size() == 1);
  while (b.turn(0)) {
  }
  b.net->set_deadline(after(host::SystemClock().now(), std::chrono::milliseconds(5)));
  pollfd handle{b.net->os_handle(), POLLIN, 0};
  CHECK(::poll(&handle, 1, 10'000) == 1);
}

// More than one poll reads is there: the handle says so without another datagram.
TEST_CASE("udp_net__more_than_a_poll_takes__comes_with_the_next_ones") {
  Host a;
  Host b({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}, .listen = true, .joins = false});
  const Address peer = a.address_of(b);
  const Text fine = text(200, 1);
  constexpr size_t count = pieces_per_read * reads_per_poll_max * 2;
  const std::vector<Datagram> datagrams(count, Datagram{peer, fine});
  send_all(a, datagrams);
  b.turn();
  CHECK(b.events.came.size() <= pieces_per_read * reads_per_poll_max);
  b.until([&] { return b.events.came.size() == count; });
}

// The last words of a transport leave before it is gone.
TEST_CASE("udp_net__send_last__leaves_at_once") {
  Host a;
  Host b;
  const Address peer = a.address_of(b);
  const Text fine = text(200, 1);
  const std::vector<Datagram> datagrams(64, Datagram{peer, fine});
  a.net->send_last(datagrams);
  a.net.reset();
  b.until([&] { return b.events.came.size() == 64; });
}

}  // namespace
}  // namespace ccixfer::udp
