// The driver of the connection engine for networks of byte streams: it takes what the network tells to the connection that it
// concerns, and composes the parts that read frames, write frames, greet, and keep the books on lent memory.
// Private to this room; single-threaded.
#pragma once
#include <memory>
#include <unordered_map>

#include "transports/stream/frame_reader.h"
#include "transports/stream/frame_writer.h"
#include "transports/stream/handshake.h"
#include "transports/stream/lent_memory.h"

namespace ccixfer::stream {

class Driver {
 public:
  Driver(const ports::TransportOptions& options, std::unique_ptr<StreamNet> net, Counters& counters,
         std::shared_ptr<connection::HopTrust> trust);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] Engine& engine() { return engine_; }
  [[nodiscard]] const Engine& engine() const { return engine_; }
  [[nodiscard]] StreamNet& net() { return *net_; }
  [[nodiscard]] const StreamNet& net() const { return *net_; }
  void bind(ports::TransportSink& sink, ports::RmaTarget& target);
  void set_placement(std::shared_ptr<Placement> placement) { handshake_.set_placement(std::move(placement)); }
  void adopt(MovedConnection moved);
  void resume(ports::ConnectionId id);
  void hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch);
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId id) const;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId id) const;
  [[nodiscard]] std::optional<ports::PathFigures> path_figures(ports::ConnectionId id) const;

  // For the engine: what each does stands in transports/connection/engine.h.
  [[nodiscard]] Result<uint64_t> dial(std::string_view uri) { return net_->dial(uri); }
  void dialling(Connection& c, uint64_t stream);
  [[nodiscard]] static MessageBytes copy_message(std::span<const Bytes> parts) { return reliability::copy_message(parts); }
  void message_pushed(Connection& c) { writer_.send_at_once(c); }
  void say_accept(Connection& c) { handshake_.say_accept(c); }
  [[nodiscard]] bool say_end(Connection& c, const connection::Parting& parting);
  void poll(Instant now);
  void serve(Connection& c);
  void stop_receiving(Connection& c);
  void operations_end(Connection& c);
  [[nodiscard]] static Instant deadline(const Connection&) { return never; }
  void on_timer(Connection&) {}
  [[nodiscard]] connection::Outflow outflow(const Connection& c) const;
  static void probe(Connection& c) { c.probe_due = true; }
  void released(Connection& c);
  void pause_accepting(bool pause) { net_->pause_accept(pause); }
  void end_turn();
  [[nodiscard]] Instant own_deadline() const;
  [[nodiscard]] static bool can_serve() { return true; }
  void set_deadline(Instant at) { net_->set_deadline(at); }
  [[nodiscard]] std::string_view scheme() const { return net_->scheme(); }
  [[nodiscard]] static const std::string& node(const Connection& c) { return c.uri; }
  [[nodiscard]] static Duration round_trip(const Connection& c) { return c.round_trip; }
  [[nodiscard]] ports::PeerIdentity peer(const Connection& c) const {
    if (!c.is_sealed()) return {net_->proved_peer(c.stream), ports::host_in(c.uri)};
    return {c.secured->peer_name(), ports::host_in(c.uri), trust::to_string(c.secured->peer().id)};
  }
  [[nodiscard]] static std::string_view protection(const Connection& c) {
    return c.is_sealed() ? connection::to_string(c.secured->cipher()) : std::string_view{};
  }

 private:
  void net_event(const StreamEvent& event);
  void stream_accepted(const StreamEvent& event);

  std::unique_ptr<StreamNet> net_;
  std::shared_ptr<connection::HopTrust> trust_;
  Engine engine_;
  connection::SilentDiallers silent_;
  LentMemory lent_;
  Handshake handshake_;
  FrameReader reader_;
  FrameWriter writer_;
  std::unordered_map<StreamId, uint32_t> by_stream_;
};

}  // namespace ccixfer::stream
