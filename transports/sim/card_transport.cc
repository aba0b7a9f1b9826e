#include "transports/sim/card_transport.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/sim/sim_card.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::sim {
namespace {

using ports::ConnectionId;

class CardTransport final : public ports::Transport, private ports::TransportSink {
 public:
  CardTransport(World& world, std::string name, const CardLimits& limits, std::unique_ptr<ports::Transport> wire)
      : card_(world, std::move(name), limits), wire_(std::move(wire)) {}

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override {
    sink_ = &sink;
    target_.emplace(target, card_, [this](uint64_t connection) { break_later(ConnectionId::of(connection)); });
    wire_->bind(*this, *target_);
  }
  [[nodiscard]] Status register_memory(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key) override {
    return card_.add(memory, access, key);
  }
  void deregister_memory(ports::MemoryKey key) override { card_.remove(key); }

  [[nodiscard]] Status rma(ConnectionId connection, const ports::RmaRequest& request, uint64_t token) override {
    const ports::MemoryKey key = request.local.key;
    if (!card_.begin(key, request.write ? request.source : Bytes(request.destination), !request.write)) {
      failed_.emplace_back(connection, token);
      break_later(connection);
      return Status::success;
    }
    ports::RmaRequest whole = request;
    whole.fill = nullptr;  // a card sends what is there
    const Status status = wire_->rma(connection, whole, token);
    if (status == Status::success) {
      keys_[token] = key;
    } else {
      card_.end(key);
    }
    return status;
  }

  void turn(Instant now) override {
    now_ = now;
    for (const auto& [connection, token] : std::exchange(failed_, {})) sink_->on_completion(connection, token, Status::error);
    const std::vector<ConnectionId> breaking = breaking_;
    for (const ConnectionId connection : breaking) wire_->abort(connection);
    wire_->turn(now);
    for (const ConnectionId connection : breaking) {
      if (!forget(connection)) continue;  // it has gone in another way
      sink_->on_disconnected(connection, Status::disconnected, "the card failed an operation");
    }
  }
  [[nodiscard]] Instant next_deadline() const override { return breaking_.empty() ? wire_->next_deadline() : now_; }

  void disconnect(ConnectionId connection) override {
    if (forget(connection)) return wire_->abort(connection);
    wire_->disconnect(connection);
  }
  void abort(ConnectionId connection) override {
    static_cast<void>(forget(connection));
    wire_->abort(connection);
  }

  // The rest is the wire's.
  [[nodiscard]] std::string uri() const override { return wire_->uri(); }
  [[nodiscard]] uint32_t max_send_bytes() const override { return wire_->max_send_bytes(); }
  [[nodiscard]] Result<ConnectionId> dial(const ports::DialRequest& request) override { return wire_->dial(request); }
  [[nodiscard]] Status accept(ConnectionId request) override { return wire_->accept(request); }
  [[nodiscard]] Status reject(ConnectionId request, std::string_view reason) override { return wire_->reject(request, reason); }
  [[nodiscard]] Status send(ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override {
    return wire_->send(connection, parts, token);
  }
  void hint(ConnectionId connection, uint64_t mailbox, uint64_t epoch) override { wire_->hint(connection, mailbox, epoch); }
  void set_send_timeout(ConnectionId connection, Duration timeout) override { wire_->set_send_timeout(connection, timeout); }
  void set_keepalive(ConnectionId connection, Duration timeout) override { wire_->set_keepalive(connection, timeout); }
  [[nodiscard]] std::vector<ports::HopInfo> hops(ConnectionId connection) const override { return wire_->hops(connection); }
  [[nodiscard]] ports::PeerIdentity peer(ConnectionId connection) const override { return wire_->peer(connection); }
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ConnectionId connection) const override {
    return wire_->delivered_bytes(connection);
  }
  [[nodiscard]] std::optional<uint64_t> received_bytes(ConnectionId connection) const override {
    return wire_->received_bytes(connection);
  }
  [[nodiscard]] int os_handle() const override { return wire_->os_handle(); }
  void arm(Instant when) override { wire_->arm(std::min(when, next_deadline())); }

 private:
  void break_later(ConnectionId connection) {
    if (std::ranges::find(breaking_, connection) == breaking_.end()) breaking_.push_back(connection);
  }
  bool forget(ConnectionId connection) { return std::erase(breaking_, connection) > 0; }

  void on_completion(ConnectionId connection, uint64_t token, ports::OperationResult ending) override {
    if (const auto found = keys_.find(token); found != keys_.end()) {
      card_.end(found->second);
      keys_.erase(found);
    }
    sink_->on_completion(connection, token, ending);
  }
  void on_disconnected(ConnectionId connection, Status status, std::string_view reason) override {
    static_cast<void>(forget(connection));
    sink_->on_disconnected(connection, status, reason);
  }
  void on_connect_request(ConnectionId request, ports::Role role, ports::Attribute attribute, Bytes data) override {
    sink_->on_connect_request(request, role, attribute, data);
  }
  void on_connected(ConnectionId connection, Status status, ports::ConnectionLimits limits, std::string_view reason) override {
    sink_->on_connected(connection, status, limits, reason);
  }
  void on_accepted(ConnectionId connection, Status status, ports::ConnectionLimits limits) override {
    sink_->on_accepted(connection, status, limits);
  }
  MutableBytes on_message_begin(ConnectionId connection, uint32_t length_bytes) override {
    return sink_->on_message_begin(connection, length_bytes);
  }
  void on_message_end(ConnectionId connection, bool complete) override { sink_->on_message_end(connection, complete); }
  void on_local_completion(ConnectionId connection, uint64_t token) override { sink_->on_local_completion(connection, token); }
  void on_mailbox_ready(ConnectionId connection, uint64_t mailbox, uint64_t epoch) override {
    sink_->on_mailbox_ready(connection, mailbox, epoch);
  }
  void on_keepalive_timeout(ConnectionId connection) override { sink_->on_keepalive_timeout(connection); }
  void on_draining(ConnectionId connection) override { sink_->on_draining(connection); }
  void on_device_failed(std::string_view reason) override { sink_->on_device_failed(reason); }

  Card card_;
  ports::TransportSink* sink_ = nullptr;
  std::optional<CardTarget> target_;
  std::unordered_map<uint64_t, ports::MemoryKey> keys_;  // of operations in flight, by token
  std::vector<std::pair<ConnectionId, uint64_t>> failed_;
  std::vector<ConnectionId> breaking_;
  Instant now_{};
  std::unique_ptr<ports::Transport> wire_;  // last: it lets go of the target first
};

}  // namespace

std::unique_ptr<ports::Transport> make_transport(Fabric& fabric, NodeId node, const SimNetOptions& net,
                                                 const ports::TransportOptions& options, Counters& counters,
                                                 std::shared_ptr<connection::HopTrust> trust) {
  auto wire =
      std::make_unique<stream::StreamTransport>(options, std::make_unique<SimNet>(fabric, node, net), counters, std::move(trust));
  const std::optional<CardLimits>& card = fabric.link(net.networks.front().network).card;
  if (!card) return wire;
  World& world = fabric.world();
  return std::make_unique<CardTransport>(world, world.name(node), *card, std::move(wire));
}

}  // namespace ccixfer::sim
