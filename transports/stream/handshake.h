// How connections over a stream begin, and the last frame of one: handshake, hello, hello_reply, connect_accept or connect_reject,
// connect_ack, bye. With a HopTrust, both ends prove who they are before anything else is said, and the owner decides on the peer.
// Private to this room; single-threaded.
#pragma once
#include <memory>
#include <utility>

#include "transports/connection/hop_trust.h"
#include "transports/connection/silent_diallers.h"
#include "transports/stream/engine.h"
#include "transports/stream/moved_connection.h"

namespace ccixfer::stream {

using connection::SilentDiallers;

class Handshake {
 public:
  // `trust`: nullptr for plain connections.
  Handshake(Engine& engine, StreamNet& net, connection::SilentDiallers& silent, connection::HopTrust* trust)
      : engine_(engine), net_(net), silent_(silent), trust_(trust) {}

  void set_placement(std::shared_ptr<Placement> placement) { placement_ = std::move(placement); }
  [[nodiscard]] bool has_placement() const { return placement_ != nullptr; }
  void greet(Connection& c);  // the stream to the peer is there
  // The hello of a dialler is due. One that dialled ahead has nothing to ask yet; its hello goes out when it has.
  void ask_if_due(Connection& c);
  // Whether the connection may be served now: not if it is in its handshake, and many others were in this turn.
  [[nodiscard]] bool has_time_for(const Connection& c);
  void end_turn() { handshakes_ = 0; }
  void on_handshake(Connection& c, Bytes header);
  void on_hello(Connection& c, Bytes header);
  // The reader has a hello: it is judged here, or kept because the connection lives elsewhere.
  void take_hello(Connection& c, Bytes header);
  // Of a kept hello: the connection leaves this transport, once all is out that was to be said before the answer.
  void move_on(Connection& c);
  void answer_kept_hello(Connection& c);
  void on_hello_reply(Connection& c, Bytes header);
  void on_connect_accept(Connection& c);
  void on_connect_reject(Connection& c, Bytes header);
  void on_connect_ack(Connection& c) { engine_.opened_by_dialler(c); }
  void on_bye(Connection& c, Bytes header);
  static void say_accept(Connection& c);
  static void say_reject(Connection& c, Status status, std::string_view reason);
  static void say_bye(Connection& c, Status status, std::string_view reason);

 private:
  void say_hello(Connection& c);
  void handshake_failed(Connection& c, const Error& error);
  void refuse_hello(Connection& c, Status status, std::string_view reason);
  void agree(Connection& c, const wire::Offer& theirs, const wire::HostIdentity& machine);

  Engine& engine_;
  StreamNet& net_;
  connection::SilentDiallers& silent_;
  connection::HopTrust* trust_;
  std::shared_ptr<Placement> placement_;  // nullptr: all connections stay
  size_t handshakes_ = 0;                 // that went on in this turn
};

}  // namespace ccixfer::stream
