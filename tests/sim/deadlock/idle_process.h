// A process with connections on which nothing happens, between two peers that speak the routing
// messages by themselves. What it allocates is counted: its own bytes, those of its connections and
// those of its endpoints. The network below is not counted, nor are the peers.
#pragma once
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cci/endpoint.h"
#include "core/cci/memory_table.h"
#include "routing/transport/messages.h"
#include "tests/sim/heap.h"
#include "tests/unit/stream/memory_net.h"
#include "transports/sim/random.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::routing::test {

using ccixfer::testing::HeapAccount;
using ccixfer::testing::HeapScope;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using stream::testing::Hub;
using stream::testing::MemoryNet;

inline constexpr size_t idle_count = 1000;
inline constexpr uint32_t fragment_bytes = 64u << 10;

// A network whose own memory is on nobody's account, though calls come from what is counted.
class OutsideNet final : public stream::StreamNet {
 public:
  OutsideNet(std::unique_ptr<StreamNet> net, HeapAccount& account) : net_(std::move(net)), account_(account) {}
  ~OutsideNet() override {
    const HeapScope outside(nullptr);
    net_.reset();
  }
  [[nodiscard]] std::string_view scheme() const override { return net_->scheme(); }
  [[nodiscard]] std::string uri() const override { return net_->uri(); }
  [[nodiscard]] Result<stream::StreamId> dial(std::string_view uri) override {
    const HeapScope outside(nullptr);
    return net_->dial(uri);
  }
  void close(stream::StreamId id) override {
    const HeapScope outside(nullptr);
    net_->close(id);
  }
  void pause_accept(bool paused) override { net_->pause_accept(paused); }
  int64_t recv(stream::StreamId id, std::span<const stream::IoSpan> into) override {
    const HeapScope outside(nullptr);
    return net_->recv(id, into);
  }
  int64_t send(stream::StreamId id, std::span<const stream::ConstIoSpan> from) override {
    const HeapScope outside(nullptr);
    return net_->send(id, from);
  }
  void poll(Instant now, const std::function<void(const stream::StreamEvent&)>& event) override {
    const HeapScope outside(nullptr);
    net_->poll(now, [&](const stream::StreamEvent& each) {
      const HeapScope inside(&account_);
      event(each);
    });
  }
  void set_deadline(Instant at) override {
    const HeapScope outside(nullptr);
    net_->set_deadline(at);
  }
  [[nodiscard]] int os_handle() const override { return net_->os_handle(); }

 private:
  std::unique_ptr<StreamNet> net_;
  HeapAccount& account_;
};

// The processes of a test. What is allocated on `account` is counted.
struct Host {
  explicit Host(uint64_t seed) : entropy(seed), memory(std::make_shared<cci::MemoryTable>(entropy, counters)) {}
  std::unique_ptr<cci::Endpoint> listen(Hub& hub, const std::string& name) {
    auto net = std::make_unique<OutsideNet>(std::make_unique<MemoryNet>(hub, name), account);
    auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{}, std::move(net), counters);
    return std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters);
  }
  HeapAccount account;
  Counters counters;
  sim::SimEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
};

// An end that speaks the routing messages by itself: it accepts, and answers every request.
struct End : Host {
  End(Hub& hub, const std::string& name, uint64_t seed)
      : Host(seed), endpoint(listen(hub, name)), data(fragment_bytes), region(memory->register_region(MutableBytes(data), 3)) {}
  void say(cci::Connection connection, const std::vector<std::byte>& message) {
    REQUIRE(endpoint->send(connection, Bytes(message), 0, true) == Status::success);
  }
  void dial(const std::string& uri, ports::Role role) {
    cci::ConnectOptions how;
    how.role = role;
    REQUIRE(endpoint->connect(uri, how));
  }
  void turn(Instant now) {
    endpoint->turn(now);
    while (auto event = endpoint->get_event()) take(*event);
  }
  void take(cci::Event& event) {
    if (event.type == cci::EventType::connect_request) REQUIRE(endpoint->accept(event, 0) == Status::success);
    if (event.type == cci::EventType::connect) connections.push_back(event.connection);
    if (event.type == cci::EventType::disconnected) ++lost;
    if (event.type != cci::EventType::receive) return;
    const auto kind = kind_of(event.data());
    if (kind == MessageKind::connect_request) {
      std::vector<std::byte> reply;
      encode(ConnectReply{Status::success, {}, 1392, 1u << 20, beyond, 0}, reply);
      say(event.connection, reply);
    }
    if (kind == MessageKind::connect_reply) ++replies;
    if (kind == MessageKind::message) ++messages;
    if (kind == MessageKind::fragment_ack) ++acks;
  }
  std::unique_ptr<cci::Endpoint> endpoint;
  std::vector<std::byte> data;
  ports::Handle region;
  std::vector<cci::Connection> connections;
  std::vector<ports::HopInfo> beyond;  // of which its replies tell
  size_t replies = 0, messages = 0, acks = 0, lost = 0;
};

