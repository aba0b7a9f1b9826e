// What the parts of a routing transport stand on in their tests: an endpoint over a network that does
// what the test says, the table of connections, and somebody above who keeps what is told.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "routing/transport/hop_post.h"
#include "routing/transport/routed_connection_table.h"
#include "routing/transport/routed_ender.h"
#include "tests/unit/cci/fake_transport.h"
#include "tests/unit/routing/recorder.h"

namespace ccixfer::routing::test {

struct NotedEnder final : RoutedEnder {
  void close(RoutedConnection& connection, Status status, std::string_view, bool tell_peer) override {
    connection.phase = Phase::leaving;
    closed = status;
    told_peer = tell_peer;
  }
  void reject(RoutedConnection& connection, std::string_view why) override {
    connection.phase = Phase::leaving;
    rejected = why;
  }
  std::optional<Status> closed;
  bool told_peer = false;
  std::string rejected;
};

struct RoutedParts {
  // In the network; the event that it brings, if there is one.
  std::optional<cci::Event> happens(std::function<void(ports::TransportSink&)> step) {
    network->plan(std::move(step));
    lower->turn(now);
    return lower->get_event();
  }
  std::optional<cci::Event> connected(cci::Connection to, Status status = Status::success, std::string_view reason = {}) {
    return happens([&](ports::TransportSink& sink) { sink.on_connected(to, status, {1016}, reason); });
  }
  cci::Event request(uint32_t index, ports::Role role = ports::Role::hop) {
    auto event = happens([&](ports::TransportSink& sink) {
      sink.on_connect_request({index, 1}, role, ports::Attribute::reliable_ordered, as_bytes("data"));
    });
    return std::move(*event);
  }
  // In this phase, and its hop is live.
  RoutedConnection& add(Phase phase = Phase::open) {
    RoutedConnection& connection = *connections.add(phase);
    cci::ConnectOptions how;
    how.role = ports::Role::hop;
    how.context = connection.id.packed();
    connections.attach(connection, *lower->connect("fake://next", how));
    static_cast<void>(connected(connection.hop.connection()));
    connection.path.limits.max_send_bytes = 1000;
    connection.path.fragment_bytes = 1u << 16;
    return connection;
  }
  // The latest that was said to the next hop, without what came before.
  std::vector<MessageKind> said() {
    std::vector<MessageKind> kinds;
    for (const auto& each : log->sends) kinds.push_back(*kind_of(as_bytes(each.bytes)));
    return kinds;
  }
  [[nodiscard]] Bytes last_said() const { return as_bytes(log->sends.back().bytes); }
  template <typename Message>
  static std::vector<std::byte> bytes_of(const Message& message) {
    std::vector<std::byte> bytes;
    encode(message, bytes);
    return bytes;
  }
  [[nodiscard]] size_t count_active() {
    size_t count = 0;
    connections.serve_active([&](RoutedConnection&) { ++count; });
    return count;
  }

  cci::CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<cci::MemoryTable> memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  std::shared_ptr<cci::FakeTransport::Log> log = std::make_shared<cci::FakeTransport::Log>();
  cci::FakeTransport* network = nullptr;
  std::unique_ptr<cci::Endpoint> lower = make_lower();
  RoutedConnectionTable connections;
  Recorder above;
  NotedEnder ender;
  HopPost post{*lower, connections};
  Instant now = Instant{} + std::chrono::seconds(1000);

 private:
  std::unique_ptr<cci::Endpoint> make_lower() {
    auto below = std::make_unique<cci::FakeTransport>(log);
    network = below.get();
    return std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(below), memory, counters);
  }
};

}  // namespace ccixfer::routing::test
