#include "tests/contract/socket_lab.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "core/host/clock.h"
#include "tests/unit/eth/own_lan.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/eth/eth_net.h"
#include "transports/rdma/rdma_transport.h"
#include "transports/shm/shm_net.h"
#include "transports/stream/stream_transport.h"
#include "transports/tcp/tcp_net.h"
#include "transports/udp/udp_net.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::contract {
namespace {

class SocketLab final : public Lab {
 public:
  explicit SocketLab(Sockets kind) : kind_(kind) {}
  Node& add(const NodeOptions& options) override {
    auto node = std::make_unique<Node>();
    node->entropy = std::make_unique<SeededEntropy>(nodes_.size() + 1);
    node->memory = std::make_shared<cci::MemoryTable>(*node->entropy, *node->counters);
    node->endpoint =
        std::make_unique<Endpoint>(options.endpoint, make_transport(options.transport, *node), node->memory, *node->counters);
    nodes_.push_back(std::move(node));
    return *nodes_.back();
  }

  bool run(const std::function<bool()>& done, Duration limit) override {
    const Instant end = after(clock_.now(), limit);
    for (;;) {
      turn();
      if (done()) return true;
      const Instant real = clock_.now();
      if (real >= end) return false;
      wait(end - real);
    }
  }

  void pass(Duration duration) override {
    // In steps, so that every timer of the way fires in its turn, and the network delivers in between.
    for (int step = 0; step < 100; ++step) {
      shift_ += duration / 100;
      for (int settle = 0; settle < 4; ++settle) {
        turn();
        wait(std::chrono::microseconds(200));
      }
    }
  }

  [[nodiscard]] bool lossy() const override { return is_udp() || is_eth(); }

  std::string dead_uri() override {
    // A port that was ours a moment ago.
    if (is_shm()) return shm_net(nullptr)->uri();
    if (is_eth()) return eth_net(testing::lan_ports - 1, unused_)->uri();
    if (is_verbs()) return verbs_net()->uri();
    return is_udp() ? udp_net()->uri() : tcp_net()->uri();
  }

  // Of the loopback, and no other program's: this one's number is in it. Nobody else needs the port there.
  [[nodiscard]] std::string group(uint32_t number) override {
    if (kind_ != Sockets::udp) return {};
    const auto pid = static_cast<uint32_t>(getpid());
    return fmt::format("udp://239.{}.{}.{}:7000", 64 + number, pid >> 8 & 0xff, pid & 0xff);
  }

 private:
  [[nodiscard]] bool is_udp() const { return kind_ == Sockets::udp || kind_ == Sockets::udp_secured; }
  [[nodiscard]] static std::unique_ptr<udp::UdpNet> udp_net() {
    auto net = udp::UdpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}});
    REQUIRE(net);
    return std::move(*net);
  }
  // Each node has an interface of its own.
  [[nodiscard]] static std::unique_ptr<eth::EthNet> eth_net(int port, Counters& counters) {
    eth::EthNetOptions options;
    options.interface_name = testing::lan_port(port);
    auto net = eth::EthNet::create(options, counters);
    REQUIRE(net);
    return std::move(*net);
  }
  [[nodiscard]] static std::unique_ptr<tcp::TcpNet> tcp_net() {
    auto net = tcp::TcpNet::create({.listen_host = "127.0.0.1",
                                    .port = 0,
                                    .interface_name = {},
                                    .backlog = 1024,
                                    .listen = true,
                                    .by_reference = tcp::ByReference::always});
    REQUIRE(net);
    return std::move(*net);
  }
  [[nodiscard]] static std::unique_ptr<shm::ShmNet> shm_net(Counters* counters) {
    shm::ShmNetOptions options;
    options.counters = counters;
    auto net = shm::ShmNet::create(options);
    REQUIRE(net);
    return std::move(*net);
  }
  [[nodiscard]] static std::unique_ptr<rdma::RdmaNet> verbs_net() {
    auto opened = verbs::open_net({});
    if (!opened) FAIL(opened.error().message);
    return std::move(opened->net);
  }
  [[nodiscard]] bool is_verbs() const { return kind_ == Sockets::verbs || kind_ == Sockets::verbs_secured; }
  [[nodiscard]] bool is_eth() const { return kind_ == Sockets::eth || kind_ == Sockets::eth_secured; }
  [[nodiscard]] bool is_shm() const { return kind_ == Sockets::shm || kind_ == Sockets::shm_secured; }
  [[nodiscard]] std::unique_ptr<ports::Transport> make_transport(const ports::TransportOptions& options, Node& node) const {
    if (is_eth())
      return std::make_unique<datagram::DatagramTransport>(
          datagram::DatagramOptions{options}, eth_net(static_cast<int>(nodes_.size()) % testing::lan_ports, *node.counters),
          *node.entropy, *node.counters, lab_trust(kind_ == Sockets::eth_secured));
    if (is_verbs())
      return std::make_unique<rdma::RdmaTransport>(options, verbs_net(), *node.counters,
                                                   lab_trust(kind_ == Sockets::verbs_secured));
    if (is_udp())
      return std::make_unique<datagram::DatagramTransport>(datagram::DatagramOptions{options}, udp_net(), *node.entropy,
                                                           *node.counters, lab_trust(kind_ == Sockets::udp_secured));
    const bool secured = kind_ == Sockets::tcp_secured || kind_ == Sockets::shm_secured;
    std::unique_ptr<stream::StreamNet> net;
    if (is_shm()) {
      net = shm_net(node.counters.get());
    } else {
      net = tcp_net();
    }
    return std::make_unique<stream::StreamTransport>(options, std::move(net), *node.counters, lab_trust(secured));
  }

  [[nodiscard]] Instant now() const { return clock_.now() + shift_; }

  void turn() {
    for (const auto& node : nodes_) {
      if (node->frozen || node->endpoint == nullptr) continue;
      node->endpoint->turn(now());
      if (node->collects) node->collect();
    }
  }

  // Until a handle is readable: it has to show deadlines as well.
  void wait(Duration most) {
    std::vector<pollfd> handles;
    for (const auto& node : nodes_) {
      if (node->frozen || node->endpoint == nullptr) continue;
      handles.push_back({node->endpoint->os_handle(), POLLIN, 0});
      if (node->endpoint->arm_os_handle() == Status::again) most = Duration{0};
    }
    const timespec timeout{static_cast<time_t>(most.count() / 1'000'000'000), static_cast<long>(most.count() % 1'000'000'000)};
    static_cast<void>(ppoll(handles.data(), handles.size(), &timeout, nullptr));
  }

  const Sockets kind_;
  Counters unused_;
  host::SystemClock clock_;
  Duration shift_{0};
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace

std::unique_ptr<Lab> make_socket_lab(Sockets kind) { return std::make_unique<SocketLab>(kind); }

}  // namespace ccixfer::contract
