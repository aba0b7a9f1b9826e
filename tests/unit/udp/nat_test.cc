// A NAT between two ends over real sockets, which forgets the dialler in the middle of a transfer: what it lets out after that
// comes from another port, and what goes to the one of before arrives nowhere.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <optional>

#include "core/cci/memory_table.h"
#include "core/host/clock.h"
#include "core/host/descriptor.h"
#include "core/host/entropy.h"
#include "tests/unit/connection/recorder.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/inet/uri.h"
#include "transports/udp/udp_net.h"

namespace ccixfer::udp {
namespace {

using namespace std::chrono_literals;
using ccixfer::testing::Buffer;
using ccixfer::testing::OwnTrust;
using ccixfer::testing::Recorder;

class Nat {
 public:
  explicit Nat(uint16_t server_port) : server_(on_loopback(server_port)) { forget(); }
  [[nodiscard]] std::string uri() const { return inet::format_uri("udp", "127.0.0.1", port_of(inside_.get())); }
  // Whoever is inside comes out by another port from now on.
  void forget() {
    host::Descriptor next = open();
    outside_ = std::move(next);
  }
  [[nodiscard]] size_t forwarded() const { return forwarded_; }
  void forward() {
    std::array<std::byte, 65536> bytes;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    for (int i = 0; i < 256; ++i) {
      const ssize_t out = recvfrom(inside_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (out <= 0) break;
      client_ = from;
      ++forwarded_;
      send(outside_.get(), server_, bytes.data(), out);
    }
    for (int i = 0; i < 256; ++i) {
      const ssize_t in = recv(outside_.get(), bytes.data(), bytes.size(), 0);
      if (in <= 0) break;
      if (client_) send(inside_.get(), *client_, bytes.data(), in);
    }
  }

 private:
  static sockaddr_in on_loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }
  static host::Descriptor open() {
    host::Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_in any = on_loopback(0);
    REQUIRE(bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
    return fd;
  }
  static uint16_t port_of(int fd) {
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0);
    return ntohs(bound.sin_port);
  }
  // What finds no room is lost, as in any NAT.
  static void send(int fd, const sockaddr_in& to, const std::byte* bytes, ssize_t size) {
    static_cast<void>(sendto(fd, bytes, static_cast<size_t>(size), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }

  host::Descriptor inside_ = open();
  host::Descriptor outside_;
  sockaddr_in server_;
  std::optional<sockaddr_in> client_;
  size_t forwarded_ = 0;  // of the client's
};

struct End {
  End(const UdpNetOptions& options, std::shared_ptr<connection::HopTrust> trust) {
    auto net = UdpNet::create(options);
    REQUIRE(net);
    transport = std::make_unique<datagram::DatagramTransport>(datagram::DatagramOptions{}, std::move(*net), entropy, counters,
                                                              std::move(trust));
    transport->bind(sink, memory);
  }
  host::SystemEntropy entropy;
  Counters counters;
  Recorder sink;
  cci::MemoryTable memory{entropy, counters};
  std::unique_ptr<datagram::DatagramTransport> transport;
};

TEST_CASE("udp_nat__the_dialler_comes_out_by_another_port_in_mid_transfer__all_arrives") {
  const bool is_sealed = GENERATE(true, false);
  CAPTURE(is_sealed);
  End server({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}}, is_sealed ? std::make_shared<OwnTrust>() : nullptr);
  End client({.listen_host = {}, .port = 0, .interface_name = {}, .listen = false},
             is_sealed ? std::make_shared<OwnTrust>() : nullptr);
  Nat nat(inet::parse_uri("udp", server.transport->uri())->port);
  const host::SystemClock clock;
  const Instant end = after(clock.now(), 60s);
  const auto until = [&](const std::function<bool()>& done) {
    while (!done()) {
      REQUIRE(clock.now() < end);
      client.transport->turn(clock.now());
      nat.forward();
      server.transport->turn(clock.now());
    }
  };
  ports::DialRequest dial;
  const std::string uri = nat.uri();
  dial.uri = uri;
  const auto id = client.transport->dial(dial);
  REQUIRE(id);
  until([&] { return !server.sink.requests.empty(); });
  REQUIRE(server.transport->accept(server.sink.requests[0]) == Status::success);
  until([&] { return !client.sink.connected.empty(); });
  REQUIRE(client.sink.connected[0].status == Status::success);

  constexpr uint64_t count = 16;
  Buffer source(4 << 20), target(source.size());
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + (i >> 12));
  ports::RmaRequest write;
  write.remote.handle = server.memory.register_region(target, cci::access_write);
  write.source = source;
  ports::RmaRequest back;
  Buffer target_back(source.size());
  back.remote.handle = client.memory.register_region(target_back, cci::access_write);
  back.source = source;
  for (uint64_t token = 0; token < count; ++token) {
    REQUIRE(client.transport->rma(*id, write, token) == Status::success);
    REQUIRE(server.transport->rma(server.sink.requests[0], back, token) == Status::success);
    const size_t forwarded = nat.forwarded();
    bool forgets = token == count / 2;
    until([&] {
      if (forgets && nat.forwarded() > forwarded + 100) {
        nat.forget();
        forgets = false;
      }
      return client.sink.completions.size() > token && server.sink.completions.size() > token;
    });
    CHECK_FALSE(forgets);
  }
  for (const End* each : {&client, &server}) {
    for (const auto& completion : each->sink.completions) CHECK(completion.status == Status::success);
    CHECK(each->sink.disconnected.empty());
  }
  CHECK((target == source));
  CHECK((target_back == source));
  CHECK(server.counters.get(Counter::addresses_changed) == 1);
  CHECK(client.counters.get(Counter::addresses_changed) == 0);
}

}  // namespace
}  // namespace ccixfer::udp
