// RDMA transports in the simulated world, with sinks that write everything down, and a peer that posts what it likes.
#pragma once
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/counters.h"
#include "core/cci/memory_table.h"
#include "core/wire/connection_frames.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "tests/unit/connection/recorder.h"
#include "transports/rdma/limits.h"
#include "transports/rdma/packets.h"
#include "transports/rdma/rdma_transport.h"
#include "transports/sim/sim_rdma.h"

namespace ccixfer::rdma::testing {

using namespace std::chrono_literals;
using ccixfer::testing::Buffer;
using ccixfer::testing::Recorder;
using ports::ConnectionId;

struct End final : sim::Actor {
  End(sim::RdmaFabric& fabric, const std::string& name, const ports::TransportOptions& options, uint64_t seed,
      std::shared_ptr<connection::HopTrust> trust = nullptr)
      : world(fabric.world()), node(world.add_node(name)), entropy(seed) {
    transport = std::make_unique<RdmaTransport>(options, std::make_unique<sim::SimRdmaNet>(fabric, node, name, uint16_t{1}),
                                                counters, std::move(trust));
    transport->bind(sink, target);
    memory.attach(target, *transport);
    world.add_actor(node, this);
  }
  ~End() override {
    world.remove_actor(node, this);
    stop();
  }
  void stop() {
    if (transport == nullptr) return;
    memory.detach(target);
    transport.reset();
  }
  void turn(Instant now) override {
    if (transport != nullptr && !frozen) transport->turn(now);
  }
  [[nodiscard]] Instant next_deadline() const override {
    return transport == nullptr || frozen ? never : transport->next_deadline();
  }
  [[nodiscard]] std::optional<Status> status_of(uint64_t token) const {
    for (const auto& completion : sink.completions) {
      if (completion.token == token) return completion.status;
    }
    return std::nullopt;
  }
  [[nodiscard]] Status send(ConnectionId id, const Buffer& message, uint64_t token) {
    const Bytes part(message);
    const Status status = transport->send(id, {&part, 1}, token);
    world.wake(node);
    return status;
  }
  // The whole of `local`, which is registered, with the beginning of `remote`.
  [[nodiscard]] Status rma(bool write, ConnectionId id, const ports::Handle& local, Buffer& bytes, const ports::Handle& remote,
                           uint64_t token) {
    ports::RmaRequest request;
    request.write = write;
    request.remote.handle = remote;
    request.local.region = local;
    REQUIRE(memory.local_key(target, local, request.local.key) == Status::success);
    request.source = write ? Bytes(bytes) : Bytes{};
    request.destination = write ? MutableBytes{} : MutableBytes(bytes);
    const Status status = transport->rma(id, request, token);
    world.wake(node);
    return status;
  }

  sim::World& world;
  sim::NodeId node;
  Counters counters;
  sim::SimEntropy entropy;
  cci::MemoryTable memory{entropy, counters};
  ports::RmaTarget& target = memory.target_of_another_transport();
  Recorder sink;
  bool frozen = false;
  std::unique_ptr<RdmaTransport> transport;
};

class Rig {
 public:
  explicit Rig(const sim::RdmaLinkOptions& link = {}, const ports::TransportOptions& options = {}, uint64_t seed = 1,
               const std::shared_ptr<connection::HopTrust>& of_a = nullptr,
               const std::shared_ptr<connection::HopTrust>& of_b = nullptr)
      : world(seed),
        fabric(world, link),
        a(fabric, "a", options, seed * 2 + 1, of_a),
        b(fabric, "b", options, seed * 2 + 2, of_b) {}
  ~Rig() {
    for (const std::string& violation : world.violations()) FAIL_CHECK(violation);
  }

  bool run(const std::function<bool()>& done, Duration limit = 60s) {
    return world.run_until(done, after(world.now(), limit)) == sim::RunEnd::reached;
  }
  void pass(Duration duration) { static_cast<void>(world.run_for(duration)); }

  void connect(ports::Attribute attribute = ports::Attribute::reliable_ordered) {
    ports::DialRequest dial;
    const std::string uri = b.transport->uri();
    dial.uri = uri;
    dial.attribute = attribute;
    const auto id = a.transport->dial(dial);
    REQUIRE(id);
    at_a = *id;
    world.wake(a.node);
    REQUIRE(run([&] { return !b.sink.requests.empty(); }));
    at_b = b.sink.requests.back();
    REQUIRE(b.transport->accept(at_b) == Status::success);
    world.wake(b.node);
    REQUIRE(run([&] { return !b.sink.accepted.empty(); }));
    REQUIRE(a.sink.connected.back().status == Status::success);
    REQUIRE(b.sink.accepted.back().status == Status::success);
  }

