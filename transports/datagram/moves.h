// Peers whose address changes while a connection lasts: a NAT forgot them and lets them out by another port, or their host is in
// another network now. A connection is known by its index and its key, not by its peer's address. Once the peer has shown that it
// receives at the new one (path_check.h) the connection goes on there, as over a path of which nothing is known.
// Guarantees: only an authentic packet that is newer than all before it makes anything of an address. Bounds: one address of one
// connection at a time is asked. Private to this room; single-threaded. Source: README.md 'When an address changes'; RFC 9000, 9.
#pragma once
#include "core/ports/entropy.h"
#include "transports/datagram/engine.h"
#include "transports/datagram/handshake.h"
#include "transports/datagram/packet_outcomes.h"
#include "transports/datagram/packet_writer.h"

namespace ccixfer::datagram {

class Moves {
 public:
  Moves(Engine& engine, const DatagramNet& net, ports::Entropy& entropy, Handshake& handshake, PacketOutcomes& outcomes,
        PacketWriter& writer)
      : engine_(engine), net_(net), entropy_(entropy), handshake_(handshake), outcomes_(outcomes), writer_(writer) {}

  // Packets from another address than the peer's may concern this connection.
  [[nodiscard]] static bool may_move(const Connection& c) { return connection::is_established(c.state); }
  // A packet came that is not of a stranger. `is_newest`: newer than all that were taken. `bytes`: of the datagram.
  void heard(Connection& c, const Address& from, bool is_newest, size_t bytes);
  void on_challenge(Connection& c, const Address& from, const PathChallengeFrame& frame);
  void on_answer(Connection& c, const Address& from, const PathAnswerFrame& frame);

  [[nodiscard]] static Instant deadline(const Connection& c) {
    const Work* work = c.work_if_any();
    return work == nullptr || work->check == nullptr ? never : work->check->deadline();
  }
  void on_timer(Connection& c);

 private:
  void go_on(Connection& c);
  void ask(Connection& c);
  void stay(Connection& c);
  void move(Connection& c);

  Engine& engine_;
  const DatagramNet& net_;
  ports::Entropy& entropy_;
  Handshake& handshake_;
  PacketOutcomes& outcomes_;
  PacketWriter& writer_;
};

}  // namespace ccixfer::datagram
