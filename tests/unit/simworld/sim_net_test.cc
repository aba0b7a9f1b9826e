// The simulated network of streams: order, windows, faults, and the same trace from the same seed.
#include "transports/sim/sim_net.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>

using namespace ccixfer;
using namespace std::chrono_literals;
using sim::Fabric;
using sim::LinkOptions;
using sim::NodeId;
using sim::SimNet;
using sim::World;
using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

namespace {

// Sends a pattern on every stream that it has, and reads what comes; obeys the edge-like contract strictly.
class Peer final : public sim::Actor {
 public:
  Peer(Fabric& fabric, NodeId node, const sim::SimNetOptions& options, size_t send_bytes)
      : net(fabric, node, options), to_send(send_bytes), world_(fabric.world()), node_(node) {
    world_.add_actor(node, this);
  }
  ~Peer() override {
    if (world_.alive(node_)) world_.remove_actor(node_, this);
  }

  struct Connection {
    size_t sent = 0;
    std::string got;
    bool readable = true, writable = true, closed = false, failed = false;
  };

  void turn(Instant now) override {
    net.poll(now, [this](const StreamEvent& event) { on_event(event); });
    for (auto& [id, connection] : connections) {
      if (connection.closed || connection.failed) continue;
      write(id, connection);
      read(id, connection);
      finish(id, connection);
    }
  }
  [[nodiscard]] Instant next_deadline() const override { return never; }

  SimNet net;
  size_t to_send;
  bool close_after_sending = false;
  std::map<StreamId, Connection> connections;
  std::map<StreamId, Status> failures;
  size_t accepted = 0, connected = 0;

  static std::string pattern(size_t bytes) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 31 + i / 251) & 0xff);
    return text;
  }

 private:
  void on_event(const StreamEvent& event) {
    switch (event.type) {
      case StreamEventType::accepted:
        ++accepted;
        connections[event.id];
        break;
      case StreamEventType::connected:
        ++connected;
        connections[event.id];
        break;
      case StreamEventType::failed:
        failures[event.id] = event.status;
        connections[event.id].failed = true;
        break;
      case StreamEventType::readable:
        connections.at(event.id).readable = true;
        break;
      case StreamEventType::writable:
        connections.at(event.id).writable = true;
        break;
      case StreamEventType::device_failed:  // of no stream; these do not
        break;
    }
  }
  void write(StreamId id, Connection& connection) {
    const std::string text = pattern(to_send);
    while (connection.writable && connection.sent < to_send) {
      const size_t left = to_send - connection.sent;
      const std::array spans{
          stream::ConstIoSpan{reinterpret_cast<const std::byte*>(text.data()) + connection.sent, left / 2},
          stream::ConstIoSpan{reinterpret_cast<const std::byte*>(text.data()) + connection.sent + left / 2, left - left / 2}};
      const int64_t count = net.send(id, spans);
      if (count <= 0) {
        connection.writable = false;
        break;
      }
      connection.sent += static_cast<size_t>(count);
    }
  }
  void read(StreamId id, Connection& connection) {
    std::array<std::byte, 300> first{};
    std::array<std::byte, 5000> second{};
    while (connection.readable && !connection.closed) {
      const std::array spans{stream::IoSpan{first.data(), first.size()}, stream::IoSpan{second.data(), second.size()}};
      const int64_t count = net.recv(id, spans);
      if (count == stream::io_again) {
        connection.readable = false;
      } else if (count < 0) {
        net.close(id);
        connection.closed = true;
      } else {
        const auto bytes = static_cast<size_t>(count);
        const size_t head = std::min(bytes, first.size());
        connection.got.append(as_text(Bytes(first).first(head)));
        connection.got.append(as_text(Bytes(second).first(bytes - head)));
      }
    }
  }
  void finish(StreamId id, Connection& connection) {
    if (connection.closed) return;
    if (close_after_sending && connection.sent == to_send && connection.got.size() == to_send) {
      net.close(id);
      connection.closed = true;
    }
  }
  World& world_;
  NodeId node_;
};

sim::SimNetOptions at(const char* network, const char* address, uint16_t port = 7000) {
  sim::SimNetOptions options;
  options.networks = {{network, address}};
  options.port = port;
  return options;
}

