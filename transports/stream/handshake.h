// How connections over a stream begin, and the last frame of one: hello, hello_reply, connect_accept or connect_reject,
// connect_ack, bye. Private to this room; single-threaded.
#pragma once
#include "transports/stream/engine.h"
#include "transports/stream/silent_diallers.h"

namespace ccixfer::stream {

class Handshake {
 public:
  Handshake(Engine& engine, StreamNet& net, SilentDiallers& silent) : engine_(engine), net_(net), silent_(silent) {}

  void greet(Connection& c);  // the stream to the peer is there
  void on_hello(Connection& c, Bytes header);
  void on_hello_reply(Connection& c, Bytes header);
  void on_connect_accept(Connection& c);
  void on_connect_reject(Connection& c, Bytes header);
  void on_connect_ack(Connection& c) { engine_.opened_by_dialler(c); }
  void on_bye(Connection& c, Bytes header);
  static void say_accept(Connection& c);
  static void say_reject(Connection& c, Status status, std::string_view reason);
  static void say_bye(Connection& c, Status status, std::string_view reason);

 private:
  void refuse_hello(Connection& c, Status status, std::string_view reason);
  void agree(Connection& c, const wire::Offer& theirs, const wire::HostIdentity& machine);

  Engine& engine_;
  StreamNet& net_;
  SilentDiallers& silent_;
};

}  // namespace ccixfer::stream
