// The driver of the connection engine for networks of datagrams: it takes what the network tells to the part that it concerns.
// Private to this room; single-threaded.
#pragma once
#include <memory>

#include "transports/datagram/datagram_transport.h"
#include "transports/datagram/groups.h"
#include "transports/datagram/handshake.h"
#include "transports/datagram/moves.h"
#include "transports/datagram/outbox.h"
#include "transports/datagram/packet_outcomes.h"
#include "transports/datagram/packet_reader.h"
#include "transports/datagram/packet_writer.h"
#include "transports/datagram/proof.h"

namespace ccixfer::datagram {

class Driver final : public DatagramEvents {
 public:
  Driver(const DatagramOptions& options, std::unique_ptr<DatagramNet> net, ports::Entropy& entropy, Counters& counters,
         std::shared_ptr<connection::HopTrust> trust);
  ~Driver() override;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] Engine& engine() { return engine_; }
  [[nodiscard]] const Engine& engine() const { return engine_; }
  [[nodiscard]] DatagramNet& net() { return *net_; }
  [[nodiscard]] const DatagramNet& net() const { return *net_; }
  [[nodiscard]] Groups& groups() { return groups_; }
  [[nodiscard]] const Groups& groups() const { return groups_; }
  [[nodiscard]] size_t held_bytes() const { return handshake_.held_bytes(); }
  void hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch);

  // For the engine: what each does stands in transports/connection/engine.h.
  [[nodiscard]] Result<uint64_t> dial(std::string_view uri) { return net_->resolve(uri); }
  void dialling(Connection& c, uint64_t query) { handshake_.dialling(c, query); }
  [[nodiscard]] static std::vector<std::byte> copy_message(std::span<const Bytes> parts);
  void message_pushed(Connection& c) { engine_.touch_from_above(c); }
  static void say_accept(Connection& c) { c.work().accept_due = true; }
  [[nodiscard]] static bool say_end(Connection& c, const connection::Parting& parting) { return Handshake::say_end(c, parting); }
  void poll(Instant now);
  void serve(Connection& c);
  void stop_receiving(Connection& c);
  void operations_end(Connection& c) { c.work().served.abandon(engine_.target()); }
  [[nodiscard]] static Instant deadline(const Connection& c);
  void on_timer(Connection& c);
  static void probe(Connection& c) { c.work().ping_due = true; }
  void released(Connection& c) { handshake_.released(c); }
  static void pause_accepting(bool /*pause*/) {}  // a hello beyond the bound is told to come again
  void end_turn();
  [[nodiscard]] Instant own_deadline() const { return groups_.is_due() ? engine_.now() : proof_.deadline(); }
  [[nodiscard]] bool can_serve() const { return !outbox_.blocked(); }
  void set_deadline(Instant at) { net_->set_deadline(at); }
  [[nodiscard]] std::string_view scheme() const { return net_->scheme(); }
  [[nodiscard]] std::string why_silent(const Connection& c) const { return outbox_.refusal(c.address); }
  [[nodiscard]] std::string node(const Connection& c) const { return c.dialler ? c.uri : net_->uri_of(c.address); }
  [[nodiscard]] static Duration round_trip(const Connection& c);
  [[nodiscard]] ports::PeerIdentity peer(const Connection& c) const;
  [[nodiscard]] static std::string_view protection(const Connection& c);

 private:
  void received(std::span<const Datagram> batch) override;
  void received_of_group(uint32_t member, std::span<const Datagram> batch) override { groups_.received(member, batch); }
  void resolved(uint64_t query, Status status, const Address& address, std::string_view reason) override;
  void writable() override;
  void device_failed(std::string_view reason) override { engine_.sink().on_device_failed(reason); }
  void received_one(const Address& from, Bytes datagram);
  void finish_closing(Connection& c);
  void rest_if_quiet(Connection& c);

  std::unique_ptr<DatagramNet> net_;
  const uint32_t datagram_bytes_;
  Outbox outbox_;
  Engine engine_;
  Groups groups_;
  Proof proof_;
  Handshake handshake_;
  PacketOutcomes outcomes_;
  PacketWriter writer_;
  Moves moves_;
  PacketReader reader_;
};

}  // namespace ccixfer::datagram
