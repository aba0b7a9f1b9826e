// The driver of the connection engine for networks of RDMA cards: it takes what the network tells to the part that it concerns.
// Private to this room; single-threaded.
#pragma once
#include <deque>
#include <memory>
#include <unordered_map>

#include "transports/rdma/handshake.h"
#include "transports/rdma/packet_reader.h"
#include "transports/rdma/packet_writer.h"
#include "transports/rdma/pieces.h"

namespace ccixfer::rdma {

class Driver final : public RdmaEvents, public ports::Lender {
 public:
  Driver(const ports::TransportOptions& options, std::unique_ptr<RdmaNet> net, Counters& counters,
         std::shared_ptr<connection::HopTrust> trust);
  ~Driver() override;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] Engine& engine() { return engine_; }
  [[nodiscard]] const Engine& engine() const { return engine_; }
  [[nodiscard]] RdmaNet& net() { return *net_; }
  [[nodiscard]] const RdmaNet& net() const { return *net_; }
  [[nodiscard]] RegisteredMemory& memory() { return memory_; }
  void bind(ports::TransportSink& sink, ports::RmaTarget& target);
  void resume(ports::ConnectionId id);
  void hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch);
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId id) const;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId id) const;

  // For the engine: what each does stands in transports/connection/engine.h.
  [[nodiscard]] Result<uint64_t> dial(std::string_view uri) { return net_->dial(uri); }
  void dialling(Connection& c, uint64_t pair);
  [[nodiscard]] static MessageBytes copy_message(std::span<const Bytes> parts) { return reliability::copy_message(parts); }
  void message_pushed(Connection& c) { writer_.send_at_once(c); }
  static void say_accept(Connection& c) { Handshake::say_accept(c); }
  [[nodiscard]] bool say_end(Connection& c, const connection::Parting& parting);
  void poll(Instant now);
  void serve(Connection& c);
  void stop_receiving(Connection& c);
  void operations_end(Connection& c);
  [[nodiscard]] static Instant deadline(const Connection&) { return never; }
  void on_timer(Connection&) {}
  static void probe(Connection& c) { c.probe_due = true; }
  void released(Connection& c);
  void pause_accepting(bool pause) { paused_ = pause; }
  void end_turn();
  [[nodiscard]] Instant own_deadline() const;
  [[nodiscard]] static bool can_serve() { return true; }
  void set_deadline(Instant at) { net_->set_deadline(at); }
  [[nodiscard]] std::string_view scheme() const { return net_->scheme(); }
  [[nodiscard]] static const std::string& node(const Connection& c) { return c.uri; }
  [[nodiscard]] static Duration round_trip(const Connection& c) { return c.round_trip; }
  [[nodiscard]] static ports::PeerIdentity peer(const Connection& c) {
    if (!c.is_sealed()) return {{}, ports::host_in(c.uri)};
    return {c.secured->keys().name, ports::host_in(c.uri), trust::to_string(c.secured->keys().peer.id)};
  }
  [[nodiscard]] static std::string_view protection(const Connection& c) {
    return c.is_sealed() ? connection::to_string(c.secured->keys().cipher) : std::string_view{};
  }

 private:
  struct Waiting {
    PairId pair = 0;
    std::string peer;
  };
  void requested(PairId pair, std::string_view peer) override;
  void connected(PairId pair) override;
  void closed(PairId pair, Status status, std::string_view reason) override;
  void received(PairId pair, Bytes bytes) override;
  void completed(PairId pair, uint64_t tag, WorkStatus status) override;
  void sendable(PairId pair) override;
  void device_failed(std::string_view reason) override { engine_.sink().on_device_failed(reason); }

  void settle() override {}
  void withdraw(Bytes memory) override { pieces_.withdraw(memory); }

  [[nodiscard]] Connection* of(PairId pair);
  void admit_waiting();
  void finish_closing(Connection& c);
  void close_pair(Connection& c);
  void pair_is_gone(Connection& c);
  [[nodiscard]] bool say_last_words(Connection& c);

  std::unique_ptr<RdmaNet> net_;
  RegisteredMemory memory_;
  Engine engine_;
  Handshake handshake_;
  PacketReader reader_;
  PacketWriter writer_;
  Pieces pieces_;
  std::unordered_map<PairId, uint32_t> by_pair_;
  std::deque<Waiting> waiting_;  // diallers that are not admitted yet: at most waiting_diallers_max
  size_t admitted_ = 0;          // in this turn
  bool paused_ = false;
};

}  // namespace ccixfer::rdma
