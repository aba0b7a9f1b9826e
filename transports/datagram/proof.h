// How the ends of a connection over datagrams prove who they are, with a HopTrust: TLS goes back and forth in handshake packets,
// and the owner decides on each peer. What a proved dialler wants of the connection is handshake.h's.
// Bounds: connection::handshakes_per_turn_max; in a crowd, a dialler that goes on with nothing for silence_when_crowded_max makes
// room.
// Private to this room; single-threaded.
// Source: README.md 'Secured connections'; transports/connection/README.md 'Who the peer is'.
#pragma once
#include <memory>
#include <string>

#include "transports/connection/hop_trust.h"
#include "transports/connection/silent_diallers.h"
#include "transports/datagram/engine.h"
#include "transports/datagram/outbox.h"

namespace ccixfer::datagram {

class Proof {
 public:
  // `trust`: nullptr for plain connections. `datagram_bytes`: what we offer to peers.
  Proof(Engine& engine, Outbox& outbox, const DatagramNet& net, std::shared_ptr<connection::HopTrust> trust,
        uint32_t datagram_bytes)
      : engine_(engine), outbox_(outbox), net_(net), trust_(std::move(trust)), datagram_bytes_(datagram_bytes) {}

  [[nodiscard]] bool is_wanted() const { return trust_ != nullptr; }
  // Whether one more proof may go on in this turn. It counts as going on.
  [[nodiscard]] bool has_time() { return proofs_++ < connection::handshakes_per_turn_max; }
  void end_turn();
  [[nodiscard]] Instant deadline() const { return engine_.is_crowded() ? silent_.deadline() : never; }

  // The dialler's first words are unheard() then. false: the connection has ended.
  [[nodiscard]] bool begin(Connection& c);
  void answer(Connection& c, Bytes first_words);  // acceptor
  void on_piece(Connection& c, const HandshakePiece& piece);
  void say_again(Connection& c);  // what the peer may not have of what we said
  // Whether a proved dialler may have this role.
  [[nodiscard]] Result<void> admit_dialler(const Connection& c, ports::Role role);
  void sent_away(const Address& from, const trust::ProvedPeer* peer, const Error& error);
  void greeted(const Connection& c) { silent_.remove(c.id.index); }
  void released(const Connection& c) { silent_.remove(c.id.index); }

 private:
  void take(Connection& c, uint32_t offset_bytes, Bytes bytes);
  void send(Connection& c);
  void failed(Connection& c, const Error& error);

  Engine& engine_;
  Outbox& outbox_;
  const DatagramNet& net_;
  const std::shared_ptr<connection::HopTrust> trust_;
  const uint32_t datagram_bytes_;
  connection::SilentDiallers silent_;  // admitted, and not yet greeted by
  size_t proofs_ = 0;                  // that went on in this turn
};

}  // namespace ccixfer::datagram
