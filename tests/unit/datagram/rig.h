// Datagram transports in the simulated world, with sinks that write everything down, and a peer that writes what it likes.
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
#include "core/reliability/rtt.h"
#include "tests/unit/connection/recorder.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/datagram/frames.h"
#include "transports/datagram/limits.h"
#include "transports/sim/sim_datagram.h"

namespace ccixfer::datagram::testing {

using namespace std::chrono_literals;
using ccixfer::testing::Buffer;
using ccixfer::testing::Recorder;
using ports::ConnectionId;

struct End final : sim::Actor {
  End(sim::DatagramFabric& fabric, const std::string& name, const DatagramOptions& options, uint64_t seed,
      std::shared_ptr<connection::HopTrust> trust = nullptr)
      : world(fabric.world()), node(world.add_node(name)), entropy(seed) {
    auto owned = std::make_unique<sim::SimDatagramNet>(fabric, node, name, uint16_t{1});
    net = owned.get();
    transport = std::make_unique<DatagramTransport>(options, std::move(owned), entropy, counters, std::move(trust));
    transport->bind(sink, memory);
    world.add_actor(node, this);
  }
  ~End() override {
    world.remove_actor(node, this);
    transport.reset();
  }
  void turn(Instant now) override {
    if (transport != nullptr) transport->turn(now);
  }
  [[nodiscard]] Instant next_deadline() const override { return transport == nullptr ? never : transport->next_deadline(); }
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
  [[nodiscard]] Status rma(ConnectionId id, const ports::RmaRequest& request, uint64_t token) {
    const Status status = transport->rma(id, request, token);
    world.wake(node);
    return status;
  }

  sim::World& world;
  sim::NodeId node;
  Counters counters;
  sim::SimEntropy entropy;
  cci::MemoryTable memory{entropy, counters};
  Recorder sink;
  sim::SimDatagramNet* net = nullptr;
  std::unique_ptr<DatagramTransport> transport;
};

class Rig {
 public:
  explicit Rig(const sim::DatagramLinkOptions& link = {}, const ports::TransportOptions& options = {}, uint64_t seed = 1,
               reliability::Congestion congestion = reliability::Congestion::new_reno,
               std::shared_ptr<connection::HopTrust> of_a = nullptr, std::shared_ptr<connection::HopTrust> of_b = nullptr,
               std::shared_ptr<reliability::PathMemory> paths_of_a = nullptr)
      : world(seed),
        fabric(world, link),
        a(fabric, "a", {options, congestion, std::move(paths_of_a)}, seed * 2 + 1, std::move(of_a)),
        b(fabric, "b", {options, congestion}, seed * 2 + 2, std::move(of_b)) {}

  bool run(const std::function<bool()>& done, Duration limit = 60s) {
    return world.run_until(done, after(world.now(), limit)) == sim::RunEnd::reached;
  }
  void pass(Duration duration) { static_cast<void>(world.run_for(duration)); }

  void connect(ports::Attribute attribute = ports::Attribute::reliable_ordered) {
    ports::DialRequest dial;
    const std::string uri = b.transport->uri();
    dial.uri = uri;
    dial.attribute = attribute;
    const size_t requests = b.sink.requests.size();
    const size_t accepted = b.sink.accepted.size();
    const auto id = a.transport->dial(dial);
    REQUIRE(id);
    at_a = *id;
    world.wake(a.node);
    REQUIRE(run([&] { return b.sink.requests.size() > requests; }));
    at_b = b.sink.requests.back();
    REQUIRE(b.transport->accept(at_b) == Status::success);
    world.wake(b.node);
    REQUIRE(run([&] { return b.sink.accepted.size() > accepted; }));
    REQUIRE(a.sink.connected.back().status == Status::success);
    REQUIRE(b.sink.accepted.back().status == Status::success);
  }

  sim::World world;
  sim::DatagramFabric fabric;
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

// Speaks to end `b` of a rig: packets by hand.
class RawPeer final : public DatagramEvents {
 public:
  RawPeer(Rig& rig, const std::string& name) : rig_(rig), node_(rig.world.add_node(name)), net_(rig.fabric, node_, name, 1) {
    static_cast<void>(*net_.resolve("sim-datagram://b:1"));
    net_.poll(rig.world.now(), *this);
    REQUIRE(b.port == 1);
  }
  void received(std::span<const Datagram> batch) override {
    for (const Datagram& datagram : batch) {
      REQUIRE(datagram.peer == b);
      got.emplace_back(datagram.bytes.begin(), datagram.bytes.end());
    }
  }
  void resolved(uint64_t, Status, const Address& address, std::string_view) override { b = address; }
  void writable() override {}

