// A plain endpoint that speaks the routing messages by itself, as an end, a router or an administrator, and says what it likes:
// none of the product's own checks is in the way. It asserts nothing, so that the fuzz targets have it too.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cci/endpoint.h"
#include "core/cci/memory_table.h"
#include "routing/map/record.h"
#include "routing/transport/messages.h"
#include "transports/sim/random.h"
#include "transports/sim/sim_net.h"
#include "transports/sim/world.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::routing::test {

// Which process it is: what it proves to its peers, on which host, if that has another one already.
struct Process {
  std::string identity = {};
  std::optional<sim::NodeId> node = {};
  uint16_t port = 7000;
};

class RawPeer final : public sim::Actor {
 public:
  RawPeer(sim::World& world, sim::Fabric& fabric, const std::string& network, const std::string& address,
          const ports::TransportOptions& options = {}, const Process& process = {})
      : world_(world), node_(process.node ? *process.node : world.add_node("raw " + address)), entropy_(world.random().next()) {
    memory = std::make_shared<cci::MemoryTable>(entropy_, counters_);
    sim::SimNetOptions net;
    net.networks = {{network, address}};
    net.port = process.port;
    net.identity = process.identity;
    auto transport =
        std::make_unique<stream::StreamTransport>(options, std::make_unique<sim::SimNet>(fabric, node_, net), counters_);
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters_);
    world.add_actor(node_, this);
  }
  ~RawPeer() override { freeze(true); }
  void turn(Instant now) override {
    endpoint->turn(now);
    while (auto event = endpoint->get_event()) {
      if (event->type == cci::EventType::connect_request) requests.push_back(now);
      if (event->type == cci::EventType::connect_request && accepts) static_cast<void>(endpoint->accept(*event, 1));
      if (event->type == cci::EventType::connect || event->type == cci::EventType::accept) {
        connection = event->connection;
        answered = true;
        words = event->reason;
      }
      if (event->type == cci::EventType::disconnected) {
        gone = true;
        lost = event->connection;
      }
      if (event->type == cci::EventType::send) ended.push_back(event->status);
      if (event->type == cci::EventType::receive) received.emplace_back(event->data().begin(), event->data().end());
      if (event->type == cci::EventType::receive && holds) held.push_back(std::move(*event));
    }
  }
  [[nodiscard]] Instant next_deadline() const override { return endpoint->next_deadline(); }

  // Dials, and waits for the answer; false: there is no connection.
  bool connect(const std::string& uri, ports::Role role) {
    answered = gone = false;
    received.clear();
    cci::ConnectOptions how;
    how.role = role;
    how.timeout = std::chrono::seconds(5);
    if (!endpoint->connect(uri, how)) return false;
    wake();
    run([&] { return answered; }, std::chrono::seconds(10));
    return static_cast<bool>(connection);
  }
  Status send(const std::vector<std::byte>& message) {
    const Status status = endpoint->send(connection, Bytes(message), 0, true);
    wake();
    return status;
  }
  template <typename Message>
  Status say(const Message& message) {
    std::vector<std::byte> bytes;
    encode(message, bytes);
    return send(bytes);
  }
  Status say_plain(MessageKind kind) {
    std::vector<std::byte> bytes;
    encode_plain(kind, bytes);
    return send(bytes);
  }
  // The latest message of that kind since the connect.
  [[nodiscard]] std::optional<Bytes> last(MessageKind kind) const {
    for (auto it = received.rbegin(); it != received.rend(); ++it) {
      if (kind_of(Bytes(*it)) == kind) return Bytes(*it);
    }
    return std::nullopt;
  }
  [[nodiscard]] uint32_t hop_payload_bytes() const {
    return endpoint->max_send_bytes(connection) - static_cast<uint32_t>(message_header_bytes);
  }

  // As an end: what it asks of a router, or of an application as its last router does.
  static ConnectRequest usual_request(const std::string& destination) {
    ConnectRequest request;
    request.destination = destination;
    request.source = {1, 1};
    request.max_send_bytes = 1392;
    request.fragment_bytes = 1u << 20;
    return request;
  }
  // As far as an open routed connection.
  bool open(const std::string& next, const std::string& destination) {
    if (!connect(next, ports::Role::hop) || say(usual_request(destination)) != Status::success) return false;
    if (!run([&] { return last(MessageKind::connect_reply).has_value(); }, std::chrono::seconds(10))) return false;
    if (decode_connect_reply(*last(MessageKind::connect_reply))->status != Status::success) return false;
    say_plain(MessageKind::connect_ack);
    world_.run_for(std::chrono::milliseconds(20));
    return true;
  }
  // As a router of that subnet.
  bool greet(const std::string& uri, uint64_t id, SubnetId subnet) {
    if (!connect(uri, ports::Role::router)) return false;
    say(RouterHello{id, subnet, endpoint->uri()});
    world_.run_for(std::chrono::milliseconds(20));
    return true;
  }
  bool tell(const RouterRecord& record) {
    std::vector<std::byte> raw, message;
    if (!encode_record(record, raw)) return false;
    encode_record_message(MessageKind::record, raw, message);
    send(message);
    world_.run_for(std::chrono::milliseconds(5));
    return true;
  }
  // As an administrator: the whole map, or nothing.
  std::optional<std::vector<RouterRecord>> ask(const std::string& uri) {
    if (!connect(uri, ports::Role::admin)) return std::nullopt;
    say_plain(MessageKind::map_request);
    if (!run([&] { return last(MessageKind::map_end).has_value(); }, std::chrono::seconds(5))) return std::nullopt;
    std::vector<RouterRecord> records;
    for (const auto& each : received) {
      if (kind_of(each) == MessageKind::map_record) records.push_back(decode_record(record_of(each)).value());
    }
    endpoint->disconnect(connection);
    return records;
  }

  bool run(const std::function<bool()>& done, Duration at_most) {
    return world_.run_until(done, after(world_.now(), at_most)) == sim::RunEnd::reached || done();
  }
  void wake() { world_.wake(node_); }
  [[nodiscard]] sim::NodeId node() const { return node_; }
  // As by SIGSTOP, or SIGCONT.
  void freeze(bool frozen) {
    if (std::exchange(frozen_, frozen) == frozen) return;
    frozen ? world_.remove_actor(node_, this) : world_.add_actor(node_, this);
    if (!frozen) wake();
  }

  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
  cci::Connection connection;
  bool accepts = false;  // who dials it; else no request is answered
  bool holds = false;    // each message keeps its receive buffer, until there is none
  std::vector<cci::Event> held;
  bool answered = false, gone = false;
  cci::Connection lost;           // the last one that ended
  std::string words;              // with which the last connect was answered
  std::vector<Instant> requests;  // when somebody dialled it
  std::vector<Status> ended;      // how its RMAs ended, and sends that failed
  std::vector<std::vector<std::byte>> received;

 private:
  sim::World& world_;
  sim::NodeId node_;
  Counters counters_;
  sim::SimEntropy entropy_;
  bool frozen_ = false;
};

}  // namespace ccixfer::routing::test
