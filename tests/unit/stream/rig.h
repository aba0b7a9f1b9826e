// Stream transports over a hub in virtual time, with sinks that write everything down.
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
#include "core/reliability/message_window.h"
#include "core/wire/connection_frames.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "tests/unit/stream/memory_net.h"
#include "transports/connection/allowed_frames.h"
#include "transports/connection/limits.h"
#include "transports/connection/rma_initiator.h"
#include "transports/connection/silent_diallers.h"
#include "transports/stream/limits.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::stream::testing {

using connection::RmaInitiator;
using connection::silence_when_crowded_max;
using connection::SilentDiallers;
using connection::State;
using reliability::copy_message;
using reliability::MessageBytes;
using reliability::MessageOwner;
using reliability::MessageReceiver;
using reliability::MessageSender;

using ports::ConnectionId;
using Buffer = std::vector<std::byte>;

struct Completion {
  uint64_t token;
  Status status;
};

// Writes down; takes messages while `buffers` lasts. Accepts every request if `accepts`.
struct Recorder final : ports::TransportSink {
  struct Ended {
    ConnectionId id;
    Status status;
    std::string reason;
  };
  std::vector<ConnectionId> requests;
  std::vector<Ended> connected, accepted, disconnected;
  std::deque<Buffer> messages;
  std::vector<Completion> completions;
  std::vector<uint64_t> locals;  // tokens
  size_t keepalive_timeouts = 0;
  std::vector<std::string> device_failed;
  size_t buffers = SIZE_MAX;
  std::optional<Buffer> open;
  size_t open_bytes = 0;
  size_t broken_messages = 0;

  void on_connect_request(ConnectionId request, ports::Role, ports::Attribute, Bytes) override { requests.push_back(request); }
  void on_connected(ConnectionId id, Status status, ports::ConnectionLimits, std::string_view reason) override {
    connected.push_back({id, status, std::string(reason)});
  }
  void on_accepted(ConnectionId id, Status status, ports::ConnectionLimits) override { accepted.push_back({id, status, {}}); }
  MutableBytes on_message_begin(ConnectionId, uint32_t length) override {
    REQUIRE_FALSE(open);
    if (buffers == 0) return {};
    --buffers;
    open.emplace(length + 1);  // never null, also for a message of no bytes
    open_bytes = length;
    return MutableBytes(*open).first(length);
  }
  void on_message_end(ConnectionId, bool complete) override {
    REQUIRE(open);
    if (complete) {
      messages.emplace_back(open->begin(), open->begin() + static_cast<std::ptrdiff_t>(open_bytes));
    } else {
      ++broken_messages;
    }
    open.reset();
  }
  void on_local_completion(ConnectionId, uint64_t token) override { locals.push_back(token); }
  void on_completion(ConnectionId, uint64_t token, ports::OperationResult ending) override {
    completions.push_back({token, ending.status});
  }
  void on_disconnected(ConnectionId id, Status status, std::string_view reason) override {
    disconnected.push_back({id, status, std::string(reason)});
  }
  void on_keepalive_timeout(ConnectionId) override { ++keepalive_timeouts; }
  void on_device_failed(std::string_view reason) override { device_failed.emplace_back(reason); }
};

class CountingEntropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override { return state_ += 0x9e3779b97f4a7c15; }

 private:
  uint64_t state_ = 1;
};

struct End {
  End(Hub& hub, const std::string& name, const ports::TransportOptions& options,
      std::shared_ptr<connection::HopTrust> trust = nullptr) {
    auto owned = std::make_unique<MemoryNet>(hub, name);
    net = owned.get();
    transport = std::make_unique<StreamTransport>(options, std::move(owned), counters, std::move(trust));
    transport->bind(sink, memory);
  }
  Counters counters;
  CountingEntropy entropy;
  cci::MemoryTable memory{entropy, counters};
  Recorder sink;
  MemoryNet* net = nullptr;
  std::unique_ptr<StreamTransport> transport;
  [[nodiscard]] std::optional<Status> status_of(uint64_t token) const {
    for (const Completion& completion : sink.completions) {
      if (completion.token == token) return completion.status;
    }
    return std::nullopt;
  }
};

class Rig {
 public:
  using Trust = std::shared_ptr<connection::HopTrust>;
  explicit Rig(const ports::TransportOptions& options = {}, Trust of_a = nullptr, Trust of_b = nullptr)
      : a(hub, "a", options, std::move(of_a)), b(hub, "b", options, std::move(of_b)) {}

  // Turns both until `done`, time jumping to the next deadline when nothing moves; false: not within `limit` or nothing left to do.
  bool run(const std::function<bool()>& done, Duration limit = std::chrono::seconds(300)) {
    const Instant end = now + limit;
    for (uint64_t turns = 0; turns < 1'000'000; ++turns) {
      a.transport->turn(now);
      b.transport->turn(now);
      if (done()) return true;
      if (!a.net->quiet() || !b.net->quiet()) continue;
      const Instant next = std::min(a.transport->next_deadline(), b.transport->next_deadline());
      if (next == never || next > end) return false;
      now = std::max(now, next);
    }
    FAIL("it spins");
    return false;
  }
  void settle() {
    static_cast<void>(run([] { return false; }, Duration{0}));
  }
  void pass(Duration duration) {
    const Instant end = now + duration;
    static_cast<void>(run([] { return false; }, duration));
    now = end;
    settle();
  }

