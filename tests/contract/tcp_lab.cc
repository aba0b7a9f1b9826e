#include "tests/contract/tcp_lab.h"

#include <poll.h>

#include <algorithm>

#include "core/host/clock.h"
#include "transports/stream/stream_transport.h"
#include "transports/tcp/tcp_net.h"

namespace ccixfer::contract {
namespace {

class TcpLab final : public Lab {
 public:
  explicit TcpLab(bool secured) : secured_(secured) {}
  Node& add(const NodeOptions& options) override {
    auto net = tcp::TcpNet::create({.listen_host = "127.0.0.1",
                                    .port = 0,
                                    .interface_name = {},
                                    .backlog = 1024,
                                    .listen = true,
                                    .by_reference = tcp::ByReference::always});
    REQUIRE(net);
    auto node = std::make_unique<Node>();
    node->entropy = std::make_unique<SeededEntropy>(nodes_.size() + 1);
    node->memory = std::make_shared<cci::MemoryTable>(*node->entropy, *node->counters);
    node->endpoint = std::make_unique<Endpoint>(
        options.endpoint,
        std::make_unique<stream::StreamTransport>(options.transport, std::move(*net), *node->counters, lab_trust(secured_)),
        node->memory, *node->counters);
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

  std::string dead_uri() override {
    // A port that was ours a moment ago.
    auto net = tcp::TcpNet::create({.listen_host = "127.0.0.1",
                                    .port = 0,
                                    .interface_name = {},
                                    .backlog = 1,
                                    .listen = true,
                                    .by_reference = tcp::ByReference::never});
    REQUIRE(net);
    return (*net)->uri();
  }

 private:
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

  bool secured_;
  host::SystemClock clock_;
  Duration shift_{0};
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace

std::unique_ptr<Lab> make_tcp_lab(bool secured) { return std::make_unique<TcpLab>(secured); }

}  // namespace ccixfer::contract