  void send(Bytes datagram) {
    const Datagram one{b, datagram};
    REQUIRE(net_.send({&one, 1}).taken == 1);
    settle();
  }
  void settle() {
    rig_.pass(5ms);
    net_.poll(rig_.world.now(), *this);
  }
  [[nodiscard]] Buffer packet(const PacketHeader& header, const std::function<void(wire::Writer&)>& body, size_t pad_to = 0) const {
    Buffer bytes;
    wire::Writer out(bytes);
    begin_packet(out, header);
    body(out);
    if (out.position() + packet_check_bytes < pad_to) out.zeros(pad_to - packet_check_bytes - out.position());
    end_packet(out);
    return bytes;
  }
  [[nodiscard]] static Hello usual() {
    Hello hello;
    hello.attempt = 1;
    hello.offer = {4000, 16, 8};
    hello.datagram_bytes = 8192;
    return hello;
  }
  [[nodiscard]] Buffer hello(const Hello& greeting, uint64_t from_key = 77) const {
    return packet(
        {PacketKind::hello, packet_version, 0, 5, from_key, 0}, [&](wire::Writer& out) { encode(out, greeting); }, hello_bytes_min);
  }
  // The cookie of the retry that came last.
  [[nodiscard]] Cookie cookie() const {
    REQUIRE_FALSE(got.empty());
    const auto retry = open_packet(got.back());
    REQUIRE(retry);
    REQUIRE(retry->header.kind == PacketKind::retry);
    return decode_cookie(retry->body).value();
  }
  // Hello, and once more with the cookie: then the application of `b` is asked. What was said last.
  Hello knock(Hello greeting = usual(), uint64_t from_key = 77) {
    send(hello(greeting, from_key));
    greeting.cookie = cookie();
    send(hello(greeting, from_key));
    return greeting;
  }
  // A connection that `b` has accepted; its id there.
  ConnectionId open(ports::Attribute attribute = ports::Attribute::reliable_ordered, uint64_t from_key = 77) {
    Hello greeting = usual();
    greeting.attribute = attribute;
    return open_by(greeting, from_key);
  }
  ConnectionId open_by(const Hello& greeting, uint64_t from_key = 77) {
    const size_t requests = rig_.b.sink.requests.size();
    knock(greeting, from_key);
    REQUIRE(rig_.b.sink.requests.size() == requests + 1);
    const auto reply = open_packet(got.back());
    REQUIRE(reply);
    wire::Reader in(reply->body);
    const auto frame = decode_frame(in);
    REQUIRE(frame);
    REQUIRE(std::holds_alternative<HelloReplyFrame>(*frame));
    index = reply->header.source;
    key = std::get<HelloReplyFrame>(*frame).key;
    REQUIRE(rig_.b.transport->accept(rig_.b.sink.requests.back()) == Status::success);
    rig_.world.wake(rig_.b.node);
    settle();
    frames([](wire::Writer& out) { encode_ack(out, ack_to(1), 100); });
    REQUIRE(rig_.b.sink.accepted.size() == requests + 1);
    REQUIRE(rig_.b.sink.accepted.back().status == Status::success);
    got.clear();
    return rig_.b.sink.requests.back();
  }
  [[nodiscard]] static reliability::Ack ack_to(uint64_t largest) {
    reliability::Ack ack;
    ack.count = 1;
    ack.list[0] = {0, largest};
    return ack;
  }
  void frames(const std::function<void(wire::Writer&)>& body) { frames_as(number++, body); }
  void frames_as(uint64_t packet_number, const std::function<void(wire::Writer&)>& body) {
    send(packet({PacketKind::data, packet_version, index, 5, key, packet_number}, body));
  }
  // In the short form of a packet, as chunks come.
  void frames_short(const std::function<void(wire::Writer&)>& body) { frames_short_as(number++, body); }
  void frames_short_as(uint64_t packet_number, const std::function<void(wire::Writer&)>& body) {
    send(packet({PacketKind::data, packet_version, index, 0, key, packet_number, true}, body));
  }
  // The frames of that type that came.
  template <typename Kind>
  [[nodiscard]] std::vector<Kind> all() const {
    std::vector<Kind> list;
    for (const Buffer& datagram : got) {
      const auto packet = open_packet(datagram);
      REQUIRE(packet);
      if (packet->header.kind != PacketKind::data) continue;
      wire::Reader in(packet->body);
      while (in.remaining() > 0) {
        const auto frame = decode_frame(in);
        REQUIRE(frame);
        if (const Kind* kind = std::get_if<Kind>(&*frame)) list.push_back(*kind);
      }
    }
    return list;
  }
  [[nodiscard]] size_t count(PacketKind kind) const {
    size_t count = 0;
    for (const Buffer& datagram : got) count += open_packet(datagram)->header.kind == kind ? 1u : 0u;
    return count;
  }

  Address b;
  [[nodiscard]] const Address& address() const { return net_.address(); }
  std::deque<Buffer> got;
  uint32_t index = 0;
  uint64_t key = 0;
  uint64_t number = 0;

 private:
  Rig& rig_;
  sim::NodeId node_;
  sim::SimDatagramNet net_;
};

}  // namespace ccixfer::datagram::testing