  // Both ends of a connection, accepted.
  void connect(ports::Attribute attribute = ports::Attribute::reliable_ordered) {
    const size_t requests = b.sink.requests.size();
    const size_t connected = a.sink.connected.size();
    const size_t accepted = b.sink.accepted.size();
    ports::DialRequest dial;
    dial.uri = "mem://b";
    dial.attribute = attribute;
    const auto id = a.transport->dial(dial);
    REQUIRE(id);
    at_a = *id;
    REQUIRE(run([&] { return b.sink.requests.size() > requests; }));
    at_b = b.sink.requests.back();
    REQUIRE(b.transport->accept(at_b) == Status::success);
    REQUIRE(run([&] { return a.sink.connected.size() > connected && b.sink.accepted.size() > accepted; }));
    REQUIRE(a.sink.connected.back().status == Status::success);
    REQUIRE(b.sink.accepted.back().status == Status::success);
  }

  [[nodiscard]] Status send(End& end, ConnectionId id, const Buffer& message, uint64_t token) {
    const Bytes part(message);
    return end.transport->send(id, {&part, 1}, token);
  }

  Hub hub;
  Instant now{std::chrono::seconds(1000)};
  End a;
  End b;
  ConnectionId at_a;
  ConnectionId at_b;
};

inline Buffer bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}
inline Buffer filled(size_t size, uint8_t seed) {
  Buffer bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed + i * 7 + i / 251);
  return bytes;
}

// A stream whose bytes are the test's: frames by hand, to and from a transport of a rig.
class RawStream {
 public:
  RawStream(Rig& rig, const std::string& name) : rig_(rig), net_(rig.hub, name) {}
  void say(const ConstIoSpan& span) { static_cast<void>(net_.send(id_, {&span, 1})); }
  void write(const Buffer& bytes) {
    const ConstIoSpan span{bytes.data(), bytes.size()};
    static_cast<void>(net_.send(id_, {&span, 1}));
    rig_.settle();
    read();
  }
  template <typename Encode>
  void frame(Encode encode_to, const Buffer& payload = {}) {
    Buffer out;
    wire::Writer writer(out);
    encode_to(writer);
    out.insert(out.end(), payload.begin(), payload.end());
    write(out);
  }
  void read(size_t chunk_bytes = 65536, size_t chunks_max = SIZE_MAX) {
    Buffer chunk(chunk_bytes);
    for (size_t i = 0; i < chunks_max; ++i) {
      const IoSpan span{chunk.data(), chunk.size()};
      const int64_t n = net_.recv(id_, {&span, 1});
      if (n <= 0) {
        closed = closed || n != io_again;
        return;
      }
      got.insert(got.end(), chunk.begin(), chunk.begin() + n);
    }
  }
  // The kinds of the frames that came, headers only.
  [[nodiscard]] std::vector<wire::Kind> kinds() const {
    std::vector<wire::Kind> list;
    size_t at = 0;
    while (const auto prefix = wire::decode_prefix(Bytes(got).subspan(at))) {
      list.push_back(prefix->kind);
      at += prefix->header_bytes + prefix->payload_bytes;
      if (at > got.size()) break;
    }
    return list;
  }
  Buffer got;
  bool closed = false;

 protected:
  Rig& rig_;
  MemoryNet net_;
  StreamId id_ = 0;
};

// A peer that writes what it likes: it dials transport `b` of a rig.
class RawPeer : public RawStream {
 public:
  RawPeer(Rig& rig, const std::string& name) : RawStream(rig, name) {
    id_ = *net_.dial("mem://b");
    net_.poll(rig.now, [](const StreamEvent&) {});
  }
  void hello(const wire::Hello& frame) {
    this->frame([&](wire::Writer& w) { wire::encode(w, frame); });
  }
  [[nodiscard]] static wire::Hello usual() {
    wire::Hello hello;
    hello.offer = {8192, 16, 8};
    return hello;
  }
  // An open connection; its id at `b`.
  ConnectionId open() {
    hello(usual());
    REQUIRE_FALSE(rig_.b.sink.requests.empty());
    const ConnectionId id = rig_.b.sink.requests.back();
    REQUIRE(rig_.b.transport->accept(id) == Status::success);
    rig_.settle();
    frame([](wire::Writer& w) { wire::encode_empty(w, wire::Kind::connect_ack); });
    REQUIRE_FALSE(rig_.b.sink.accepted.empty());
    REQUIRE(rig_.b.sink.accepted.back().status == Status::success);
    got.clear();
    return id;
  }
};

// Speaks to end `a` of a rig, which dials it.
class RawAcceptor : public RawStream {
 public:
  explicit RawAcceptor(Rig& rig) : RawStream(rig, "q") {}
  ConnectionId dial(ports::DialRequest request = {}) {
    request.uri = "mem://q";
    const auto id = rig_.a.transport->dial(request);
    REQUIRE(id);
    rig_.settle();
    net_.poll(rig_.now, [&](const StreamEvent& event) {
      if (event.type == StreamEventType::accepted) id_ = event.id;
    });
    REQUIRE(id_ != 0);
    rig_.settle();
    read();
    return *id;
  }
  void reply(const wire::HelloReply& frame) {
    this->frame([&](wire::Writer& w) { wire::encode(w, frame); });
  }
  void empty(wire::Kind kind) {
    frame([&](wire::Writer& w) { wire::encode_empty(w, kind); });
  }
  void message(uint64_t number) {
    const Buffer payload = filled(10, 1);
    frame([&](wire::Writer& w) { wire::encode(w, wire::Message{number, 0, wire::payload_check_of(payload)}, 10); }, payload);
  }
  [[nodiscard]] static wire::HelloReply usual() {
    wire::HelloReply reply;
    reply.offer = {8192, 16, 8};
    return reply;
  }
  void open() {
    reply(usual());
    empty(wire::Kind::connect_accept);
    REQUIRE(rig_.a.sink.connected.size() == 1);
    REQUIRE(rig_.a.sink.connected[0].status == Status::success);
    got.clear();
  }
};

}  // namespace ccixfer::stream::testing
