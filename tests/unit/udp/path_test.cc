// The length of packets over real interfaces: two ends in network namespaces of their own, joined by a pair of virtual Ethernet
// interfaces of a given MTU. The namespaces belong to a child process, so the other tests keep theirs.
#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "core/cci/memory_table.h"
#include "core/host/clock.h"
#include "core/host/entropy.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/udp/udp_net.h"

namespace ccixfer::udp {
namespace {

using datagram::Datagram;
using namespace std::chrono_literals;

// What a child ends with.
enum Ending : int { fine = 0, no_namespace = 10, no_interfaces = 11, not_delivered = 12, wrong_length = 13 };

bool shell(const std::string& commands) { return std::system(("set -e\n" + commands).c_str()) == 0; }

// A UdpNet that notes the longest datagram that the kernel took.
struct Measuring final : datagram::DatagramNet {
  explicit Measuring(const std::string& host, size_t& seen)
      : net(std::move(*UdpNet::create({.listen_host = host, .port = 0, .interface_name = {}}))), longest(seen) {}
  std::string_view scheme() const override { return net->scheme(); }
  std::string host_of(const datagram::Address& address) const override { return net->host_of(address); }
  std::string uri() const override { return net->uri(); }
  uint32_t datagram_bytes_max() const override { return net->datagram_bytes_max(); }
  bool knows_path(const datagram::Address& peer) const override { return net->knows_path(peer); }
  uint32_t message_datagram_bytes() const override { return net->message_datagram_bytes(); }
  Result<uint64_t> resolve(std::string_view uri) override { return net->resolve(uri); }
  datagram::Sent send(std::span<const Datagram> batch) override {
    const datagram::Sent sent = net->send(batch);
    for (const Datagram& each : batch.first(sent.taken)) longest = std::max(longest, each.bytes.size());
    return sent;
  }
  void send_last(std::span<const Datagram> batch) override { net->send_last(batch); }
  void poll(Instant now, datagram::DatagramEvents& events) override { net->poll(now, events); }
  void set_deadline(Instant at) override { net->set_deadline(at); }
  int os_handle() const override { return net->os_handle(); }
  std::unique_ptr<UdpNet> net;
  size_t& longest;
};

struct Sink final : ports::TransportSink {
  void on_connect_request(ports::ConnectionId id, ports::Role, ports::Attribute, Bytes) override { request = id; }
  void on_connected(ports::ConnectionId, Status status, ports::ConnectionLimits, std::string_view) override {
    connected = status == Status::success;
  }
  void on_accepted(ports::ConnectionId, Status, ports::ConnectionLimits) override {}
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t) override { return {}; }
  void on_message_end(ports::ConnectionId, bool) override {}
  void on_completion(ports::ConnectionId, uint64_t, ports::OperationResult ending) override { good += ending.good() ? 1u : 0u; }
  void on_disconnected(ports::ConnectionId, Status, std::string_view) override {}
  void on_keepalive_timeout(ports::ConnectionId) override {}
  std::optional<ports::ConnectionId> request;
  bool connected = false;
  size_t good = 0;
};

struct Host {
  Host(const std::string& address, size_t& longest)
      : transport({}, std::make_unique<Measuring>(address, longest), entropy, counters) {
    transport.bind(sink, memory);
  }
  host::SystemEntropy entropy;
  Counters counters;
  Sink sink;
  cci::MemoryTable memory{entropy, counters};
  datagram::DatagramTransport transport;
};

Ending transfer(Host& a, Host& b, const std::function<bool()>& is_long_enough) {
  const host::SystemClock clock;
  const Instant end = after(clock.now(), 60s);
  const auto until = [&](const std::function<bool()>& done) {
    while (!done() && clock.now() < end) {
      a.transport.turn(clock.now());
      b.transport.turn(clock.now());
    }
    return done();
  };
  ports::DialRequest dial;
  const std::string uri = b.transport.uri();
  dial.uri = uri;
  const auto id = a.transport.dial(dial);
  if (!id || !until([&] { return b.sink.request.has_value(); })) return not_delivered;
  static_cast<void>(b.transport.accept(*b.sink.request));
  if (!until([&] { return a.sink.connected; })) return not_delivered;
  std::vector<std::byte> data(1 << 20, std::byte{7}), target(data.size());
  ports::RmaRequest write;
  write.remote.handle = b.memory.register_region(target, cci::access_write);
  write.source = data;
  for (size_t i = 1; i < 200 && (i < 10 || !is_long_enough()); ++i) {
    if (a.transport.rma(*id, write, i) != Status::success || !until([&] { return a.sink.good == i; })) return not_delivered;
  }
  if (target != data) return not_delivered;
  return fine;
}

struct Places {
  std::string a, b;
  std::string prefix;  // and what ip(8) is to be told besides
};

// In a child. The namespace of end `a` is kept by a child of its own until the interfaces are made.
int run(const Places& at, uint32_t mtu, size_t expected) {
  if (unshare(CLONE_NEWNET) != 0) return no_namespace;
  const int space_of_a = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const pid_t keeper = fork();
  if (keeper == 0) {
    pause();
    _exit(0);
  }
  const bool made = space_of_a >= 0 && keeper > 0 && unshare(CLONE_NEWNET) == 0 &&
                    shell(fmt::format("ip link set lo up\nip link add b0 mtu {0} type veth peer name a0 mtu {0} netns {1}\n"
                                      "ip link set b0 up\nip addr add {2}/{3} dev b0\n",
                                      mtu, keeper, at.b, at.prefix));
  if (keeper > 0) {
    kill(keeper, SIGKILL);
    waitpid(keeper, nullptr, 0);
  }
  if (!made) return no_interfaces;
  size_t longest_of_a = 0, longest_of_b = 0;
  const int space_of_b = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (setns(space_of_a, CLONE_NEWNET) != 0 ||
      !shell(fmt::format("ip link set lo up\nip link set a0 up\nip addr add {}/{} dev a0\n", at.a, at.prefix)))
    return no_interfaces;
  Host a(at.a, longest_of_a);
  if (setns(space_of_b, CLONE_NEWNET) != 0) return no_interfaces;
  Host b(at.b, longest_of_b);
  const Ending ending = transfer(a, b, [&] { return longest_of_a >= expected; });
  if (ending != fine) return ending;
  return longest_of_a == expected ? fine : wrong_length;
}

}  // namespace

TEST_CASE("udp_path__interfaces_of_1280_1500_and_9000__packets_become_as_long_as_they_carry") {
  const bool v6 = GENERATE(false, true);
  const Places at = v6 ? Places{"fd77::1", "fd77::2", "64 nodad"} : Places{"10.77.0.1", "10.77.0.2", "24"};
  for (const uint32_t mtu : {1280u, 1500u, 9000u}) {
    const size_t expected = mtu - 8 - (v6 ? 40 : 20);
    CAPTURE(mtu, v6);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(run(at, mtu, expected));
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
}

}  // namespace ccixfer::udp
