// How connections over a pair begin, and the last frame of one: handshake, hello, hello_reply, connect_accept or connect_reject,
// connect_ack, bye. With a HopTrust, both ends prove who they are before anything else is said, and the owner decides on the peer.
// Private to this room; single-threaded.
#pragma once
#include <memory>

#include "transports/connection/hop_trust.h"
#include "transports/connection/silent_diallers.h"
#include "transports/rdma/engine.h"

namespace ccixfer::rdma {

class Handshake {
 public:
  // `trust`: nullptr for plain connections.
  Handshake(Engine& engine, uint16_t credits_window, std::shared_ptr<connection::HopTrust> trust)
      : engine_(engine), credits_window_(credits_window), trust_(std::move(trust)) {}

  [[nodiscard]] bool proves() const { return trust_ != nullptr; }

  void came(Connection& c);   // somebody has dialled us
  void greet(Connection& c);  // the pair with the one whom we dialled is there
  void on_handshake(Connection& c, Bytes header);
  void on_hello(Connection& c, Bytes header);
  void on_hello_reply(Connection& c, Bytes header);
  void on_connect_accept(Connection& c);
  void on_connect_reject(Connection& c, Bytes header);
  void on_connect_ack(Connection& c) { engine_.opened_by_dialler(c); }
  void on_bye(Connection& c, Bytes header);
  static void say_accept(Connection& c);
  static void say_reject(Connection& c, Status status, std::string_view reason);
  static void say_bye(Connection& c, Status status, std::string_view reason);
  void released(const Connection& c) { silent_.remove(c.id.index); }
  void end_turn() { silent_.make_room(engine_); }
  [[nodiscard]] Instant deadline() const { return engine_.takes_no_more() ? silent_.deadline() : never; }

 private:
  void say_hello(Connection& c);
  void handshake_failed(Connection& c, const Error& error);
  void refuse_hello(Connection& c, Status status, std::string_view reason);
  void agree(Connection& c, const wire::Offer& theirs);

  Engine& engine_;
  const uint16_t credits_window_;
  const std::shared_ptr<connection::HopTrust> trust_;
  connection::SilentDiallers silent_;
};

}  // namespace ccixfer::rdma