inline ConnectRequest usual_request() {
  ConnectRequest request;
  request.destination = "cci://1:2:10.2.0.2:7000";
  request.source = {1, 1};
  request.max_send_bytes = 1392;
  request.fragment_bytes = fragment_bytes;
  return request;
}

// left - middle - right.
struct Three {
  bool run(const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      now += microseconds(10);
      left.turn(now);
      {
        const HeapScope counted(&middle.account);
        turn(now);
      }
      right.turn(now);
    }
    return done();
  }
  // From the left, until the middle has answered.
  void open_left(size_t more) {
    const size_t before = left.connections.size();
    for (size_t i = 0; i < more; ++i) left.dial("mem://10.1.0.1:7000", ports::Role::hop);
    REQUIRE(run([&] { return left.connections.size() == before + more; }));
    std::vector<std::byte> message, ack;
    encode(usual_request(), message);
    encode_plain(MessageKind::connect_ack, ack);
    for (size_t i = before; i < before + more; ++i) left.say(left.connections[i], message);
    REQUIRE(run([&] { return left.replies == before + more; }));
    for (size_t i = before; i < before + more; ++i) left.say(left.connections[i], ack);
  }
  void rest() {
    for (int i = 0; i < 20; ++i) {
      now += milliseconds(50);
      run([&, end = after(now, microseconds(100))] { return now >= end; });
    }
  }
  Hub hub;
  Instant now = Instant{} + std::chrono::seconds(1);
  End left{hub, "10.1.0.2:7000", 1}, right{hub, "10.2.0.2:7000", 2};
  Host middle{3};
  std::function<void(Instant)> turn;
};

// A process in the middle that has the same connections and says as much on them, and nothing else:
// right answers what it is asked, and so does the middle.
struct Plain : Three {
  Plain() {
    const HeapScope counted(&middle.account);
    accepting = middle.listen(hub, "10.1.0.1:7000");
    dialling = middle.listen(hub, "10.2.0.1:7000");
    turn = [this](Instant at) {
      for (cci::Endpoint* each : {accepting.get(), dialling.get()}) {
        each->turn(at);
        while (auto event = each->get_event()) take(*each, *event);
      }
    };
  }
  void take(cci::Endpoint& endpoint, cci::Event& event) {
    if (event.type == cci::EventType::connect_request) REQUIRE(endpoint.accept(event, 1) == Status::success);
    if (event.type == cci::EventType::connect) {
      std::vector<std::byte> message;
      encode(usual_request(), message);
      REQUIRE(endpoint.send(event.connection, Bytes(message), 0, true) == Status::success);
    }
    if (event.type != cci::EventType::receive) return;
    const auto kind = kind_of(event.data());
    if (kind == MessageKind::connect_reply) {
      ++answered;
      std::vector<std::byte> ack;
      encode_plain(MessageKind::connect_ack, ack);
      REQUIRE(endpoint.send(event.connection, Bytes(ack), 0, true) == Status::success);
    }
    if (kind == MessageKind::connect_request) {
      std::vector<std::byte> reply;
      encode(ConnectReply{Status::success, {}, 1392, 1u << 20, {}, 0}, reply);
      REQUIRE(endpoint.send(event.connection, Bytes(reply), 0, true) == Status::success);
    }
  }
  void open(size_t more) {
    dial(more);
    accept(more);
  }
  void dial(size_t more) {
    const size_t before = answered;
    for (size_t i = 0; i < more; ++i) {
      cci::ConnectOptions how;
      how.role = ports::Role::hop;
      const HeapScope counted(&middle.account);
      REQUIRE(dialling->connect("mem://10.2.0.2:7000", how));
    }
    REQUIRE(run([&] { return answered == before + more; }));
    rest();
  }
  void accept(size_t more) {
    open_left(more);
    rest();
  }
  std::unique_ptr<cci::Endpoint> accepting, dialling;
  size_t answered = 0;
};

// `open(n)` opens n connections more.
template <typename Open>
size_t bytes_of_one(const Three& met, const Open& open) {
  open(100);  // what as many at once need, such as buffers for what they receive, others need no more
  const size_t before = met.middle.account.bytes();
  for (size_t i = 0; i < idle_count; i += 100) open(100);
  return (met.middle.account.bytes() - before) / idle_count;
}

}  // namespace ccixfer::routing::test
