// What goes out in a connection's packets: the ack that is wanted, then control, then messages and chunks by turns, as the
// window and the pace allow. Private to this room; single-threaded.
#pragma once
#include <vector>

#include "transports/datagram/engine.h"
#include "transports/datagram/handshake.h"
#include "transports/datagram/outbox.h"

namespace ccixfer::datagram {

class PacketWriter {
 public:
  // `datagram_bytes`: what we offer to peers.
  PacketWriter(Engine& engine, Outbox& outbox, Handshake& handshake, uint32_t datagram_bytes)
      : engine_(engine), outbox_(outbox), handshake_(handshake), datagram_bytes_(datagram_bytes) {}

  void transmit(Connection& c);
  [[nodiscard]] static bool wants_to_send(Connection& c);
  // One packet. Not eliciting: the ack alone. false: there was nothing to send after all.
  [[nodiscard]] bool build(Connection& c, bool eliciting);
  // At once, in packets of their own that ask for no acknowledgement. What is lost is asked again.
  void challenge_path(Connection& c, const Address& to, uint64_t token) { send_aside(c, to, PathChallengeFrame{token}); }
  void answer_path(Connection& c, const Address& to, uint64_t token) { send_aside(c, to, PathAnswerFrame{token}); }

 private:
  using CarriedFrames = std::vector<reliability::Carried>;
  void send_probes(Connection& c);
  [[nodiscard]] wire::Writer begin(Connection& c, bool is_short = false);
  void build_probe(Connection& c, uint32_t bytes);  // a ping, padded to that length; 0: not padded
  template <typename Frame>
  void send_aside(Connection& c, const Address& to, const Frame& frame) {
    wire::Writer out = begin(c);
    encode(out, frame);
    close(c, out);
    static_cast<void>(c.work().sent.sent(engine_.now(), static_cast<uint32_t>(out.position()), false, false, {}));
    outbox_.put(to, out);
  }
  void close(Connection& c, wire::Writer& out, bool is_short = false);  // with its seal or its check
  void finish(Connection& c, wire::Writer& out, bool elicits, CarriedFrames carried);
  void add_control(Connection& c, wire::Writer& out, size_t size_max, CarriedFrames& carried);
  void add_messages(Connection& c, wire::Writer& out, size_t size_max, CarriedFrames& carried);
  void add_bulk(Connection& c, wire::Writer& out, size_t size_max, CarriedFrames& carried);

  Engine& engine_;
  Outbox& outbox_;
  Handshake& handshake_;
  const uint32_t datagram_bytes_;
};

}  // namespace ccixfer::datagram