  sim::World world;
  sim::RdmaFabric fabric;
  End a;
  End b;
  ConnectionId at_a;
  ConnectionId at_b;
};

inline Buffer filled(size_t size, uint64_t seed) {
  sim::Random random(seed);
  Buffer bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

// Speaks to end `b` of a rig: packets and work by hand.
class RawPeer final : public RdmaEvents {
 public:
  explicit RawPeer(Rig& rig, const std::string& name = "p")
      : rig_(rig), node_(rig.world.add_node(name)), net(rig.fabric, node_, name, 1) {
    pair = *net.dial("sim-rdma://b:1");
    settle();
    REQUIRE(is_connected);
  }
  void requested(PairId, std::string_view) override {}
  void connected(PairId) override { is_connected = true; }
  void closed(PairId, Status, std::string_view) override { is_closed = true; }
  void received(PairId, Bytes bytes) override { got.emplace_back(bytes.begin(), bytes.end()); }
  void completed(PairId, uint64_t, WorkStatus status) override { works.push_back(status); }
  void sendable(PairId) override {}
  void device_failed(std::string_view) override {}

  void settle(Duration time = 2ms) {
    for (int i = 0; i < 10; ++i) {
      rig_.pass(time / 10);
      net.poll(rig_.world.now(), *this);
    }
  }
  void packet(uint16_t credits, const std::function<void(wire::Writer&)>& records) {
    Buffer bytes;
    wire::Writer out(bytes);
    encode(out, PacketHeader{credits});
    records(out);
    raw(bytes);
  }
  void raw(const Buffer& bytes) {
    const Bytes part(bytes);
    REQUIRE(net.post_send(pair, {&part, 1}));
    settle();
  }
  // A connection that `b` has accepted; its id there.
  ConnectionId open(ports::Attribute attribute = ports::Attribute::reliable_ordered) {
    wire::Hello hello;
    hello.attribute = attribute;
    hello.offer = {4000, 16, 8};
    packet(60, [&](wire::Writer& out) { wire::encode(out, hello); });
    REQUIRE_FALSE(rig_.b.sink.requests.empty());
    const ConnectionId id = rig_.b.sink.requests.back();
    REQUIRE(rig_.b.transport->accept(id) == Status::success);
    rig_.world.wake(rig_.b.node);
    settle();
    packet(0, [](wire::Writer& out) { wire::encode_empty(out, wire::Kind::connect_ack); });
    REQUIRE_FALSE(rig_.b.sink.accepted.empty());
    return id;
  }
  // The frames of this kind that came, whole.
  [[nodiscard]] std::vector<Buffer> frames(wire::Kind kind) const {
    std::vector<Buffer> found;
    for (const Buffer& packet : got) {
      Bytes rest = Bytes(packet).subspan(packet_header_bytes);
      while (!rest.empty()) {
        if (const auto record = record_kind(rest)) {
          rest = rest.subspan(record_bytes(*record));
          continue;
        }
        const auto prefix = wire::decode_prefix(rest);
        REQUIRE(prefix);
        const size_t size = size_t{prefix->header_bytes} + prefix->payload_bytes;
        if (prefix->kind == kind) found.emplace_back(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(size));
        rest = rest.subspan(size);
      }
    }
    return found;
  }
  // The first record that came in any packet, if it announces an operation.
  [[nodiscard]] std::optional<Announced> announced() const {
    for (const Buffer& packet : got) {
      const Bytes records = Bytes(packet).subspan(packet_header_bytes);
      const auto record = record_kind(records);
      if (record && *record != RecordKind::progress) return decode_announced(records.first(record_bytes(*record)));
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Status> answer(wire::Kind kind) const {
    const auto all = frames(kind);
    if (all.empty()) return std::nullopt;
    const auto end = wire::decode_rma_end(all.back());
    REQUIRE(end);
    return end->ending.status;
  }

 private:
  Rig& rig_;
  sim::NodeId node_;

 public:
  sim::SimRdmaNet net;
  PairId pair = 0;
  bool is_connected = false;
  bool is_closed = false;
  std::vector<Buffer> got;
  std::vector<WorkStatus> works;
};

}  // namespace ccixfer::rdma::testing