LinkOptions nasty() {
  LinkOptions link;
  link.split_chance = 0.5;
  link.again_chance = 0.1;
  link.window_bytes = 10'000;
  return link;
}

struct Outcome {
  uint64_t hash = 0;
  std::string got_a, got_b;
};

Outcome exchange(uint64_t seed) {
  World world(seed);
  Fabric fabric(world, nasty());
  const NodeId a = world.add_node("a"), b = world.add_node("b");
  Peer left(fabric, a, at("lan", "a"), 100'000), right(fabric, b, at("lan", "b"), 100'000);
  left.close_after_sending = true;
  const StreamId id = left.net.dial("sim://b:7000").value();
  CHECK(world.run_for(60s) == sim::RunEnd::idle);
  REQUIRE(right.connections.size() == 1);
  CHECK(left.connections.at(id).closed);
  CHECK(right.connections.begin()->second.closed);
  return {world.trace_hash(), left.connections.at(id).got, right.connections.begin()->second.got};
}

}  // namespace

TEST_CASE("sim_net__two_peers_exchange__bytes_arrive_in_order_whatever_the_pieces") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Outcome outcome = exchange(seed);
    CHECK(outcome.got_a == Peer::pattern(100'000));
    CHECK(outcome.got_b == Peer::pattern(100'000));
  }
}

TEST_CASE("sim_net__same_seed__same_trace") {
  CHECK(exchange(7).hash == exchange(7).hash);
  CHECK(exchange(7).hash != exchange(8).hash);
}

TEST_CASE("sim_net__dials_that_cannot_succeed__fail_with_their_reason") {
  World world(3);
  Fabric fabric(world);
  const NodeId a = world.add_node("a"), b = world.add_node("b"), c = world.add_node("c");
  Peer left(fabric, a, at("lan", "10.0.0.1"), 0), right(fabric, b, at("lan", "10.0.0.2"), 0);
  auto gone = std::make_unique<Peer>(fabric, c, at("lan", "10.0.0.3"), 0);
  world.run_for(1ms);
  world.crash(c);
  gone.reset();
  CHECK_FALSE(left.net.dial("tcp://10.0.0.2:7000"));
  CHECK_FALSE(left.net.dial("sim://10.0.0.2"));
  CHECK_FALSE(left.net.dial("sim://10.0.0.2:0"));
  CHECK_FALSE(left.net.dial("sim://10.0.0.2:70000"));
  const StreamId no_name = left.net.dial("sim://10.0.0.9:7000").value();
  const StreamId no_listener = left.net.dial("sim://10.0.0.2:7001").value();
  const StreamId no_node = left.net.dial("sim://10.0.0.3:7000").value();
  const StreamId fine = left.net.dial("sim://10.0.0.2:7000").value();
  world.run_for(10s);
  CHECK(left.failures.at(no_name) == Status::not_found);
  CHECK(left.failures.at(no_listener) == Status::refused);
  CHECK(left.failures.at(no_node) == Status::unreachable);
  CHECK(left.failures.size() == 3);
  CHECK(left.connections.contains(fine));
  CHECK(right.accepted == 1);
}

TEST_CASE("sim_net__one_name_in_two_networks__means_two_nodes") {
  World world(4);
  Fabric fabric(world);
  const NodeId a = world.add_node("a"), b = world.add_node("b"), r = world.add_node("r");
  Peer on_east(fabric, a, at("east", "10.0.0.2"), 0), on_west(fabric, b, at("west", "10.0.0.2"), 0);
  Peer east_side(fabric, r, at("east", "10.0.0.1"), 0), west_side(fabric, r, at("west", "10.0.0.1"), 0);
  (void)east_side.net.dial("sim://10.0.0.2:7000").value();
  world.run_for(1s);
  CHECK(on_east.accepted == 1);
  CHECK(on_west.accepted == 0);
  (void)west_side.net.dial("sim://10.0.0.2:7000").value();
  world.run_for(1s);
  CHECK(on_west.accepted == 1);
}

TEST_CASE("sim_net__peer_does_not_read__sender_is_stopped_at_the_window") {
  World world(5);
  LinkOptions link = nasty();
  Fabric fabric(world, link);
  const NodeId a = world.add_node("a"), b = world.add_node("b");
  Peer left(fabric, a, at("lan", "a"), 1'000'000);
  SimNet right(fabric, b, at("lan", "b"));  // never polls
  const StreamId id = left.net.dial("sim://b:7000").value();
  world.run_for(10s);
  CHECK(left.connections.at(id).sent == link.window_bytes);
}

TEST_CASE("sim_net__accept_paused__streams_wait_with_their_bytes") {
  World world(6);
  Fabric fabric(world);
  const NodeId a = world.add_node("a"), b = world.add_node("b");
  Peer left(fabric, a, at("lan", "a"), 5000), right(fabric, b, at("lan", "b"), 0);
  right.net.pause_accept(true);
  (void)left.net.dial("sim://b:7000").value();
  world.run_for(1s);
  CHECK(left.connected == 1);
  CHECK(right.accepted == 0);
  right.net.pause_accept(false);
  world.run_for(1s);
  REQUIRE(right.accepted == 1);
  CHECK(right.connections.begin()->second.got == Peer::pattern(5000));
}

TEST_CASE("sim_net__node_crashes__peer_learns_at_once_or_when_it_speaks_to_the_new_one") {
  for (const double half_open : {0.0, 1.0}) {
    CAPTURE(half_open);
    World world(8);
    LinkOptions link;
    link.half_open_chance = half_open;
    Fabric fabric(world, link);
    const NodeId a = world.add_node("a"), b = world.add_node("b");
    Peer left(fabric, a, at("lan", "a"), 1000);
    auto right = std::make_unique<Peer>(fabric, b, at("lan", "b"), 1000);
    const StreamId id = left.net.dial("sim://b:7000").value();
    world.run_for(1s);
    CHECK(left.connections.at(id).got.size() == 1000);
    world.crash(b);
    right.reset();
    world.run_for(10s);
    CHECK(left.failures.contains(id) == (half_open == 0.0));
    world.restart(b);
    left.to_send = 2000;
    world.wake(a);
    world.run_for(10s);
    CHECK(left.failures.at(id) == Status::disconnected);
  }
}

TEST_CASE("sim_net__process_ends__peers_see_its_streams_end") {
  World world(9);
  Fabric fabric(world);
  const NodeId a = world.add_node("a"), b = world.add_node("b");
  Peer left(fabric, a, at("lan", "a"), 1000);
  auto right = std::make_unique<Peer>(fabric, b, at("lan", "b"), 1000);
  const StreamId id = left.net.dial("sim://b:7000").value();
  world.run_for(1s);
  right.reset();
  world.run_for(1s);
  CHECK(left.connections.at(id).closed);
  const StreamId again = left.net.dial("sim://b:7000").value();
  world.run_for(1s);
  CHECK(left.failures.at(again) == Status::refused);
}

TEST_CASE("sim_net__resets_by_chance__both_ends_are_told") {
  World world(10);
  LinkOptions link;
  link.reset_mean = 5ms;
  Fabric fabric(world, link);
  const NodeId a = world.add_node("a"), b = world.add_node("b");
  Peer left(fabric, a, at("lan", "a"), 1'000'000), right(fabric, b, at("lan", "b"), 0);
  for (int i = 0; i < 20; ++i) (void)left.net.dial("sim://b:7000").value();
  world.run_for(60s);
  CHECK(left.failures.size() == 20);
  for (const auto& [id, connection] : right.connections) {
    CHECK((connection.failed || connection.closed));
    CHECK(Peer::pattern(1'000'000).starts_with(connection.got));
  }
}

TEST_CASE("sim_net__address_cut__packets_wait_until_it_is_joined") {
  World world(11);
  Fabric fabric(world);
  const NodeId a = world.add_node("a"), b = world.add_node("b");
  Peer left(fabric, a, at("lan", "a"), 1000), right(fabric, b, at("lan", "b"), 0);
  const StreamId id = left.net.dial("sim://b:7000").value();
  world.run_for(1s);
  fabric.cut("lan", "b");
  left.to_send = 3000;
  world.wake(a);
  const StreamId blocked = left.net.dial("sim://b:7000").value();
  world.run_for(10s);
  CHECK(left.failures.at(blocked) == Status::unreachable);
  CHECK(right.connections.begin()->second.got.size() == 1000);
  fabric.join("lan", "b");
  world.run_for(1s);
  CHECK(right.connections.begin()->second.got == Peer::pattern(3000));
  CHECK_FALSE(left.connections.at(id).failed);
}
